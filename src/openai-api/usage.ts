/** Tokens in OpenAI's forms. */
import type { ChatUsage, ResponseUsage } from '../generated/schemas.js';
import type { ModelUsage } from '../models/port.js';
import { usageOf } from '../run/effort.js';
import type { RunState } from '../run/state.js';

type Tokens = Pick<ModelUsage, 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'reasoningTokens'>;

/** The tokens of all calls of a run, or null if the tokens of one call are unknown. */
export function tokensOf({ effort }: Pick<RunState, 'effort'>): Tokens {
  const usage = usageOf(effort);
  return usage.toldCalls < usage.calls ? { inputTokens: null, outputTokens: null } : usage;
}

/** The usage of a response, absent if its tokens are unknown. */
export function responseUsage(tokens: Tokens): { readonly usage?: ResponseUsage } {
  const { inputTokens: input, outputTokens: output, cachedInputTokens: cached, reasoningTokens: reasoning } = tokens;
  if (typeof input !== 'number' || typeof output !== 'number') return {};
  const usage: ResponseUsage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  if (typeof cached === 'number') usage.input_tokens_details = { cached_tokens: cached };
  if (typeof reasoning === 'number') usage.output_tokens_details = { reasoning_tokens: reasoning };
  return { usage };
}

/** The usage of a chat completion; absent if it is unknown. */
export function chatUsage(tokens: Tokens): { readonly usage?: ChatUsage } {
  const { usage: known } = responseUsage(tokens);
  if (known === undefined) return {};
  const { input_tokens: input, output_tokens: output, total_tokens: total } = known;
  const usage: ChatUsage = { prompt_tokens: input, completion_tokens: output, total_tokens: total };
  if (known.input_tokens_details) usage.prompt_tokens_details = known.input_tokens_details;
  if (known.output_tokens_details) usage.completion_tokens_details = known.output_tokens_details;
  return { usage };
}
