/** Counts and beginnings of texts, as they are told in few words. */

/** Most characters of a text that is quoted in a sentence. */
export const EXCERPT_CHARS = 120;

/** A count that is read at a glance: `950`, `1.2k`, `34k`, `1.5M`. */
export function shortCount(count: number): string {
  if (count < 1_000) return String(Math.round(count));
  const [size, unit] = count < 999_500 ? [1_000, 'k'] : [1_000_000, 'M'];
  const share = count / size;
  return `${share < 9.95 ? share.toFixed(1).replace(/\.0$/, '') : Math.round(share)}${unit}`;
}

/** A number of things, such as `1 draft`. */
export function countOf(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}

/** The beginning of a text on one line; of what people and models write only so much is looked at. */
export function excerpt(text: string, most = EXCERPT_CHARS): string {
  const line = text
    .slice(0, 4 * most)
    .replace(/\s+/g, ' ')
    .trim();
  const points = [...line];
  return points.length <= most && text.length <= 4 * most ? line : `${points.slice(0, most - 1).join('')}…`;
}
