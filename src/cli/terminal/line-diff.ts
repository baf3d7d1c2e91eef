/** What changed between two lists of lines: the shortest way from one to the other. */
import { diffArrays } from 'diff';

export interface LineChange {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Edits up to which the shortest way is sought; time grows with their square, 0.1 s here. Beyond, all between is replaced. */
const MAX_EDITS = 1_000;

export function lineDiff(before: readonly string[], after: readonly string[]): readonly LineChange[] {
  const found = diffArrays([...before], [...after], { maxEditLength: MAX_EDITS });
  if (found === undefined) return replaced(before, after);
  return found.flatMap(({ value, removed, added }) => lines(removed ? 'removed' : added ? 'added' : 'same', value));
}

/** All but what both begin and end with. */
function replaced(before: readonly string[], after: readonly string[]): readonly LineChange[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return [
    ...lines('same', before.slice(0, head)),
    ...lines('removed', before.slice(head, before.length - tail)),
    ...lines('added', after.slice(head, after.length - tail)),
    ...lines('same', before.slice(before.length - tail)),
  ];
}

function lines(kind: LineChange['kind'], texts: readonly string[]): readonly LineChange[] {
  return texts.map((text) => ({ kind, text }));
}
