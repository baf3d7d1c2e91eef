import type { ModelUsage } from '../../src/models/port.js';

/** The usage of a model that reports no more than what went in and out. */
export function spent(
  inputTokens: number | null,
  outputTokens: number | null,
): Required<Omit<ModelUsage, 'costUsd' | 'cacheWriteHourTokens'>> {
  return { inputTokens, cachedInputTokens: null, cacheWriteTokens: null, outputTokens, reasoningTokens: null };
}
