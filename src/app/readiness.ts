/** Whether an engine can take work. */
import type { Cluster } from '../cluster/cluster.js';
import type { EventLog, Position } from '../eventlog/port.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { System } from '../system/system.js';
import type { DocumentServices } from './documents.js';

/**
 * How long the read models may be behind the log before the service is not ready, in milliseconds. With less, a load
 * balancer takes away an instance that is only busy; with more, clients meet more lists that answer 503.
 */
const MAX_LAG_MS = 10_000;

export interface ReadinessDeps {
  readonly log: EventLog;
  readonly projector: Projector;
  readonly library: Pick<DocumentServices, 'hasCaughtUp'>;
  readonly history: Pick<History, 'isWritable'>;
  readonly cluster: Pick<Cluster, 'isFenced'> | null;
  readonly system: Pick<System, 'monotonicMs'>;
}

/**
 * Whether the log answers, and the read models have caught up since the start, are not far behind and can be written.
 *
 * @throws {LogUnavailable | LogClosed | LogFull | LogDamaged} when the log does not answer, takes nothing or is damaged
 */
export function readiness({
  log,
  projector,
  library,
  history,
  cluster,
  system,
}: ReadinessDeps): () => Promise<boolean> {
  const lagMs = lagMeter({ projector, system });
  return async () => {
    await log.ping();
    const isReady = projector.isCaughtUp && library.hasCaughtUp() && history.isWritable && cluster?.isFenced !== true;
    return lagMs(await log.head()) <= MAX_LAG_MS && isReady;
  };
}

/**
 * Measures how long the read models have been behind, in milliseconds: since the first head was given to it that they
 * have not reached. The more often it is asked, the more exact it is.
 */
function lagMeter({
  projector,
  system,
}: Pick<ReadinessDeps, 'projector' | 'system'>): (head: Position | null) => number {
  let missing: { readonly head: Position | null; readonly sinceMs: number } | null = null;
  return (head) => {
    const nowMs = system.monotonicMs();
    if (missing === null || projector.hasReached(missing.head)) missing = { head, sinceMs: nowMs };
    return projector.hasReached(missing.head) ? 0 : nowMs - missing.sinceMs;
  };
}
