/** The prompt at a pause for the budget: what is spent and needed, and the new totals that the user types. */
import type { BudgetChange, BudgetStatus } from '../../generated/schemas.js';
import type { Unit } from '../commands/budget-options.js';
import { amountOf } from '../commands/budget-options.js';
import { spendingText } from '../../run/budget/budget-text.js';

export const BUDGET_QUESTION =
  'approve tokens=N usd=N (new totals, one or both), or reject (a, r; a comment may follow)?';

/** What the pause says. */
export function budgetPauseText(next: readonly string[], budget: BudgetStatus): string {
  const { usd, tokens, needed_usd: neededUsd = null, needed_tokens: neededTokens = 0 } = budget;
  const spent = { usd: budget.spent_usd, tokens: budget.spent_tokens };
  const text = spendingText({ usd, tokens, spent, needed: { usd: neededUsd, tokens: neededTokens } });
  return `Paused for its budget before ${next.join(', ')}: ${text}`;
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
