/** Answers with a status of success that cannot be used, and why. */
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { FaultKind } from './failed-exchange.js';
import { errorMessageOf, isBlocked, kindOfRefusal, redact, redactName } from './failed-exchange.js';
import type { ServerCall } from './guarded-fetch.js';
import { fieldOf } from '../system/untrusted.js';

/** An answer that holds an error, with status 200 or in a stream that had begun. */
export function errorInAnswer(body: unknown, call: ServerCall): ModelFailed {
  const said = redact(errorMessageOf(body), call.hidden);
  const words = said === '' ? '' : `: ${said}`;
  if (isBlocked(body)) return unusable(call, `the prompt was blocked${words}`, 'prompt_blocked', false);
  const code = fieldOf(fieldOf(body, 'error'), 'code');
  const fault = kindOfRefusal(typeof code === 'number' ? code : 200, body);
  const isKnown = fault.kind !== 'http_error';
  return unusable(
    call,
    `it holds an error${words}`,
    isKnown ? fault.kind : 'error_answer',
    isKnown ? fault.retryable : true,
  );
}

/** The model itself refused, in a field of its own. */
export function modelRefused(refusal: string, call: ServerCall): ModelFailed {
  return unusable(call, `the model refused: ${redact(refusal, call.hidden)}`, 'refused', false);
}

export function promptBlocked(reason: string, call: ServerCall): ModelFailed {
  return unusable(call, `the prompt was blocked (${redactName(reason, call.hidden)})`, 'prompt_blocked', false);
}

export function unusable(
  { purpose }: Pick<ServerCall, 'purpose'>,
  why: string,
  kind: ModelFailureKind,
  retryable: boolean,
): ModelFailed {
  return new ModelFailed(`${purpose}: its answer cannot be used: ${why}`, { kind, retryable });
}

/**
 * What a finish reason means, whatever the provider and its case: null for a complete answer and for an unknown reason,
 * which is no reason to pay for another answer.
 *
 * @param reason the provider's own word, absent if it gave none
 */
export function faultOfFinish(reason: string | undefined, call: ServerCall): ModelFailed | null {
  const word = (reason ?? '').toLowerCase();
  const fault = FAULTS.find(({ reasons }) => reasons.includes(word));
  if (fault === undefined) return null;
  const { why, kind, retryable } = fault;
  return unusable(call, `${why} (${redactName(reason, call.hidden)})`, kind, retryable);
}

/** Whether a finish reason is one of the words for a complete answer. */
export function isKnownFinish(reason: string): boolean {
  return COMPLETE.has(reason.toLowerCase());
}

const COMPLETE: ReadonlySet<string> = new Set([
  ...['', 'stop', 'end_turn', 'eos', 'eos_token', 'complete', 'completed', 'stop_sequence', 'end'],
  ...['tool_calls', 'tool_use', 'tool_call', 'function_call', 'finish_reason_unspecified'],
]);

/**
 * Retryable is what may come out differently: a malformed call, an unnamed fault, a recitation. Not retryable is what lies
 * in the request: a filter's finding, or the limit on the answer, which would be reached again at the full price.
 */
const FAULTS: readonly (FaultKind & { readonly reasons: readonly string[]; readonly why: string })[] = [
  {
    reasons: ['length', 'max_tokens', 'model_length', 'max_output_tokens', 'model_context_window_exceeded'],
    ...{ why: 'it was cut off at the limit of output tokens', kind: 'max_tokens', retryable: false },
  },
  {
    reasons: ['content_filter', 'content-filter'],
    ...{ why: 'it was withheld by a filter', kind: 'content_filter', retryable: false },
  },
  { reasons: ['refusal'], why: 'the model refused', kind: 'refused', retryable: false },
  { reasons: ['safety', 'image_safety'], why: 'it was withheld as unsafe', kind: 'safety', retryable: false },
  { reasons: ['recitation'], why: 'it was withheld as a recitation', kind: 'recitation', retryable: true },
  { reasons: ['language'], why: 'its language is not supported', kind: 'language', retryable: false },
  { reasons: ['other'], why: 'it stopped without a stated reason', kind: 'other', retryable: true },
  { reasons: ['blocklist'], why: 'it was withheld for a forbidden term', kind: 'blocklist', retryable: false },
  {
    reasons: ['prohibited_content'],
    ...{ why: 'it was withheld as prohibited content', kind: 'prohibited_content', retryable: false },
  },
  { reasons: ['spii'], why: 'it was withheld as sensitive personal information', kind: 'spii', retryable: false },
  {
    reasons: ['malformed_function_call', 'unexpected_tool_call'],
    ...{ why: 'it made a malformed tool call', kind: 'malformed_function_call', retryable: true },
  },
  { reasons: ['error'], why: 'the server stopped it with an error', kind: 'error_answer', retryable: true },
];
