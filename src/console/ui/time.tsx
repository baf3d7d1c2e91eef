/** Times: how long ago, how long; with the exact moment beside it. */
import { signal } from '@preact/signals';

/** The time now, in milliseconds since 1970; it moves on once a second while the page is looked at. */
export const now = signal(Date.now());

/** Lets `now` move. To be called once. */
export function startClock(): void {
  window.setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1_000);
}

/** The moment `at` (ISO 8601) as time from now, such as `3 min ago`. */
export function Ago({ at }: { readonly at: string }) {
  return (
    <time datetime={at} title={exactly(at)}>
      {agoText(now.value - Date.parse(at))}
    </time>
  );
}

/** How long something lasts since `at`. */
export function Since({ at }: { readonly at: string }) {
  return (
    <time datetime={at} title={`since ${exactly(at)}`}>
      {lengthText(now.value - Date.parse(at))}
    </time>
  );
}

/** Date and time in the reader's zone. */
export function exactly(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

export function agoText(ms: number): string {
  return ms < 5_000 ? 'just now' : `${lengthText(ms)} ago`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A length of time by its two largest units at most, such as `2 h 5 min`. */
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
