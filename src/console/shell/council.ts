/** The service that sent this page, by its typed client; whether it answers, and what waits there for a human. */
import { signal } from '@preact/signals';
import { CouncilClient } from '../../client/client.js';
import { Waiting } from './waiting.js';

/** Why the service is waited for; null: it answers. */
export const outage = signal<string | null>(null);

let outages = 0;

/** Without a key: the browser sends its session by itself. */
export const council = new CouncilClient({
  url: window.location.origin,
  retry: {
    onWait({ error }) {
      outages += 1;
      outage.value = error.message;
      watchForReturn(outages);
    },
  },
});

/** For the number in the frame, the inbox, and notices. */
export const waiting = new Waiting(council.approvals, (ms, act) => window.setTimeout(act, ms));

/** Asks until the service answers again. */
function watchForReturn(since: number): void {
  window.setTimeout(() => {
    if (since !== outages) return;
    council.health().then(
      () => (outage.value = null),
      () => watchForReturn(since),
    );
  }, 1_000);
}
