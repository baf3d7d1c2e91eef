/**
 * The appends of this instance that the subscription has not delivered yet, with the state that each leads to. A state that
 * was folded to decide an append is not folded again to show it.
 */
import type { RecordedEvent } from '../../eventlog/port.js';
import type { SealedAppend } from '../../eventsourcing/handle-command.js';
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

/** An append of sealed facts, before it is made. */
export function ownAppend(
  { events, recorded }: Pick<SealedAppend<RunFact>, 'events' | 'recorded'>,
  { before, after }: Pick<OwnAppend, 'before' | 'after'>,
): OwnAppend {
  let characters = 0;
  for (const { data } of events) characters += data.length;
  return { before, events: recorded, characters, after };
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
   * Remembers an append before it makes it, because the subscription may deliver it before the log acknowledges it.
   */
  async during<T>(append: OwnAppend, make: () => Promise<T>): Promise<T> {
    const { runId } = append.after;
    this.#newest.set(runId, append);
    try {
      const made = await make();
      for (const observer of this.#observers) observer.onRunAppended(append);
      return made;
    } catch (error) {
      if (this.#newest.get(runId) === append) this.#newest.delete(runId);
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
