/**
 * Runs with events newer than their row, and these events as they came. The runs are neither live nor watched here, so
 * their rows are written only when rows are read; most have ended by then, and their last event holds all of the row.
 */
import type { Position, RecordedEvent } from '../eventlog/port.js';

/** What may have come since the oldest: it is folded again after a crash, and these are kept in memory. */
const BOUNDS = {
  /** Events of the log; about a second's worth of folding. */
  events: 50_000,
  /** UTF-16 units of data that is kept. */
  chars: 64_000_000,
} as const;

interface Unfolded {
  /** Everything up to there is folded. */
  readonly since: Position | null;
  /** How many events had come from the log before its first. */
  readonly came: number;
  events: RecordedEvent[];
}

export class UnfoldedRuns {
  readonly #bounds: typeof BOUNDS | { readonly events: number; readonly chars: number };
  /** The one that has waited longest first. */
  readonly #runs = new Map<string, Unfolded>();
  #came = 0;
  #chars = 0;

  constructor(bounds: { readonly events: number; readonly chars: number } = BOUNDS) {
    this.#bounds = bounds;
  }

  get ids(): readonly string[] {
    return [...this.#runs.keys()];
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Position up to which every run's row is put; undefined: all are. */
  get since(): Position | null | undefined {
    for (const { since } of this.#runs.values()) return since;
    return undefined;
  }

  /** Revision of the last event kept of a run; null: none is. */
  last(runId: string): number | null {
    return this.#runs.get(runId)?.events.at(-1)?.revision ?? null;
  }

  /**
   * Keeps an event of a run, or only that its row is to be put.
   *
   * @param since position up to which everything was folded before the event
   */
  add(runId: string, since: Position | null, event: RecordedEvent | null): void {
    let run = this.#runs.get(runId);
    if (run === undefined) {
      run = { since, came: this.#came, events: [] };
      this.#runs.set(runId, run);
    }
    if (event === null) return;
    run.events.push(event);
    this.#chars += event.data.length;
  }

  /** A run's events, which are not kept any more. */
  take(runId: string): readonly RecordedEvent[] {
    const run = this.#runs.get(runId);
    if (run === undefined) return NONE;
    const { events } = run;
    for (const { data } of events) this.#chars -= data.length;
    run.events = [];
    return events;
  }

  /** A run's row is put, all its events are taken. */
  put(runId: string): void {
    this.#runs.delete(runId);
  }

  /** Counts an event of the log; the run that has waited too long, null when none has. */
  overdue(): string | null {
    this.#came += 1;
    for (const [runId, { came }] of this.#runs) {
      return this.#came - came > this.#bounds.events || this.#chars > this.#bounds.chars ? runId : null;
    }
    return null;
  }
}

const NONE: readonly RecordedEvent[] = [];
