/** Tokens and costs in words, as all commands print them. What is not known is not 0. */
import { costText } from '../../run/cost-text.js';

/** What calls have used; null is not reported. */
export interface Used {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly costUsd: number | null;
  /** Number of calls. Absent: at least one. */
  readonly calls?: number;
}

export const NOTHING_REPORTED = 'tokens and cost not reported';

/** Tokens and dollars: `1692 tokens in, 634 out, $0.02`. */
export function usageText({ inputTokens, outputTokens, costUsd, calls }: Used): string {
  if (calls === 0) return 'no calls';
  const isUnknown = inputTokens === null && outputTokens === null;
  if (isUnknown && costUsd === null) return NOTHING_REPORTED;
  const tokens = isUnknown ? 'tokens not reported' : `${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out`;
  return `${tokens}, ${costText(costUsd)}`;
}
