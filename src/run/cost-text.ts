/** Costs in words, for the console and the terminal. */
import { dollarDigits } from '../system/dollars.js';

/** US dollars with two digits that count: `$12.30`, `$0.042`, `less than $0.0001`. */
export function dollarText(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars < 0.0001) return 'less than $0.0001';
  return `$${dollars < 0.995 ? dollars.toPrecision(2) : dollars.toFixed(2)}`;
}

/**
 * A cost as part of a sentence.
 *
 * @param costUsd or null if it is unknown
 * @param unpriced the models whose tokens are known and which have no price: their cost is missing
 */
export function costText(costUsd: number | null, unpriced: readonly string[] = []): string {
  const missing = unpriced.length === 0 ? null : `no price for ${unpriced.join(', ')} (see PRICES_FILE)`;
  if (costUsd === null) return missing ?? 'cost not reported';
  return missing === null ? dollarText(costUsd) : `${dollarText(costUsd)}, ${missing}`;
}

/** What the calls to a model have used; null is unknown. */
export interface ModelUsed {
  readonly model: string;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly costUsd: number | null;
}

/** The models without a price, each once: their tokens are known, and their cost is not. */
export function unpricedModels(used: readonly ModelUsed[]): readonly string[] {
  const missing = used.filter(
    ({ model, inputTokens, outputTokens, costUsd }) =>
      // Events that are older than prices name models without their provider.
      costUsd === null && inputTokens !== null && outputTokens !== null && model.includes('/'),
  );
  return [...new Set(missing.map(({ model }) => model))];
}

/** A budget, and what is spent of it. */
export interface BudgetSpent {
  /** Or null without a limit. */
  readonly usd: number | null;
  readonly tokens: number | null;
  /** Or null if a called model has no price. */
  readonly spentUsd: number | null;
  readonly spentTokens: number;
}

/** The limits of a budget, or other amounts: `$0.50 and 9000 tokens`. */
export function limitsText({ usd, tokens }: Pick<BudgetSpent, 'usd' | 'tokens'>): string {
  return [...(usd === null ? [] : [`$${dollarDigits(usd)}`]), ...(tokens === null ? [] : [`${tokens} tokens`])].join(
    ' and ',
  );
}

/** What is spent of a budget, in its limits: `$0.02 of $0.50, 2326 of 9000 tokens`. */
export function budgetText({ usd, tokens, spentUsd, spentTokens }: BudgetSpent): string {
  return [
    ...(usd === null ? [] : [`${spentUsd === null ? 'unknown cost' : dollarText(spentUsd)} of $${dollarDigits(usd)}`]),
    ...(tokens === null ? [] : [`${spentTokens} of ${tokens} tokens`]),
  ].join(', ');
}
