/** Times, tokens and costs of the attempts of a step. */
import type { ChildEndedData } from '../../generated/schemas.js';
import { unpricedModels } from '../../run/cost-text.js';
import { reportedTokens } from '../../run/effort.js';
import { sumOfDollars } from '../../system/dollars.js';
import type { Attempt } from '../../run/history/history.js';

/** Each null if it is unknown for all attempts. */
export interface StepUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** US dollars. */
  readonly costUsd: number | null;
  /** The models without a price, whose cost is not in the sum. Absent: none. */
  readonly unpriced?: readonly string[];
}

/** Whether an attempt waits for its back-off or for the model's server. */
export function waitsAt({ started, delayMs, outageMs }: Attempt, until: string): boolean {
  return outageMs !== null || msBetween(started.at, until) < delayMs;
}

/** How long an attempt waited before its call, in milliseconds. */
export function backOffOf({ started, delayMs, ended }: Attempt, until: string): number {
  return Math.min(delayMs, msBetween(started.at, ended?.at ?? until));
}

/** Sum over the attempts, or null if nothing is known of them. */
export function usageOf(attempts: readonly Attempt[]): StepUsage | null {
  const costs = attempts.flatMap((each) => each.costs);
  const tokens = costs.map(({ usage }) => reportedTokens(usage));
  const inputTokens = sumOf(tokens.map((each) => each.inputTokens));
  const outputTokens = sumOf(tokens.map((each) => each.outputTokens));
  const known = costs.flatMap((each) => each.costUsd ?? []);
  const costUsd = known.length === 0 ? null : sumOfDollars(known);
  const isUnknown = inputTokens === null && outputTokens === null && costUsd === null;
  const unpriced = unpricedModels(
    attempts.flatMap(({ model, costs: own }) =>
      // Older events hold no cost.
      own.flatMap((each) => (each.costUsd === null ? [{ model, ...reportedTokens(each.usage), costUsd: null }] : [])),
    ),
  );
  return isUnknown ? null : { inputTokens, outputTokens, costUsd, ...(unpriced.length > 0 && { unpriced }) };
}

/** Sum over the runs of a council, or null if nothing is known of them. */
export function usageOfRuns(ended: readonly Pick<ChildEndedData, 'usage' | 'costUsd'>[]): StepUsage | null {
  const inputTokens = sumOf(ended.map(({ usage }) => usage.inputTokens));
  const outputTokens = sumOf(ended.map(({ usage }) => usage.outputTokens));
  const known = ended.flatMap(({ costUsd }) => costUsd ?? []);
  const costUsd = known.length === 0 ? null : sumOfDollars(known);
  const unpriced = unpricedModels(
    ended.flatMap(({ usage }) => usage.byModel.map((each) => ({ ...each, costUsd: each.costUsd ?? null }))),
  );
  if (inputTokens === null && outputTokens === null && costUsd === null) return null;
  return { inputTokens, outputTokens, costUsd, ...(unpriced.length > 0 && { unpriced }) };
}

/** The sum of what is known, or null if nothing is. */
function sumOf(amounts: readonly (number | null)[]): number | null {
  return amounts.reduce((sum, each) => (each === null ? sum : (sum ?? 0) + each), null);
}

/** A duration of at least 0, because the clocks of instances differ. */
export function msBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from));
}
