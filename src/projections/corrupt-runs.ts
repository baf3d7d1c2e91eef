/**
 * The runs whose record was found not to bear out: none of them is shown as true again. They are kept beside the stored
 * views, and lost with them; whoever reads such a run then finds it again. One small entry a damaged run is kept in
 * memory.
 */
import { RunCorrupt } from '../errors.js';
import type { RunSummary } from './run-summary.js';

/** What the list says of a damaged run (contract, section 4). */
export const CORRUPT_ERROR = 'The record of this run is damaged';

/** Where a run's record first fails to bear out, and why. */
export interface Corruption {
  readonly runId: string;
  /** Revision of the event. */
  readonly seq: number;
  readonly reason: string;
}

export interface CorruptRunsOptions {
  /** Those found before. */
  readonly known: readonly Corruption[];
  readonly store: (corruption: Corruption) => Promise<void>;
  /** Told of each once, when it is found. */
  readonly onFound: (error: RunCorrupt) => void;
  readonly onFault: (error: unknown) => void;
}

export class CorruptRuns {
  readonly #options: CorruptRunsOptions;
  readonly #found: Map<string, Corruption>;

  constructor(options: CorruptRunsOptions) {
    this.#options = options;
    this.#found = new Map(options.known.map((each) => [each.runId, each]));
  }

  has(runId: string): boolean {
    return this.#found.has(runId);
  }

  /** Takes note of a run. */
  found(error: RunCorrupt): void {
    const { runId } = error.data;
    if (this.#found.has(runId)) return;
    const { store, onFound, onFault } = this.#options;
    this.#found.set(runId, error.data);
    onFound(error);
    store(error.data).catch(onFault);
  }

  /** @throws {RunCorrupt} for a run that was found damaged */
  assertNotCorrupt(runId: string): void {
    const corruption = this.#found.get(runId);
    if (corruption !== undefined) throw new RunCorrupt(corruption);
  }

  /** A run as the list may show it: of a damaged one nothing but what it was started as. */
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
      session: null,
    };
  }
}
