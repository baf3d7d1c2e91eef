/** What is used of it: its own declarations name files without their endings, which Node's resolution does not find. */
declare module '@dagrejs/dagre' {
  interface Placed {
    readonly x: number;
    readonly y: number;
  }
  /** Sizes go in; places come out, those of nodes as their centres. */
  interface Sized {
    readonly width: number;
    readonly height: number;
  }
  export class Graph {
    constructor(options: { readonly multigraph: boolean });
    setGraph(options: {
      readonly rankdir: 'TB' | 'LR';
      readonly nodesep: number;
      readonly edgesep: number;
      readonly ranksep: number;
      readonly marginx: number;
      readonly marginy: number;
    }): this;
    graph(): Sized;
    setNode(name: string, label: Sized): this;
    node(name: string): Sized & Placed;
    setEdge(source: string, target: string, label: Sized & { readonly labelpos: 'c' }, name: string): this;
    edge(
      source: string,
      target: string,
      name: string,
    ): Sized & Partial<Placed> & { readonly points: readonly Placed[] };
  }
  export function layout(graph: Graph): void;
}
