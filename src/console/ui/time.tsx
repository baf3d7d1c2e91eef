/** Times: how long ago, how long; with the exact moment beside it. */
import { signal } from '@preact/signals';
import { agoText, tickingText } from '../record/durations.js';

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
