/** The service that sent this page, by its typed client; whether it answers, and what waits there for a human. */
import { Approvals } from '../../client/approvals.js';
import { Blueprints } from '../../client/blueprints.js';
import { Documents } from '../../client/documents.js';
import type { FeedOptions } from '../../client/feed.js';
import { feedStream } from '../../client/feed.js';
import { openApi, pathOf } from '../../client/http.js';
import { Run } from '../../client/run.js';
import { Runs } from '../../client/runs.js';
import { Session } from '../../client/access.js';
import { hostSystem } from '../../client/system.js';
import { hostWebSocket } from '../../client/web-socket.js';
import { isAway } from '../ui/states.js';
import { Waiting } from './waiting.js';

let outages = 0;

/** Without a key: the browser sends its session by itself. */
const api = openApi({
  url: window.location.origin,
  ...{ key: undefined, fetch: undefined, webSocket: hostWebSocket(), system: hostSystem() },
  retry: {
    onWait() {
      outages += 1;
      isAway.value = true;
      watchForReturn(outages);
    },
  },
});

/** Of the client what the pages use, as it has it. */
export const council = {
  runs: new Runs(api),
  approvals: new Approvals(api),
  blueprints: new Blueprints(api),
  documents: new Documents(api),
  session: new Session(api),
  run: (id: string): Run => new Run(api, id),
  feed: (options: FeedOptions) => feedStream(api, options),
};

/** For the number in the frame, the inbox, and notices. */
export const waiting = new Waiting(council.approvals, (ms, act) => window.setTimeout(act, ms));

/** Asks until the service answers again. */
function watchForReturn(since: number): void {
  window.setTimeout(() => {
    if (since !== outages) return;
    api.json({ path: pathOf('health'), isRepeatable: false }).then(
      () => (isAway.value = false),
      () => watchForReturn(since),
    );
  }, 1_000);
}
