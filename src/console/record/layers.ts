/**
 * Which nodes of a graph stand below which; and boxes in such layers, joined from each to the next: in which order they
 * stand, so that few joints cross, and how far to the side, so that joints are straight (after Sugiyama, Tagawa and Toda,
 * 1981).
 */
import { edgesBySource } from '../../graph/traversal.js';
import type { EdgeToPlace, NodeToPlace } from './placement.js';

/**
 * Ranks by the longest way that leads to each node, from 0 and without holes; the edges of a loop that lead back do not
 * count. What nothing leads to stands right above what it leads to.
 */
export function ranksOf(nodes: readonly NodeToPlace[], edges: readonly EdgeToPlace[]): ReadonlyMap<string, number> {
  const forward = edges.filter(({ source, target, isBack }) => isBack !== true && source !== target);
  const ranks = longestWays(nodes, forward);
  const isLedTo = new Set(forward.map(({ target }) => target));
  const outgoing = edgesBySource(forward);
  for (const { id } of nodes) {
    const below = (outgoing.get(id) ?? []).map(({ target }) => ranks.get(target) ?? 0);
    if (!isLedTo.has(id) && below.length > 0) ranks.set(id, Math.max(0, Math.min(...below) - 1));
  }
  const used = [...new Set(ranks.values())].sort((a, b) => a - b);
  const places = new Map(used.map((rank, at) => [rank, at]));
  return new Map([...ranks].map(([id, rank]) => [id, places.get(rank) ?? 0]));
}

/** Round a loop that nobody told of, ways end where they are as long as there are nodes. */
function longestWays(nodes: readonly NodeToPlace[], forward: readonly EdgeToPlace[]): Map<string, number> {
  const ranks = new Map(nodes.map(({ id }) => [id, 0]));
  for (let isLonger = true; isLonger;) {
    isLonger = false;
    for (const { source, target } of forward) {
      const rank = (ranks.get(source) ?? 0) + 1;
      if (rank <= (ranks.get(target) ?? 0) || rank >= nodes.length) continue;
      ranks.set(target, rank);
      isLonger = true;
    }
  }
  return ranks;
}

/** A node, or where an edge passes a layer. */
export interface LayerBox {
  readonly width: number;
  readonly height: number;
  readonly isBend: boolean;
  readonly layer: number;
  readonly above: LayerBox[];
  readonly below: LayerBox[];
  /** Its place in its layer, and its centre; both are found here. */
  at: number;
  x: number;
}

/** Times that layers are gone through, to order and to place them: more change little. */
const [ORDERINGS, PLACINGS] = [12, 24];

/** Orders the boxes of each layer, from the order they are in. */
export function orderLayers(layers: LayerBox[][]): void {
  keep(layers, depthFirst(layers));
  let best = layers.map((layer) => [...layer]);
  let fewest = crossingsOf(layers);
  for (let round = 0; round < ORDERINGS && fewest > 0; round += 1) {
    const isDown = round % 2 === 0;
    for (const layer of isDown ? layers : layers.toReversed()) sortLayer(layer, isDown);
    const crossings = crossingsOf(layers);
    if (crossings >= fewest) continue;
    fewest = crossings;
    best = layers.map((layer) => [...layer]);
  }
  keep(layers, best);
}

function keep(layers: LayerBox[][], order: readonly (readonly LayerBox[])[]): void {
  order.forEach((boxes, layer) => {
    layers[layer] = [...boxes];
    boxes.forEach((box, at) => (box.at = at));
  });
}

/** What belongs together comes side by side. */
function depthFirst(layers: readonly (readonly LayerBox[])[]): LayerBox[][] {
  const found = layers.map((): LayerBox[] => []);
  const seen = new Set<LayerBox>();
  const open = layers.flat().toReversed();
  for (let box = open.pop(); box !== undefined; box = open.pop()) {
    if (seen.has(box)) continue;
    seen.add(box);
    found[box.layer]?.push(box);
    open.push(...box.below.toReversed());
  }
  return found;
}

/** By the middle of what each is joined to; what is joined to nothing stays about where it is. */
function sortLayer(layer: LayerBox[], isDown: boolean): void {
  const joinedTo = ({ above, below }: LayerBox): readonly LayerBox[] => (isDown ? above : below);
  const wanted = new Map(layer.map((box) => [box, meanOf(joinedTo(box).map(({ at }) => [at, 1])) ?? box.at]));
  layer.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
  layer.forEach((box, at) => (box.at = at));
}

function crossingsOf(all: readonly (readonly LayerBox[])[]): number {
  let count = 0;
  for (const layer of all) {
    const ends = layer.flatMap(({ below }) => below.map(({ at }) => at).sort((a, b) => a - b));
    ends.forEach((end, from) => {
      for (let other = from + 1; other < ends.length; other += 1) if ((ends[other] ?? end) < end) count += 1;
    });
  }
  return count;
}

/** Finds the places of ordered boxes. @param gap between nodes side by side; half of it beside an edge */
export function placeLayers(all: readonly (readonly LayerBox[])[], gap: number): void {
  const apart = (one: LayerBox, other: LayerBox): number =>
    (one.width + other.width) / 2 + (one.isBend || other.isBend ? gap / 2 : gap);
  for (const layer of all) spread(layer, { wanted: layer.map(() => 0), apart });
  for (let round = 0; round < PLACINGS; round += 1) {
    const isLast = round >= PLACINGS - 2;
    const isDown = round % 2 === 0;
    for (const layer of isDown ? all : all.toReversed()) {
      const wanted = layer.map((box) => {
        const joined = isLast ? [...box.above, ...box.below] : isDown ? box.above : box.below;
        return meanOf(joined.map((other) => [other.x, box.isBend && other.isBend ? STRAIGHT : 1])) ?? box.x;
      });
      spread(layer, { wanted, apart });
    }
  }
}

/** How much more it matters that an edge is straight where it passes than where it ends. */
const STRAIGHT = 4;

interface Wanted {
  readonly wanted: readonly number[];
  /** How far the centres of two neighbours stand apart at least. */
  readonly apart: (one: LayerBox, other: LayerBox) => number;
}

/** The places nearest to those that are wanted, in the order of the boxes and apart from each other. */
function spread(layer: readonly LayerBox[], { wanted, apart }: Wanted): void {
  const offsets: number[] = [];
  const blocks: { readonly value: number; readonly weight: number; readonly count: number }[] = [];
  layer.forEach((box, at) => {
    const before = layer[at - 1];
    const offset = before === undefined ? 0 : (offsets.at(-1) ?? 0) + apart(before, box);
    offsets.push(offset);
    let block = { value: (wanted[at] ?? 0) - offset, weight: box.isBend ? 1 : 2, count: 1 };
    // Those that would stand in each other's way move as one.
    for (let last = blocks.at(-1); last !== undefined && last.value >= block.value; last = blocks.at(-1)) {
      const weight = last.weight + block.weight;
      const value = (last.value * last.weight + block.value * block.weight) / weight;
      block = { value, weight, count: last.count + block.count };
      blocks.pop();
    }
    blocks.push(block);
  });
  const values = blocks.flatMap(({ value, count }) => Array.from({ length: count }, () => value));
  layer.forEach((box, at) => (box.x = (values[at] ?? 0) + (offsets[at] ?? 0)));
}

function meanOf(weighted: readonly (readonly [value: number, weight: number])[]): number | null {
  const total = weighted.reduce((sum, [, weight]) => sum + weight, 0);
  return total === 0 ? null : weighted.reduce((sum, [value, weight]) => sum + value * weight, 0) / total;
}
