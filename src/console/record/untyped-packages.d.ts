/** Types for packages without types that TypeScript can resolve: only what the console uses. */

declare module '@dagrejs/dagre' {
  /** Centre and size of a node or of an edge's label; the layout sets `x` and `y`. */
  export interface PlacedBox {
    readonly width: number;
    readonly height: number;
    x?: number;
    y?: number;
  }

  export interface Way extends PlacedBox {
    readonly labelpos: 'c';
    points?: readonly { readonly x: number; readonly y: number }[];
  }

  export class Graph {
    constructor(options: { readonly multigraph: true });
    setGraph(options: {
      readonly rankdir: 'TB' | 'LR';
      readonly nodesep: number;
      readonly edgesep: number;
      readonly ranksep: number;
    }): void;
    setNode(id: string, box: PlacedBox): void;
    setEdge(source: string, target: string, way: Way, name: string): void;
  }

  /** Sets positions in the given node and edge objects. */
  export function layout(graph: Graph): void;
}
