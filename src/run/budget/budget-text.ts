/** Amounts of budgets in words, for errors. */
import type { Reservation, RunBudget, RunPausedData } from '../../generated/schemas.js';
import { roundedDollars } from '../../system/dollars.js';
import { budgetText, limitsText } from '../cost-text.js';

/** What a run's next calls need, in the limits of its budget: a sentence. */
export function needText({ usd, tokens }: Pick<RunBudget, 'usd' | 'tokens'>, needed: Reservation): string {
  if (usd !== null && needed.usd === null)
    return 'A model of the next calls has no price: no budget in US dollars holds';
  // Earlier versions recorded sums of binary fractions.
  const neededUsd = needed.usd === null ? null : roundedDollars(needed.usd);
  const limits = { usd: usd === null ? null : neededUsd, tokens: tokens === null ? null : needed.tokens };
  return `The next calls need a total budget of at least ${limitsText(limits)}`;
}

/** At a pause for the budget: what the run has spent, and the total that its next calls need. Two sentences. */
export function spendingText({ spent, needed, ...limits }: NonNullable<RunPausedData['budget']>): string {
  const used = budgetText({ ...limits, spentUsd: spent.usd, spentTokens: spent.tokens });
  return `${used} spent. ${needText(limits, needed)}.`;
}
