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
 * @throws {LogUnavailable | LogClosed | LogFull | LogCorrupt} when the log does not answer, takes nothing or is damaged
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

/** Heads kept to measure the lag, and the least time between two: together they cover more than `MAX_LAG_MS`. */
const MAX_HEADS = 12;
const HEAD_EVERY_MS = 1_000;

/**
 * Measures how long the read models have been behind, in milliseconds: since the oldest head that it was given and that
 * they have not reached. It sees a lag only from the first question on, and to about a second.
 */
function lagMeter({
  projector,
  system,
}: Pick<ReadinessDeps, 'projector' | 'system'>): (head: Position | null) => number {
  const missing: { readonly head: Position | null; readonly sinceMs: number }[] = [];
  return (head) => {
    const nowMs = system.monotonicMs();
    const last = missing.at(-1);
    const isDue = last === undefined || nowMs - last.sinceMs >= HEAD_EVERY_MS;
    if (isDue && missing.length < MAX_HEADS) missing.push({ head, sinceMs: nowMs });
    while (missing[0] !== undefined && projector.hasReached(missing[0].head)) missing.shift();
    return missing[0] === undefined ? 0 : nowMs - missing[0].sinceMs;
  };
}
