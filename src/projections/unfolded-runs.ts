/**
 * Runs with events newer than their row, and these events as they came. The runs are neither live nor watched here, so
 * their rows are written only when rows are read; most have ended by then, and their last event holds all of the row.
 * Of a run with gaps, events of steps may have been left out (see projector.ts) and have not come at all.
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
  hasGaps: boolean;
}

/**
 * Events of the log for which one run with gaps may be read, and how many may besides. To read one costs as much as to
 * be sent a dozen events: where there are many pauses, or many runs that take long, all are better sent.
 */
const EVENTS_A_READ = 400;
const FREE_READS = 100;

export class UnfoldedRuns {
  readonly #bounds: typeof BOUNDS | { readonly events: number; readonly chars: number };
  /** The one that has waited longest first. */
  readonly #runs = new Map<string, Unfolded>();
  #came = 0;
  #chars = 0;
  #cameBeforeGaps = 0;
  #gapsRead = 0;

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
    let first: Position | undefined;
    for (const { since } of this.#runs.values()) {
      if (since === null) return null;
      if (first === undefined || since < first) first = since;
    }
    return first;
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
    const run = this.#known(runId, since);
    if (event === null) return;
    run.events.push(event);
    this.#chars += event.data.length;
  }

  /** From a position on events of a run's steps may be left out. */
  noteGap(runId: string, since: Position | null): void {
    this.#known(runId, since).hasGaps = true;
  }

  /** From now on events are left out. */
  beginGaps(): void {
    this.#cameBeforeGaps = this.#came;
    this.#gapsRead = 0;
  }

  /** Counts a run that was read because of its gap. */
  gapRead(): void {
    this.#gapsRead += 1;
  }

  get isReadTooOften(): boolean {
    return this.#gapsRead > FREE_READS + (this.#came - this.#cameBeforeGaps) / EVENTS_A_READ;
  }

  hasGaps(runId: string): boolean {
    return this.#runs.get(runId)?.hasGaps ?? false;
  }

  /** All that was left out has come; of a run that is not held nothing was, or it would have been loaded. */
  closeGaps(isHeld: (runId: string) => boolean): void {
    for (const [runId, run] of this.#runs) {
      if (isHeld(runId)) run.hasGaps = false;
      else if (run.hasGaps) this.#runs.delete(runId);
    }
  }

  #known(runId: string, since: Position | null): Unfolded {
    let run = this.#runs.get(runId);
    if (run === undefined) {
      run = { since, came: this.#came, events: [], hasGaps: false };
      this.#runs.set(runId, run);
    }
    return run;
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

  /** A run's row is put. */
  put(runId: string): void {
    this.take(runId);
    this.#runs.delete(runId);
  }

  /** Counts events of the log. */
  count(events: number): void {
    this.#came += events;
  }

  /** The run that has waited too long; null when none has. */
  get overdue(): string | null {
    for (const [runId, { came }] of this.#runs) {
      return this.#came - came > this.#bounds.events || this.#chars > this.#bounds.chars ? runId : null;
    }
    return null;
  }
}

const NONE: readonly RecordedEvent[] = [];
