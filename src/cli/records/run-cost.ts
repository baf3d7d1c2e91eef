/** What a run has cost, and how its budget ended it. Reads its events, because the state that the service returns has neither. */
import type { RunEffort } from '../../run/effort.js';
import type { BudgetEnd } from '../../run/budget/end.js';
import { BUDGET_ENDS, REJECTED, budgetEndOf } from '../../run/budget/end.js';
import type { FoldedRun } from '../../generated/schemas.js';
import type { RunSpending } from '../../run/budget/spending.js';
import type { RunEvent } from '../../run/events.js';
import type { RunState } from '../../run/state.js';
import { assertRunEvent, foldNext } from '../../run/stream.js';
import type { RunRecords } from './record.js';

export interface RunCost {
  readonly effort: RunEffort;
  /** What is spent of its budget, or null if it has none. */
  readonly spending: RunSpending | null;
  /** How its budget has ended the run, or null if it has not. */
  readonly budgetEnd: BudgetEnd | null;
}

/** The cost of a run after one of its events, or null if a later version of the service has recorded it. */
export async function runCost(records: RunRecords, runId: string, seq: number): Promise<RunCost | null> {
  let [run, lastPause, budgetEnd]: [RunState | null, RunEvent | null, BudgetEnd | null] = [null, null, null];
  for await (const event of records.events(runId)) {
    if (event.seq > seq) break;
    try {
      assertRunEvent(event);
    } catch {
      return null;
    }
    run = foldNext(runId, run, event);
    if (event.type === 'RunPaused') lastPause = event;
    budgetEnd = budgetEndOf(event, lastPause);
  }
  return run === null ? null : { effort: run.effort, spending: run.spending, budgetEnd };
}

/** The run, with an error that names the pause for the budget if a human rejected it. The recorded error always names God Mode. */
export async function withNamedEnd(records: RunRecords, run: FoldedRun): Promise<FoldedRun> {
  if (run.error !== REJECTED) return run;
  const cost = await runCost(records, run.run_id, run.seq);
  return cost?.budgetEnd === 'rejected' ? { ...run, error: BUDGET_ENDS.rejected } : run;
}
