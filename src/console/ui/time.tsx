/** Times: how long ago, how long; with the exact moment beside it. */
import { signal } from '@preact/signals';
import { agoText, tickingText } from '../record/durations.js';

/** How far this machine's clock is ahead of the service's, in milliseconds. */
let aheadMs = 0;
/** What may lie between two clocks that are right: the service tells its time in whole seconds. */
const CLOSE_MS = 5_000;

/** The service's time now, or at another moment of this machine's clock; in milliseconds since 1970. */
export function serviceTime(ms = Date.now()): number {
  return ms - aheadMs;
}

/** Goes by the service's clock from here on: all times are told by it. @param date as an answer's header tells it */
export function goBy(date: string | null): void {
  const ms = Date.now() - Date.parse(date ?? '');
  if (Math.abs(ms) < CLOSE_MS || Number.isNaN(ms)) return;
  aheadMs = ms;
  now.value = serviceTime();
}

/** The time now, in milliseconds since 1970; it moves on once a second while the page is looked at. */
export const now = signal(serviceTime());

/** Lets `now` move. To be called once. */
export function startClock(): void {
  window.setInterval(() => {
    if (!document.hidden) now.value = serviceTime();
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
      {tickingText(now.value - Date.parse(at))}
    </time>
  );
}

/** To be made once: making it costs more than a thousand uses. */
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** Date and time in the reader's zone. */
export function exactly(at: string): string {
  return MOMENT.format(new Date(at));
}
