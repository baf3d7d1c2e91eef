/** How a run ended, in words that one event alone does not tell. */
import type { RunEvent } from '../../client/run-events.js';
import type { BudgetEnd } from '../../run/budget/end.js';
import { BUDGET_ENDS, budgetEndOf } from '../../run/budget/end.js';

/** How its budget has ended a run at an event, or null if it has not. */
export function budgetEndAt(events: readonly RunEvent[], seq: number): BudgetEnd | null {
  const last = events[seq];
  if (last?.type !== 'RunCompleted' && last?.type !== 'RunFailed') return null;
  return budgetEndOf(
    last,
    events.slice(0, seq).findLast(({ type }) => type === 'RunPaused'),
  );
}

/** The error of a run at an event: that of its record, but it names the pause that was rejected. */
export function errorAt(events: readonly RunEvent[], seq: number): string | null {
  const last = events[seq];
  if (last?.type !== 'RunFailed') return null;
  const end = budgetEndAt(events, seq);
  return end === null ? last.data.error : BUDGET_ENDS[end];
}
