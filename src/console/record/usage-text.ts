/** Tokens and costs as text. */
import { costText, unpricedModels } from '../../run/cost-text.js';
import type { UsageTotals } from '../../run/effort.js';
import type { StepUsage } from './attempt-figures.js';
import { countOf, shortCount } from './counts.js';
import type { Execution } from './executions.js';

/** The tokens and the cost of an execution, or null if it has not ended or another run has executed it. */
export function stepUsageText({ usage, state, isInherited }: UsedStep): string | null {
  if (usage !== null) return `${tokenText(usage)}, ${costText(usage.costUsd, usage.unpriced)}`;
  return isInherited || (state !== 'done' && state !== 'failed') ? null : NOTHING_REPORTED;
}

type UsedStep = Pick<Execution, 'usage' | 'state' | 'isInherited'>;

/** The calls, the tokens and the cost of a run. */
export function usageText(usage: UsageTotals): string {
  const { calls, repeatedCalls, toldCalls, pricedCalls, costUsd } = usage;
  if (calls === 0) return 'no calls';
  const retries = repeatedCalls === 0 ? '' : ` (${countOf(repeatedCalls, 'retry', 'retries')})`;
  const all = `${countOf(calls, 'call')}${retries}`;
  if (toldCalls === 0 && costUsd === null) return `${all}, ${NOTHING_REPORTED}`;
  const unmetered = missingText(toldCalls === 0 ? 0 : calls - toldCalls);
  const models = unpricedModels(usage.byModel);
  const named = usage.byModel
    .filter(({ model }) => models.includes(model))
    .reduce((sum, each) => sum + each.toldCalls, 0);
  const unpriced = missingText(costUsd === null ? 0 : calls - pricedCalls - named);
  // Said once if the same number of calls lacks both.
  return `${all}, ${tokenText(usage)}${unmetered === unpriced ? '' : unmetered}, ${costText(costUsd, models)}${unpriced}`;
}

/**
 * The calls, the tokens and the cost of a run as rows of names and texts; none without calls.
 *
 * @param isOver whether its calls have ended: before, some have nothing to report yet
 */
export function usageFacts(usage: UsageTotals, isOver: boolean): readonly (readonly [name: string, text: string])[] {
  const { calls, repeatedCalls, toldCalls, pricedCalls, costUsd } = usage;
  if (calls === 0) return [];
  const unpriced = unpricedModels(usage.byModel);
  const missing = (count: number): string => (isOver ? missingText(count) : ' so far');
  const costMissing = missing(costUsd === null || unpriced.length > 0 ? 0 : calls - pricedCalls);
  return [
    ['Cost', costCell(costUsd, unpriced) + costMissing],
    ['Tokens', tokenCell(usage) + missing(toldCalls === 0 ? 0 : calls - toldCalls)],
    ['Calls', `${calls}${repeatedCalls === 0 ? '' : `, ${countOf(repeatedCalls, 'retry', 'retries')} of them`}`],
  ];
}

/** A cost below a head that says so. */
export function costCell(costUsd: number | null, unpriced: readonly string[] = []): string {
  return costUsd === null && unpriced.length === 0 ? NOT_REPORTED : costText(costUsd, unpriced);
}

/** Tokens below a head that says so: `1.2k in, 800 out`. */
export function tokenCell({ inputTokens, outputTokens }: Pick<StepUsage, 'inputTokens' | 'outputTokens'>): string {
  if (inputTokens === null && outputTokens === null) return NOT_REPORTED;
  const [input, output] = [inputTokens, outputTokens].map((each) => (each === null ? '?' : shortCount(each)));
  return `${input} in, ${output} out`;
}

const NOT_REPORTED = 'not reported';
const NOTHING_REPORTED = 'tokens and cost not reported';

function tokenText({ inputTokens, outputTokens }: Pick<StepUsage, 'inputTokens' | 'outputTokens'>): string {
  if (inputTokens === null && outputTokens === null) return 'tokens not reported';
  const [input, output] = [inputTokens, outputTokens].map((each) => (each === null ? '?' : shortCount(each)));
  return `${input} tokens in, ${output} out`;
}

function missingText(calls: number): string {
  return calls === 0 ? '' : `, not reported for ${countOf(calls, 'call')}`;
}
