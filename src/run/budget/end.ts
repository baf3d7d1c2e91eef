/** How its budget ended a run, in words that the record of a run does not hold. */
import { fieldOf } from '../../system/untrusted.js';

/** `finished`: the run completed with its draft at the budget. `rejected`: a human rejected its pause for the budget. */
export type BudgetEnd = 'finished' | 'rejected';

/** An event; of a later version of the service too. */
interface Recorded {
  readonly type: string;
  readonly data: unknown;
}

/**
 * How its budget has ended a run, or null if it has not. A rejection is recorded alike at every pause.
 *
 * @param last an event of the run
 * @param lastPause the last RunPaused before it, or null if there is none
 */
export function budgetEndOf(last: Recorded | undefined, lastPause: Recorded | null | undefined): BudgetEnd | null {
  if (last?.type === 'RunCompleted') return fieldOf(last.data, 'endedBy') === 'budget' ? 'finished' : null;
  if (last?.type !== 'RunFailed' || fieldOf(last.data, 'kind') !== 'rejected') return null;
  return fieldOf(lastPause?.data, 'reason') === 'budget' ? 'rejected' : null;
}

/** The recorded error of a rejected run, whatever the pause (contract, section 1). */
export const REJECTED = 'Rejected by the user in God Mode';

/** The end as the head of a sentence. */
export const BUDGET_ENDS: Readonly<Record<BudgetEnd, string>> = {
  finished: 'Stopped at the budget; later nodes did not run',
  rejected: 'Rejected at the pause for the budget',
};
