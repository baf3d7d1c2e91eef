/** Places of nodes and ways of edges, for graphs as they are, as they ran, and as they are drawn in the editor. */
import type { LayerBox } from './layers.js';
import { orderLayers, placeLayers, ranksOf } from './layers.js';
import type { Direction, EdgeToPlace, NodeToPlace, PlacedEdge, PlacedNode, Places, Point } from './placement.js';
import { atBorder, centreOf } from './placement.js';

/** Sizes up to which edges are led around nodes: some 0.1 s there. Beyond, they are straight, and nodes in plain ranks. */
const [MOST_EDGES, MOST_BENDS] = [600, 4_000];
/** How far beside its nodes an edge leads that joins neighbours, or a node to itself. */
const BESIDE = 20;
/** Between nodes side by side, and between one rank and the next. */
const [GAP, RANK_GAP] = [36, 40];

/**
 * The same nodes and edges in the same order always come to the same places. The first node is the origin, so that what
 * comes later does not shove what stands.
 */
export function layoutGraph(
  nodes: readonly NodeToPlace[],
  edges: readonly EdgeToPlace[],
  direction: Direction = 'down',
): Places {
  const ids = new Set(nodes.map(({ id }) => id));
  const drawn = edges.filter(({ source, target }) => ids.has(source) && ids.has(target));
  // To the right is down, with all that has a width and a height turned.
  const turn = direction === 'down' ? <T extends Size>(sized: T): T => sized : turned;
  const labelled = drawn.map(({ label, ...edge }) => (label === undefined ? edge : { ...edge, label: turn(label) }));
  const placed = new Layout(nodes.map(turn), labelled).placed();
  const { x: left, y: top } = placed.nodes.get(nodes[0]?.id ?? '') ?? { x: 0, y: 0 };
  const spot = ({ x, y }: Point): Point =>
    direction === 'down' ? { x: x - left, y: y - top } : { x: y - top, y: x - left };
  return {
    nodes: new Map([...placed.nodes].map(([id, node]) => [id, { ...turn(node), ...spot(node) }])),
    edges: new Map(
      placed.edges.map(({ id, points, label }) => [id, { id, points: points.map(spot), label: label && spot(label) }]),
    ),
  };
}

type Size = Pick<NodeToPlace, 'width' | 'height'>;

function turned<T extends Size>(sized: T): T {
  return { ...sized, width: sized.height, height: sized.width };
}

/** Of every other layer the nodes of a rank; edges pass the layers between, where there is room for their labels. */
class Layout {
  readonly #edges: readonly EdgeToPlace[];
  readonly #layers: LayerBox[][] = [];
  readonly #boxes: ReadonlyMap<string, LayerBox>;
  /** By edge, from the upper of its ends to the lower. */
  readonly #bends = new Map<string, readonly LayerBox[]>();

  constructor(nodes: readonly NodeToPlace[], edges: readonly EdgeToPlace[]) {
    const ranks = ranksOf(nodes, edges);
    this.#edges = edges;
    this.#boxes = new Map(nodes.map((node) => [node.id, this.#box(node, 2 * (ranks.get(node.id) ?? 0), false)]));
    const bends = edges.reduce((sum, edge) => sum + Math.max(0, 2 * this.#spanOf(edge) - 1), 0);
    const isPlain = edges.length > MOST_EDGES || bends > MOST_BENDS;
    for (let layer = 0; layer < this.#layers.length; layer += 1) this.#layers[layer] ??= [];
    if (isPlain) return;
    for (const edge of edges) this.#bends.set(edge.id, this.#bendsOf(edge));
    orderLayers(this.#layers);
  }

  placed(): { readonly nodes: Placed['nodes']; readonly edges: readonly PlacedEdge[] } {
    placeLayers(this.#layers, GAP);
    const heights = this.#heights(RANK_GAP / 2);
    const placedBox = ({ x, layer, width, height }: LayerBox): Omit<PlacedNode, 'id'> => {
      return { x: x - width / 2, y: (heights[layer]?.middle ?? 0) - height / 2, width, height };
    };
    const nodes = new Map([...this.#boxes].map(([id, box]) => [id, { id, ...placedBox(box) }]));
    const edges = this.#edges.map((edge): PlacedEdge => {
      const bends = (this.#bends.get(edge.id) ?? []).map((box) => {
        return { id: '', ...placedBox({ ...box, height: heights[box.layer]?.height ?? 0 }) };
      });
      return wayOf(edge, { nodes, bends, isUp: this.#isUp(edge) });
    });
    return { nodes, edges };
  }

  #box({ width, height }: Pick<NodeToPlace, 'width' | 'height'>, layer: number, isBend: boolean): LayerBox {
    const boxes = (this.#layers[layer] ??= []);
    const box = { width, height, isBend, layer, above: [], below: [], at: boxes.length, x: 0 };
    boxes.push(box);
    return box;
  }

  #bendsOf(edge: EdgeToPlace): readonly LayerBox[] {
    const [upper, lower] = this.#ends(edge);
    const middle = (upper.layer + lower.layer) / 2;
    const chain = [upper];
    for (let layer = upper.layer + 1; layer < lower.layer; layer += 1) {
      chain.push(this.#box((layer === middle ? edge.label : undefined) ?? NO_SIZE, layer, true));
    }
    if (upper.layer < lower.layer) chain.push(lower);
    for (const [at, box] of chain.entries()) {
      const next = chain[at + 1];
      if (next === undefined) continue;
      box.below.push(next);
      next.above.push(box);
    }
    return chain.slice(1, -1);
  }

  #isUp({ source, target }: EdgeToPlace): boolean {
    return this.#boxOf(source).layer > this.#boxOf(target).layer;
  }

  #ends(edge: EdgeToPlace): readonly [LayerBox, LayerBox] {
    const [from, to] = [this.#boxOf(edge.source), this.#boxOf(edge.target)];
    return from.layer > to.layer ? [to, from] : [from, to];
  }

  #spanOf(edge: EdgeToPlace): number {
    const [upper, lower] = this.#ends(edge);
    return (lower.layer - upper.layer) / 2;
  }

  #boxOf(id: string): LayerBox {
    const box = this.#boxes.get(id);
    if (box === undefined) throw new Error(`Node "${id}" is not there`);
    return box;
  }

  /** How high each layer is, and where its middle. */
  #heights(gap: number): readonly { readonly height: number; readonly middle: number }[] {
    let y = 0;
    return this.#layers.map((layer) => {
      const height = layer.reduce((most, box) => Math.max(most, box.height), 0);
      const middle = y + height / 2;
      y += height + gap;
      return { height, middle };
    });
  }
}

const NO_SIZE = { width: 0, height: 0 };

interface Placed {
  readonly nodes: ReadonlyMap<string, PlacedNode>;
  /** Where it passes each layer, as high as that: from the upper of its ends to the lower. */
  readonly bends: readonly PlacedNode[];
  readonly isUp: boolean;
}

function wayOf({ id, source, target, label }: EdgeToPlace, { nodes, bends, isUp }: Placed): PlacedEdge {
  const [from, to] = [nodes.get(source), nodes.get(target)];
  if (from === undefined || to === undefined) throw new Error(`Edge "${id}" joins nodes that are not there`);
  // Through a layer it leads straight, past the corners of what stands there.
  const down = bends.flatMap((bend) =>
    (bend.height === 0 ? [0] : [0, bend.height]).map((below) => ({ x: centreOf(bend).x, y: bend.y + below })),
  );
  const between = isUp ? down.toReversed() : down;
  const isBeside = from.y < to.y + to.height && to.y < from.y + from.height;
  const points = isBeside
    ? wayBeside(from, to)
    : [atBorder(from, between[0] ?? centreOf(to)), ...between, atBorder(to, between.at(-1) ?? centreOf(from))];
  return { id, points, label: label === undefined ? null : (centreOfWay(bends.map(centreOf)) ?? centreOfWay(points)) };
}

/** The point in the middle, or the middle of the two there; null: there is none. */
function centreOfWay(points: readonly Point[]): Point | null {
  const [one, other] = [points[Math.floor((points.length - 1) / 2)], points[Math.ceil((points.length - 1) / 2)]];
  return one === undefined || other === undefined ? null : { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
}

/** Around the right side: between neighbours, or back to the node itself. */
function wayBeside(from: PlacedNode, to: PlacedNode): readonly Point[] {
  const [right, end] = [from.x + from.width, to.x + to.width];
  const x = Math.max(right, end) + BESIDE;
  const [y, endY] = [from.y + (from.height * 2) / 3, to.y + to.height / 3];
  return [
    { x: right, y },
    { x, y },
    { x, y: endY },
    { x: end, y: endY },
  ];
}
