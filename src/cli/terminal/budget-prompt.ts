/** The prompt at a pause for the budget: what is spent and needed, and the new totals that the user types. */
import type { BudgetChange, BudgetStatus } from '../../generated/schemas.js';
import type { Unit } from '../commands/budget-options.js';
import { amountOf } from '../commands/budget-options.js';
import { budgetText, limitsText } from '../../run/cost-text.js';

export const BUDGET_QUESTION =
  'approve tokens=N usd=N (new totals, one or both), or reject (a, r; a comment may follow)?';

/** What the pause says. */
export function budgetPauseText(next: readonly string[], budget: BudgetStatus): string {
  const { usd, tokens, spent_usd: spentUsd, spent_tokens: spentTokens } = budget;
  const { needed_usd: neededUsd = null, needed_tokens: neededTokens = 0 } = budget;
  const spent = budgetText({ usd, tokens, spentUsd, spentTokens });
  const head = `Paused for its budget before ${next.join(', ')}: ${spent} spent.`;
  if (usd !== null && neededUsd === null) return `${head} A model of the next calls has no price: reject the run.`;
  const needed = limitsText({ usd: usd && neededUsd, tokens: tokens && neededTokens });
  return `${head} To continue, the run needs a total of at least ${needed}.`;
}

/** The new totals at the beginning of a text, such as `tokens=20000 usd=0.5`, and the rest as a comment. */
export function budgetIn(text: string): { readonly budget: BudgetChange; readonly comment: string } {
  const [, unit, amountText = '', rest = ''] = /^(usd|tokens)=(\S+)\s*(.*)$/s.exec(text) ?? [];
  const amount = isUnit(unit) ? amountOf(unit, amountText) : null;
  if (!isUnit(unit) || amount === null) return { budget: {}, comment: text };
  const { budget, comment } = budgetIn(rest);
  return { budget: { [unit]: amount, ...budget }, comment };
}

function isUnit(text: string | undefined): text is Unit {
  return text === 'usd' || text === 'tokens';
}
