/** Amounts of budgets in words, for errors. */
import type { Reservation, RunBudget, RunPausedData } from '../../generated/schemas.js';
import { budgetText, limitsText } from '../cost-text.js';

/** What a run's next calls need, in the limits of its budget: a sentence. */
export function needText({ usd, tokens }: Pick<RunBudget, 'usd' | 'tokens'>, needed: Reservation): string {
  if (usd !== null && needed.usd === null)
    return 'A model of the next calls has no price: no budget in US dollars holds';
  const limits = { usd: usd === null ? null : needed.usd, tokens: tokens === null ? null : needed.tokens };
  return `The next calls need a total budget of at least ${amountText(limits)}`;
}

/** At a pause for the budget: what the run has spent, and the total that its next calls need. Two sentences. */
export function spendingText({ spent, needed, ...limits }: NonNullable<RunPausedData['budget']>): string {
  const used = budgetText({ ...limits, spentUsd: spent.usd, spentTokens: spent.tokens });
  return `${used} spent. ${needText(limits, needed)}.`;
}

/** Amounts in words, for errors. Dollars are rounded up, so that a budget of the amount shown suffices. */
export function amountText({ usd, tokens }: Pick<RunBudget, 'usd' | 'tokens'>): string {
  return limitsText({ usd: usd === null ? null : dollarsUp(usd), tokens });
}

/** US dollars rounded up to a millionth. */
export function dollarsUp(usd: number): number {
  const millionths = Math.ceil(usd * 1e6);
  // The product of a sum with the noise of binary fractions may round down to a whole number.
  return (millionths / 1e6 < usd ? millionths + 1 : millionths) / 1e6;
}
