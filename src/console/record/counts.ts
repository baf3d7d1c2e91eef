/** Short texts for counts, and excerpts of long texts. */

/** Longest excerpt that a sentence quotes, in characters. */
const EXCERPT_CHARS = 120;

/** A count in at most four characters: `950`, `1.2k`, `34k`, `1.5M`. */
export function shortCount(count: number): string {
  if (count < 1_000) return String(Math.round(count));
  const [size, unit] = count < 999_500 ? [1_000, 'k'] : [1_000_000, 'M'];
  const share = count / size;
  return `${share < 9.95 ? share.toFixed(1).replace(/\.0$/, '') : Math.round(share)}${unit}`;
}

/** A number of things, such as `1 draft`. */
export function countOf(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}

/** The beginning of a text, on one line. */
export function excerpt(text: string, most = EXCERPT_CHARS): string {
  const line = text
    .slice(0, 4 * most)
    .replace(/\s+/g, ' ')
    .trim();
  const points = [...line];
  return points.length <= most && text.length <= 4 * most ? line : `${points.slice(0, most - 1).join('')}…`;
}

/** A computed number with at most two decimals. */
export function figureText(value: number): string {
  return String(Number(value.toFixed(2)));
}
