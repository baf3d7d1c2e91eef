/**
 * The runs whose record is corrupt. The service shows them as corrupt until their record is valid again. The views
 * store them. After a loss of the views, the fold or the next read of the run finds them again. Each takes a small
 * entry in memory.
 */
import { RunCorrupt } from '../run/errors.js';
import type { RunSummary } from './run-summary.js';
import { asCorrupt } from './run-summary.js';

/** The first fault in the record of a run. */
export interface Corruption {
  readonly runId: string;
  /** Revision of the event. */
  readonly seq: number;
  readonly reason: string;
}

/** Receives each run once, when it is found corrupt. */
export interface CorruptRunObserver {
  onRunCorrupt(error: RunCorrupt): void;
}

export interface CorruptRunsOptions {
  /** The stored ones. */
  readonly known: readonly Corruption[];
  readonly store: (corruption: Corruption) => Promise<void>;
  readonly remove: (runId: string) => Promise<void>;
  readonly onFault: (error: unknown) => void;
}

export class CorruptRuns {
  readonly #options: CorruptRunsOptions;
  readonly #found: Map<string, Corruption>;
  readonly #observers: CorruptRunObserver[] = [];

  constructor(options: CorruptRunsOptions) {
    this.#options = options;
    this.#found = new Map(options.known.map((each) => [each.runId, each]));
  }

  subscribe(...observers: readonly CorruptRunObserver[]): void {
    this.#observers.push(...observers);
  }

  all(): readonly Corruption[] {
    return [...this.#found.values()];
  }

  has(runId: string): boolean {
    return this.#found.has(runId);
  }

  /** Marks a run as corrupt. */
  mark(error: RunCorrupt): void {
    const { runId } = error.data;
    if (this.#found.has(runId)) return;
    const { store, onFault } = this.#options;
    this.#found.set(runId, error.data);
    for (const observer of this.#observers) observer.onRunCorrupt(error);
    store(error.data).catch(onFault);
  }

  /** Unmarks a run whose complete record is valid, because the operator restored the log. */
  unmark(runId: string): void {
    if (!this.#found.delete(runId)) return;
    const { remove, onFault } = this.#options;
    remove(runId).catch(onFault);
  }

  /** @throws {RunCorrupt} for a marked run */
  assertNotCorrupt(runId: string): void {
    const corruption = this.#found.get(runId);
    if (corruption !== undefined) throw new RunCorrupt(corruption);
  }

  /** A run as the list shows it. */
  shown(run: RunSummary): RunSummary {
    return this.has(run.id) ? asCorrupt(run) : run;
  }
}
