/** How a run ended, in words that need more than its last event. */
import type { RunEvent } from '../../client/run-events.js';
import type { BudgetEnd } from '../../run/budget/end.js';
import { BUDGET_ENDS, budgetEndOf, REJECTED } from '../../run/budget/end.js';
import { runFailureText } from '../../run/failure-texts.js';
import { countOf } from './counts.js';
import type { Names } from './page-words.js';
import { withLabels } from './page-words.js';

/** How its budget has ended a run at an event, or null if it has not. */
export function budgetEndAt(events: readonly RunEvent[], seq: number): BudgetEnd | null {
  const last = events[seq];
  if (last?.type !== 'RunCompleted' && last?.type !== 'RunFailed') return null;
  return budgetEndOf(
    last,
    events.slice(0, seq).findLast(({ type }) => type === 'RunPaused'),
  );
}

/** The error of a run at an event: the recorded one with labels, but it names the budget if a human rejected that pause. */
export function errorAt(events: readonly RunEvent[], seq: number, names: Names): string | null {
  const last = events[seq];
  if (last?.type !== 'RunFailed') return null;
  const end = budgetEndAt(events, seq);
  return end === null ? withLabels(last.data.error, names) : BUDGET_ENDS[end];
}

type Data<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>['data'];

/** That a run completed, and with what. */
export function endText({ criticScore, iterationCount, finalDraft, endedBy }: Data<'RunCompleted'>): string {
  const score = criticScore === null ? '' : ` with score ${criticScore}`;
  const drafts = iterationCount === null ? '' : ` after ${countOf(iterationCount, 'draft')}`;
  const what = `${drafts}${score}${finalDraft === null ? ', without a draft' : ''}`;
  if (endedBy === 'budget') return `The council stopped at the budget${what}; later nodes did not run.`;
  return `The council finished${what}.`;
}

/** Why a run ended without a result. */
export function failureText(
  { kind, error, node, actor = null }: Data<'RunFailed'>,
  names: { readonly node: (id: string) => string },
): string {
  const by = kind === 'cancelled' && actor !== null ? ` ${actor} cancelled it.` : '';
  const at = node === null || kind === 'cancelled' || kind === 'rejected' ? '' : ` At ${names.node(node)}:`;
  // The record names God Mode also at a pause for the budget.
  const why = error === REJECTED ? '' : ` ${error}`;
  return `${runFailureText(kind).what}${by}${at}${why}`;
}
