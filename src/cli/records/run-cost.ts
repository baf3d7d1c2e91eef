/** What a run has cost, folded from its export: the state that the service answers has no cost. */
import { readExport } from '../../audit/export.js';
import type { RunEffort } from '../../run/effort.js';
import type { RunSpending } from '../../run/budget/spending.js';
import type { RunState } from '../../run/state.js';
import { assertRunEvent, foldNext } from '../../run/stream.js';
import type { RunRecords } from './record.js';
import { linesIn } from './record.js';

export interface RunCost {
  readonly effort: RunEffort;
  /** What is spent of its budget, or null if it has none. */
  readonly spending: RunSpending | null;
}

/** The cost of a run after one of its events, or null if a later version of the service has recorded it. */
export async function runCost(records: RunRecords, runId: string, seq: number): Promise<RunCost | null> {
  let run: RunState | null = null;
  for await (const event of readExport(runId, linesIn(records.export(runId), runId))) {
    if (event.seq > seq) break;
    try {
      assertRunEvent(event);
    } catch {
      return null;
    }
    run = foldNext(runId, run, event);
  }
  return run;
}
