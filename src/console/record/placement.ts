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

/** A node's place; `x` and `y` are its upper left corner. */
export interface PlacedNode extends NodeToPlace, Point {}

/** An edge's way from the border of its source to that of its target. */
export interface PlacedEdge {
  readonly id: string;
  /** At least two. */
  readonly points: readonly Point[];
  /** Centre of its label; null: there is no room for one. */
  readonly label: Point | null;
}

export interface GraphLayout {
  readonly width: number;
  readonly height: number;
  readonly nodes: ReadonlyMap<string, PlacedNode>;
  readonly edges: ReadonlyMap<string, PlacedEdge>;
}

export interface LayoutOptions {
  /** Where edges lead; default: `down`. */
  readonly direction?: 'down' | 'right';
  /** Between nodes side by side, in the unit of the sizes; default 40. */
  readonly gap?: number;
  /** Between one rank and the next; default 56. */
  readonly rankGap?: number;
}
