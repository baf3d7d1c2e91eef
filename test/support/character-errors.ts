/** Levenshtein distance of two texts over code points, as a share of the wanted text's length. */
export function characterErrorRate(wanted: string, found: string): number {
  const [one, other] = [[...wanted], [...found]];
  let row = Uint32Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, character] of one.entries()) {
    const next = new Uint32Array(other.length + 1);
    next[0] = index + 1;
    for (const [at, candidate] of other.entries()) {
      const swapped = (row[at] ?? 0) + (candidate === character ? 0 : 1);
      next[at + 1] = Math.min(swapped, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1);
    }
    row = next;
  }
  return (row.at(-1) ?? 0) / Math.max(1, one.length);
}
