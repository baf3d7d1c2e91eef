/** The options that set the budget of a run, and the amounts that a user types. */
import type { Budget } from '../../generated/schemas.js';
import { UsageFault } from './exit-codes.js';

export const BUDGET_OPTIONS = {
  'budget-usd': { type: 'string' },
  'budget-tokens': { type: 'string' },
  'on-exceeded': { type: 'string' },
} as const;

type BudgetWords = { readonly [Name in keyof typeof BUDGET_OPTIONS]?: string | undefined };

const ON_EXCEEDED = ['pause', 'fail', 'finish'] as const;

/** The budget that the options describe, or null if there are none. @throws {UsageFault} */
export function budgetIn(values: BudgetWords): Budget | null {
  const { 'budget-usd': usd, 'budget-tokens': tokens, 'on-exceeded': exceeded } = values;
  if (usd === undefined && tokens === undefined) {
    if (exceeded === undefined) return null;
    throw new UsageFault('--on-exceeded needs --budget-usd or --budget-tokens');
  }
  const onExceeded = ON_EXCEEDED.find((each) => each === exceeded);
  if (exceeded !== undefined && onExceeded === undefined) {
    throw new UsageFault(`--on-exceeded takes pause, fail or finish; not "${exceeded}"`);
  }
  return {
    ...(usd !== undefined && { usd: amountIn('--budget-usd', 'usd', usd) }),
    ...(tokens !== undefined && { tokens: amountIn('--budget-tokens', 'tokens', tokens) }),
    ...(onExceeded !== undefined && { on_exceeded: onExceeded }),
  };
}

/** @throws {UsageFault} */
function amountIn(option: string, unit: Unit, text: string): number {
  const amount = amountOf(unit, text);
  if (amount !== null) return amount;
  const wanted = unit === 'usd' ? 'US dollars above 0, such as 0.50' : 'a whole number from 1';
  throw new UsageFault(`${option} takes ${wanted}; not "${text}"`);
}

export type Unit = 'usd' | 'tokens';

/** The amount that a text names, or null if it names none. */
export function amountOf(unit: Unit, text: string): number | null {
  const form = unit === 'usd' ? /^\$?(\d{1,9}(?:\.\d{1,9})?)$/ : /^(\d{1,15})$/;
  const amount = Number(form.exec(text)?.[1] ?? 0);
  return amount > 0 ? amount : null;
}
