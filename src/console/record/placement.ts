/** What a layout is given and gives: nodes and edges, and where they go. */

/** A node to place; ids are any text. */
export interface NodeToPlace {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

/** An edge to draw; those whose ends are not among the nodes are left out. */
export interface EdgeToPlace {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** Closes a loop: it is drawn against the direction, and the others decide who stands before whom. */
  readonly isBack?: boolean;
  /** Room for its label; default: none. */
  readonly label?: { readonly width: number; readonly height: number };
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** `x` and `y` are its upper left corner. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

export interface PlacedNode extends NodeToPlace, Box {}

/** An edge's way from the border of its source to that of its target. */
export interface PlacedEdge {
  readonly id: string;
  /** At least two. */
  readonly points: readonly Point[];
  /** Centre of its label; null: there is no room for one. */
  readonly label: Point | null;
}

/** Where nodes and edges are. */
export interface Places {
  readonly nodes: ReadonlyMap<string, PlacedNode>;
  readonly edges: ReadonlyMap<string, PlacedEdge>;
}

/** Where edges lead. */
export type Direction = 'down' | 'right';

export type LayoutGraph = (
  nodes: readonly NodeToPlace[],
  edges: readonly EdgeToPlace[],
  direction?: Direction,
) => Places;

/** Where the way from a node's centre to a point leaves the node. */
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
