/** Selects the best of many scored rows. */
import { elementAt } from '../system/element.js';

export interface Scored {
  /** Row's key: ties go to the smaller one. */
  readonly key: number;
  readonly score: number;
}

/** Best first; ties by key, so that results are deterministic. */
export function byScore(one: Scored, other: Scored): number {
  return other.score - one.score || one.key - other.key;
}

/**
 * The best `limit` rows, in no order: a heap whose first row is the worst kept one. Most rows of a long scan cost one
 * comparison.
 *
 * @param limit at least 1
 */
export function topK(scores: ArrayLike<number>, keys: ArrayLike<number>, limit: number): readonly Scored[] {
  const heap: Scored[] = [];
  let worst = -Infinity;
  for (let at = 0; at < keys.length; at += 1) {
    const score = scores[at] ?? 0;
    if (score < worst) continue;
    const row = { key: keys[at] ?? 0, score };
    if (heap.length < limit) rise(heap, row);
    else if (isWorse(heap[0], row)) sink(heap, row);
    if (heap.length === limit) worst = elementAt(heap, 0).score;
  }
  return heap;
}

function isWorse(one: Scored | undefined, other: Scored | undefined): boolean {
  return one !== undefined && other !== undefined && byScore(one, other) > 0;
}

function rise(heap: Scored[], row: Scored): void {
  let at = heap.length;
  for (;;) {
    const parent = (at - 1) >> 1;
    const above = heap[parent];
    if (at === 0 || above === undefined || !isWorse(row, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = row;
}

/** Replaces the first row of the heap and restores the heap order. */
function sink(heap: Scored[], row: Scored): void {
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const child = isWorse(heap[left + 1], heap[left]) ? left + 1 : left;
    const below = heap[child];
    if (below === undefined || !isWorse(below, row)) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = row;
}
