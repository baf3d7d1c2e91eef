/** The service that sent this page, by its typed client; whether it answers, and what waits there for a human. */
import { CouncilClient } from '../../client/client.js';
import { isAway } from '../ui/states.js';
import { Waiting } from './waiting.js';

let outages = 0;

/** Without a key: the browser sends its session by itself. */
export const council = new CouncilClient({
  url: window.location.origin,
  retry: {
    onWait() {
      outages += 1;
      isAway.value = true;
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
      () => (isAway.value = false),
      () => watchForReturn(since),
    );
  }, 1_000);
}
