/** The typed client of the service that sent this page, and the pauses that wait for a decision. */
import type { About, LedgerState, Overview, PriceList, Readiness } from '../../generated/schemas.js';
import { Approvals } from '../../client/approvals.js';
import { Blueprints } from '../../client/blueprints.js';
import { Documents } from '../../client/documents.js';
import { UnreachableError } from '../../client/errors.js';
import type { FeedOptions } from '../../client/feed.js';
import { feedStream } from '../../client/feed.js';
import { openApi, pathOf } from '../../client/http.js';
import type { CallOptions } from '../../client/http.js';
import type { OverviewOptions } from '../../client/client.js';
import { listProviders } from '../../client/providers.js';
import { Run } from '../../client/run.js';
import { Runs } from '../../client/runs.js';
import { Keys, Session } from '../../client/access.js';
import { hostSystem } from '../../client/system.js';
import { Webhooks } from '../../client/webhooks.js';
import { hostWebSocket } from '../../client/web-socket.js';
import { isServiceDown } from '../ui/states.js';
import { PendingApprovals } from './pending-approvals.js';
import { basePath } from './router.js';

let outages = 0;

/** Has no key: the browser sends its session cookie. */
const api = openApi({
  url: window.location.origin + basePath,
  key: undefined,
  fetch: undefined,
  webSocket: hostWebSocket(),
  system: hostSystem(),
  retry: {
    onWait() {
      outages += 1;
      isServiceDown.value = true;
      watchForReturn(outages);
    },
  },
});

/** The parts of the client that the pages use. */
export const council = {
  runs: new Runs(api),
  approvals: new Approvals(api),
  blueprints: new Blueprints(api),
  documents: new Documents(api),
  session: new Session(api),
  keys: new Keys(api),
  run: (id: string): Run => new Run(api, id),
  providers: (options: CallOptions) => listProviders(api, options),
  webhooks: new Webhooks(api),
  about: ({ signal }: CallOptions): Promise<About> => api.json({ path: pathOf('about'), signal }),
  ledger: ({ signal }: CallOptions = {}): Promise<LedgerState> => api.json({ path: pathOf('ledger'), signal }),
  prices: ({ signal }: CallOptions): Promise<PriceList> => api.json({ path: pathOf('prices'), signal }),
  overview: ({ from, to, signal }: OverviewOptions): Promise<Overview> =>
    api.json({ path: pathOf('overview'), query: { from, to }, signal }),
  ready: ({ signal }: CallOptions): Promise<Readiness> =>
    api.json({ path: pathOf('health', 'ready'), signal, isRepeatable: false }),
  feed: (options: FeedOptions) => feedStream(api, options),
};

/** For the count in the navigation, the inbox and notifications. */
export const pendingApprovals = new PendingApprovals(council.approvals, (ms, act) => window.setTimeout(act, ms));

/** Waits until the service answers. Resolves with whether it was away before. */
export async function untilAnswer(): Promise<boolean> {
  const before = outages;
  const wasAway = isServiceDown.peek();
  for (;;) {
    try {
      await api.json({ path: pathOf('health') });
      isServiceDown.value = false;
      return wasAway || outages > before;
    } catch (error) {
      if (!(error instanceof UnreachableError)) return false;
    }
  }
}

/** Polls until the service answers. */
function watchForReturn(since: number): void {
  window.setTimeout(() => {
    if (since !== outages) return;
    api.json({ path: pathOf('health'), isRepeatable: false }).then(
      () => (isServiceDown.value = false),
      () => watchForReturn(since),
    );
  }, 1_000);
}
