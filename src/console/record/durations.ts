/** Durations as text. */

/** A past time, such as `3 min ago`. */
export function agoText(ms: number): string {
  return ms < 5_000 ? 'just now' : `${lengthText(ms)} ago`;
}

/** A duration that changes on the page, in whole seconds, such as `4 s`. */
export function tickingText(ms: number): string {
  return ms < 10_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : lengthText(ms);
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A duration in its two largest units, such as `2 h 5 min`. */
export function lengthText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const first = UNITS.findIndex(([, size]) => ms >= size);
  const parts: string[] = [];
  let rest = ms;
  for (const [name, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
  }
  return parts.join(' ');
}
