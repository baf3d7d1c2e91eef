/**
 * The runs whose record is corrupt, which are not served as valid again. They are stored in the views. If the service
 * finds no views at its start, the fold, or the next read of such a run, finds it again. Memory holds one small entry per
 * corrupt run.
 */
import { RunCorrupt } from '../run/errors.js';
import type { RunSummary } from './run-summary.js';

/** The list's error for a corrupt run. */
const CORRUPT_ERROR = 'The record of this run is damaged';

/** Where a run's record first fails verification, and why. */
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
  /** Those found before. */
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

  /** Unmarks a run whose whole record was found valid: its log was repaired. */
  unmark(runId: string): void {
    if (!this.#found.delete(runId)) return;
    const { remove, onFault } = this.#options;
    remove(runId).catch(onFault);
  }

  /** @throws {RunCorrupt} for a run that was found corrupt */
  assertNotCorrupt(runId: string): void {
    const corruption = this.#found.get(runId);
    if (corruption !== undefined) throw new RunCorrupt(corruption);
  }

  /** A run as the list may show it: of a corrupt one only how it was started. */
  shown(run: RunSummary): RunSummary {
    if (!this.has(run.id)) return run;
    return {
      ...run,
      status: 'failed',
      owner: null,
      activeNode: null,
      finalDraft: null,
      criticScore: null,
      iterationCount: null,
      error: CORRUPT_ERROR,
      completedAt: null,
      waitingSince: null,
      deadlineAt: null,
      approvers: null,
      waitedMs: null,
      usage: null,
      session: null,
    };
  }
}
