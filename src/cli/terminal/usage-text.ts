/** Tokens and costs in words, as all commands print them. What is not known is not 0. */
import { costText, unpricedModels } from '../../run/cost-text.js';
import { countOf } from './table.js';
import type { UsageTotals } from '../../run/effort.js';
import type { OverviewUsage, RunUsage } from '../../generated/schemas.js';

/** What calls have used; null is not reported. */
export interface Used {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly costUsd: number | null;
  /** Number of calls. Absent: at least one. */
  readonly calls?: number;
  /** Calls whose tokens are not in the sums: they failed, or their provider reports none. Absent: none. */
  readonly unmeteredCalls?: number;
  /** The models without a price, whose cost is not in the sum. Absent: none. */
  readonly unpriced?: readonly string[];
}

export const NOTHING_REPORTED = 'tokens and cost not reported';

/** Tokens and dollars: `1692 tokens in, 634 out, $0.02, 2 calls not reported`. */
export function usageText({ inputTokens, outputTokens, costUsd, calls, unmeteredCalls = 0, unpriced }: Used): string {
  if (calls === 0) return 'no calls';
  const isUnknown = inputTokens === null && outputTokens === null;
  if (isUnknown && costUsd === null) return NOTHING_REPORTED;
  const tokens = isUnknown ? 'tokens not reported' : `${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out`;
  const missing = `, ${countOf(unmeteredCalls, 'call')} not reported`;
  return `${tokens}, ${costText(costUsd, unpriced)}${isUnknown || unmeteredCalls === 0 ? '' : missing}`;
}

/** What a run has used. */
export function usedOf(totals: UsageTotals): Used {
  const { inputTokens, outputTokens, costUsd, calls, toldCalls, byModel } = totals;
  return {
    inputTokens,
    outputTokens,
    costUsd,
    calls,
    unmeteredCalls: calls - toldCalls,
    unpriced: unpricedModels(byModel),
  };
}

/** The usage of a run, or of many, as a service returns it. */
interface ReturnedUsage extends Pick<
  OverviewUsage,
  'input_tokens' | 'output_tokens' | 'cost_usd' | 'calls' | 'unmetered_calls'
> {
  readonly by_model?: RunUsage['by_model'];
}

/** The same from the answer of a service. */
export function usedIn({ by_model: byModel = [], ...usage }: ReturnedUsage): Used {
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    costUsd: usage.cost_usd,
    calls: usage.calls,
    unmeteredCalls: usage.unmetered_calls,
    unpriced: unpricedModels(
      byModel.map(({ model, input_tokens: inputTokens, output_tokens: outputTokens, cost_usd: costUsd }) => {
        return { model, inputTokens, outputTokens, costUsd };
      }),
    ),
  };
}
