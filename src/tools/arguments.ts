/** Reads the arguments that models give, each of which may be anything. */

/** A query as a tool takes it: one line, well-formed, cut; null for what is none. */
export function queryOf(given: unknown, maxCodePoints: number): string | null {
  if (typeof given !== 'string') return null;
  const line = given
    .slice(0, 4 * maxCodePoints)
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const query = [...line].slice(0, maxCodePoints).join('').trim();
  return query === '' ? null : query;
}

/** A count between bounds: numbers are rounded and drawn to the nearest bound, also when written as text; else the fallback. */
export function countOf(
  given: unknown,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): number {
  const number = typeof given === 'string' && /^\d{1,6}$/.test(given.trim()) ? Number(given) : given;
  if (typeof number !== 'number' || Number.isNaN(number)) return fallback;
  return Math.min(max, Math.max(min, Math.round(number)));
}
