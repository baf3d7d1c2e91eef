/**
 * The appends of this instance that the subscription has not delivered yet, with the state that each leads to. A state that
 * was folded to decide an append is not folded again to show it.
 */
import type { EventLog, RecordedEvent } from '../../eventlog/port.js';
import type { Acknowledged, RetryPolicy } from '../../eventsourcing/append-with-retry.js';
import { appendWithRetry } from '../../eventsourcing/append-with-retry.js';
import type { SealedAppend } from '../../eventsourcing/aggregate.js';
import { BoundedMap } from '../../system/bounded-map.js';
import type { RunEvent, RunFact } from '../events.js';
import type { RunState } from '../state.js';

/** Most runs whose newest append is remembered. An append that is forgotten, the oldest first, is folded when it is delivered. */
const MAX_RUNS = 20_000;

export interface OwnAppend {
  /** The recorded run that it was decided on, or null if it begins the run. */
  readonly before: RunState | null;
  readonly events: readonly RunEvent[];
  /** Length of the data of its events, as recorded. */
  readonly characters: number;
  /** The run once it is recorded. */
  readonly after: RunState;
}

/** Receives the appends of this instance. */
export interface AppendObserver {
  /** Called once for each append to a run, when it is acknowledged. Must not throw. */
  onRunAppended(append: OwnAppend): void;
}

export class OwnAppends {
  /** By run, because the appends of one run are sequential. */
  readonly #newest: BoundedMap<string, OwnAppend>;
  readonly #observers: AppendObserver[] = [];

  constructor(maxRuns = MAX_RUNS) {
    this.#newest = new BoundedMap(maxRuns);
  }

  subscribe(...observers: readonly AppendObserver[]): void {
    this.#observers.push(...observers);
  }

  /** Runs whose newest append is remembered. */
  get size(): number {
    return this.#newest.size;
  }

  /**
   * Makes the append of sealed facts, retried by the policy. Remembers it before, because the subscription may deliver it
   * before the log acknowledges it.
   *
   * @throws as `appendWithRetry` does; the append is then forgotten
   */
  async append(
    log: Pick<EventLog, 'append'>,
    sealed: SealedAppend<RunFact>,
    { before, after, retryPolicy }: Pick<OwnAppend, 'before' | 'after'> & { readonly retryPolicy: RetryPolicy },
  ): Promise<Acknowledged> {
    let characters = 0;
    for (const { data } of sealed.events) characters += data.length;
    const own: OwnAppend = { before, events: sealed.recorded, characters, after };
    const { runId } = after;
    this.#newest.set(runId, own);
    try {
      const acknowledged = await appendWithRetry(log, sealed, retryPolicy);
      for (const observer of this.#observers) observer.onRunAppended(own);
      return acknowledged;
    } catch (error) {
      if (this.#newest.get(runId) === own) this.#newest.delete(runId);
      throw error;
    }
  }

  /**
   * The run after an event that the subscription delivers, or a later recorded state of it. Null if another instance
   * made the append, which the event's id shows, or if the append was forgotten.
   */
  stateAfter(runId: string, { revision, id }: Pick<RecordedEvent, 'revision' | 'id'>): RunState | null {
    const append = this.#newest.get(runId);
    if (append === undefined) return null;
    const { before, events, after } = append;
    if (before !== null && revision <= before.head.seq) return before;
    // Another instance has appended after it.
    if (revision > after.head.seq) this.#newest.delete(runId);
    if (!events.some((event) => event.seq === revision && event.id === id)) return null;
    if (revision === after.head.seq) this.#newest.delete(runId);
    return after;
  }
}
