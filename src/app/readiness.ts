/** Whether a context can take work. */
import type { Cluster } from '../cluster/cluster.js';
import type { EventLog, Position } from '../eventlog/port.js';
import { MAX_WAIT_MS } from '../projections/read-up-to-date.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { System } from '../system/system.js';
import type { Documents } from './documents.js';

/**
 * Most heads kept to measure the lag, and the shortest time between two of them. Together they cover more than
 * `MAX_WAIT_MS`.
 */
const MAX_HEADS = 12;
const HEAD_EVERY_MS = 1_000;

export interface ReadinessDeps {
  readonly log: EventLog;
  readonly projector: Projector;
  readonly documents: Pick<Documents, 'hasCaughtUp'>;
  readonly history: Pick<History, 'isWritable'>;
  readonly cluster: Pick<Cluster, 'isFenced'> | null;
  readonly system: Pick<System, 'monotonicMs'>;
}

export class Readiness {
  readonly #deps: ReadinessDeps;
  /** Heads of the log that the read models have not reached, oldest first. */
  readonly #missing: { readonly head: Position | null; readonly sinceMs: number }[] = [];

  constructor(deps: ReadinessDeps) {
    this.#deps = deps;
  }

  /**
   * Whether the log answers, and the read models have caught up since the start, are not so far behind that lists get 503,
   * and can be written.
   *
   * @throws {LogUnavailable | LogClosed | LogFull | LogCorrupt} when the log does not answer, accepts nothing or is corrupt
   */
  async isReady(): Promise<boolean> {
    const { log, projector, documents, history, cluster } = this.#deps;
    await log.ping();
    const isReady = projector.isCaughtUp && documents.hasCaughtUp && history.isWritable && cluster?.isFenced !== true;
    return (await this.lagMs()) <= MAX_WAIT_MS && isReady;
  }

  /**
   * How long the read models have been behind the log, in milliseconds: the time since a call passed the oldest head
   * that they have not reached. It is exact to about a second, and does not know the time before the first call.
   */
  async lagMs(): Promise<number> {
    const { log, projector, system } = this.#deps;
    const head = await log.head();
    const nowMs = system.monotonicMs();
    const last = this.#missing.at(-1);
    const isDue = last === undefined || nowMs - last.sinceMs >= HEAD_EVERY_MS;
    if (isDue && this.#missing.length < MAX_HEADS) this.#missing.push({ head, sinceMs: nowMs });
    while (this.#missing[0] !== undefined && projector.hasReached(this.#missing[0].head)) this.#missing.shift();
    return this.#missing[0] === undefined ? 0 : nowMs - this.#missing[0].sinceMs;
  }
}
