/** Anthropic's messages. */
import { fieldOf } from '../../system/untrusted.js';
import type { ModelUsage } from '../port.js';
import { errorInAnswer } from '../unusable-answer.js';
import { count, sumOf } from '../usage.js';
import type { ServerCall } from '../server-call.js';
import type { Wire, WireOptions } from './wire.js';

export async function anthropicWire({ baseUrl, apiKey }: WireOptions): Promise<Wire> {
  const { createAnthropic } = await import('@ai-sdk/anthropic');
  const refuseError = (body: unknown, call: ServerCall): unknown => {
    if (fieldOf(body, 'type') === 'error') throw errorInAnswer(body, call);
    return body;
  };
  return {
    // The package insists on a key; `headers` replaces what it sends.
    headers: { 'x-api-key': apiKey },
    model: (name, _form, fetch) => createAnthropic({ baseURL: baseUrl, apiKey: 'none', fetch })(name),
    usageOf,
    reading: {
      whole: refuseError,
      event: refuseError,
      isEnd: (event) => fieldOf(event, 'type') === 'message_stop' || isStopped(event),
    },
  };
}

function isStopped(event: unknown): boolean {
  return (
    fieldOf(event, 'type') === 'message_delta' && typeof fieldOf(fieldOf(event, 'delta'), 'stop_reason') === 'string'
  );
}

/** Anthropic counts tokens read from and written to its cache beside `input_tokens`. */
function usageOf(raw: unknown): ModelUsage {
  const fresh = count(raw, 'input_tokens');
  const cachedInputTokens = count(raw, 'cache_read_input_tokens');
  const cacheWriteTokens = count(raw, 'cache_creation_input_tokens');
  return {
    inputTokens: fresh === null ? null : sumOf(fresh, cachedInputTokens ?? 0, cacheWriteTokens ?? 0),
    cachedInputTokens,
    cacheWriteTokens,
    outputTokens: count(raw, 'output_tokens'),
    reasoningTokens: count(fieldOf(raw, 'output_tokens_details'), 'thinking_tokens'),
  };
}
