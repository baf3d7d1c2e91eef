/** The tokens of a run in OpenAI's form. */
import type { ChatUsage, ResponseUsage } from '../generated/schemas.js';
import type { ModelUsage } from '../models/port.js';
import { usageOf } from '../run/effort.js';
import type { RunState } from '../run/state.js';

interface KnownTokens {
  readonly input: number;
  readonly output: number;
  /** Of the input, or null if unknown. */
  readonly cached: number | null;
  /** Of the output, or null if unknown. */
  readonly reasoning: number | null;
}

/** The tokens of all calls, or null if those of a call are unknown. */
function tokensOf({ effort }: Pick<RunState, 'effort'>): KnownTokens | null {
  const { calls, toldCalls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usageOf(effort);
  if (toldCalls < calls || inputTokens === null || outputTokens === null) return null;
  return { input: inputTokens, output: outputTokens, cached: cachedInputTokens, reasoning: reasoningTokens };
}

/** The usage of a chat completion; absent if it is unknown. */
export function chatUsage(run: Pick<RunState, 'effort'>): { readonly usage?: ChatUsage } {
  return chatUsageOf(tokensOf(run));
}

/** The usage of one call; absent if it is unknown. */
export function callUsage({ inputTokens, outputTokens, ...rest }: ModelUsage): { readonly usage?: ChatUsage } {
  const [input, output] = [inputTokens ?? null, outputTokens ?? null];
  if (input === null || output === null) return {};
  return chatUsageOf({
    input,
    output,
    cached: rest.cachedInputTokens ?? null,
    reasoning: rest.reasoningTokens ?? null,
  });
}

function chatUsageOf(tokens: KnownTokens | null): { readonly usage?: ChatUsage } {
  if (tokens === null) return {};
  const { input, output, cached, reasoning } = tokens;
  const usage: ChatUsage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  if (cached !== null) usage.prompt_tokens_details = { cached_tokens: cached };
  if (reasoning !== null) usage.completion_tokens_details = { reasoning_tokens: reasoning };
  return { usage };
}

/** The usage of a response; absent if it is unknown. */
export function responseUsage(run: Pick<RunState, 'effort'>): { readonly usage?: ResponseUsage } {
  const tokens = tokensOf(run);
  if (tokens === null) return {};
  const { input, output, cached, reasoning } = tokens;
  const usage: ResponseUsage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  if (cached !== null) usage.input_tokens_details = { cached_tokens: cached };
  if (reasoning !== null) usage.output_tokens_details = { reasoning_tokens: reasoning };
  return { usage };
}
