/** What changed between two lists of lines: the shortest way from one to the other (Myers, 1986, the greedy algorithm). */

export interface LineChange {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Edits up to which the shortest way is sought; memory grows with their square, 8 MB here. Beyond, all between is replaced. */
const MAX_EDITS = 1_000;

export function lineDiff(before: readonly string[], after: readonly string[]): readonly LineChange[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const [old, fresh] = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)];
  return [
    ...before.slice(0, head).map(same),
    ...(shortest(old, fresh) ?? [...old.map(removed), ...fresh.map(added)]),
    ...before.slice(before.length - tail).map(same),
  ];
}

const same = (text: string): LineChange => ({ kind: 'same', text });
const removed = (text: string): LineChange => ({ kind: 'removed', text });
const added = (text: string): LineChange => ({ kind: 'added', text });

/**
 * For each number of edits the furthest place in `before` that is reached on each diagonal (place in `before` less
 * place in `after`): diagonal k at index k + edits. Null when it takes too many.
 */
function furthest(before: readonly string[], after: readonly string[]): readonly Int32Array[] | null {
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= MAX_EDITS; edits += 1) {
    const places = new Int32Array(2 * edits + 1);
    trace.push(places);
    for (let k = -edits; k <= edits; k += 2) {
      let x = edits === 0 ? 0 : entry(trace, edits, k).x;
      while (x < before.length && x - k < after.length && before[x] === after[x - k]) x += 1;
      places[k + edits] = x;
      if (x >= before.length && x - k >= after.length) return trace;
    }
  }
  return null;
}

/** Where the way with so many edits comes to a diagonal: from the one below by a removal, from the one above by an addition. */
function entry(
  trace: readonly Int32Array[],
  edits: number,
  k: number,
): { readonly x: number; readonly isRemoval: boolean } {
  const at = (diagonal: number): number =>
    Math.abs(diagonal) > edits - 1 ? -1 : (trace[edits - 1]?.[diagonal + edits - 1] ?? -1);
  const [below, above] = [at(k - 1), at(k + 1)];
  return below >= above ? { x: below + 1, isRemoval: true } : { x: above, isRemoval: false };
}

function shortest(before: readonly string[], after: readonly string[]): readonly LineChange[] | null {
  const trace = furthest(before, after);
  if (trace === null) return null;
  const changes: LineChange[] = [];
  let [x, y] = [before.length, after.length];
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const came = edits === 0 ? { x: 0, isRemoval: false } : entry(trace, edits, x - y);
    for (; x > came.x; x -= 1, y -= 1) changes.push(same(before[x - 1] ?? ''));
    if (edits === 0) break;
    if (came.isRemoval) changes.push(removed(before[--x] ?? ''));
    else changes.push(added(after[--y] ?? ''));
  }
  return changes.reverse();
}
