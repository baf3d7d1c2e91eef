/** Relative times and durations, with the exact time as a tooltip. */
import { signal } from '@preact/signals';
import { agoText, tickingText } from '../record/durations.js';
import { isServiceDown } from './states.js';

/** How far the browser's clock is ahead of the service's, in milliseconds. */
let aheadMs = 0;
/** Smaller differences are ignored: the service sends its time in whole seconds. */
const CLOSE_MS = 5_000;

/** The service's time, in milliseconds since 1970. @param ms a time of the browser's clock */
export function serviceTime(ms = Date.now()): number {
  return ms - aheadMs;
}

/** Makes the page use the service's clock. @param date the `Date` header of a response */
export function setServiceClock(date: string | null): void {
  const ms = Date.now() - Date.parse(date ?? '');
  if (Math.abs(ms) < CLOSE_MS || Number.isNaN(ms)) return;
  aheadMs = ms;
  now.value = serviceTime();
}

/** The service's time, in milliseconds since 1970; updated once a second while the page is visible and the service answers. */
export const now = signal(serviceTime());

/** Starts updating `now`. Call once. */
export function startClock(): void {
  window.setInterval(() => {
    if (!document.hidden && !isServiceDown.value) now.value = serviceTime();
  }, 1_000);
}

/** The time since `at` (ISO 8601), such as `3 min ago`. */
export function Ago({ at }: { readonly at: string }) {
  return (
    <time datetime={at} title={dateTimeText(at)}>
      {agoText(now.value - Date.parse(at))}
    </time>
  );
}

/** The duration since `at`, such as `3 min`. */
export function Since({ at }: { readonly at: string }) {
  return (
    <time datetime={at} title={`since ${dateTimeText(at)}`}>
      {tickingText(now.value - Date.parse(at))}
    </time>
  );
}

/** Shared: creating it costs more than a thousand uses. */
const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** Date and time in the user's time zone. */
export function dateTimeText(at: string): string {
  return DATE_TIME.format(new Date(at));
}
