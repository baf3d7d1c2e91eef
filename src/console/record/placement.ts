/** Input and output of a graph layout. */

export interface NodeToPlace {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

/** An edge to route. A layout ignores an edge without both nodes. */
export interface EdgeToPlace {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** It closes a loop, so it does not affect the order of nodes. */
  readonly isBack?: boolean;
  /** Size of its label. Default: none. */
  readonly label?: { readonly width: number; readonly height: number };
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** `x` and `y` are the upper left corner. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

export interface PlacedNode extends NodeToPlace, Box {}

/** The route of an edge from the border of its source to the border of its target. */
export interface PlacedEdge {
  readonly id: string;
  /** At least two. */
  readonly points: readonly Point[];
  /** Centre of its label, or null without a label. */
  readonly label: Point | null;
}

/** The positions of nodes and edges. */
export interface Places {
  readonly nodes: ReadonlyMap<string, PlacedNode>;
  readonly edges: ReadonlyMap<string, PlacedEdge>;
}

/** The main direction of edges. */
export type Direction = 'down' | 'right';

export type LayoutGraph = (
  nodes: readonly NodeToPlace[],
  edges: readonly EdgeToPlace[],
  direction?: Direction,
) => Places;

/** Where the line from a node's centre to a point crosses the node's border. */
export function atBorder(node: PlacedNode, point: Point): Point {
  const centre = centreOf(node);
  const [dx, dy] = [point.x - centre.x, point.y - centre.y];
  const part = Math.min(
    node.width / 2 / Math.max(0.001, Math.abs(dx)),
    node.height / 2 / Math.max(0.001, Math.abs(dy)),
  );
  return { x: centre.x + dx * Math.min(1, part), y: centre.y + dy * Math.min(1, part) };
}

export function centreOf({ x, y, width, height }: Box): Point {
  return { x: x + width / 2, y: y + height / 2 };
}
