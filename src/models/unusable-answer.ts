/** Answers with a status of success that cannot be used, and why. */
import type { ModelFailed, ModelFailureKind } from '../errors.js';
import { fieldOf, isList, listOf } from '../system/untrusted.js';
import { errorMessageOf, isBlocked, kindOfRefusal, modelFailed, recordedKind } from './failed-exchange.js';
import { redact, redactName } from './redaction.js';
import { requestedWaitMs } from './retry-after.js';
import type { ServerCall } from './server-call.js';

export function unusable(
  { purpose }: Pick<ServerCall, 'purpose'>,
  why: string,
  kind: ModelFailureKind,
  waitMs: number | null = null,
): ModelFailed {
  return modelFailed(`${purpose}: its answer cannot be used: ${why}`, kind, waitMs);
}

/** Most parts of one message. The packages check each part, which takes some microseconds. */
const MAX_PARTS = 10_000;

/** The parts of a message, none if it holds no list. @throws {ModelFailed} `answer_too_large` past 10,000 parts */
export function partsIn(given: unknown, call: Pick<ServerCall, 'purpose'>): readonly unknown[] {
  const parts = listOf(given);
  if (parts.length <= MAX_PARTS) return parts;
  throw unusable(call, `it has ${parts.length} parts, more than ${MAX_PARTS}`, 'answer_too_large');
}

/** An answer that holds an error, with status 200 or in a stream that had begun. */
export function errorInAnswer(whole: unknown, call: ServerCall): ModelFailed {
  const body = beginningOf(whole);
  const said = redact(errorMessageOf(body), call.hidden);
  const words = said === '' ? '' : `: ${said}`;
  if (isBlocked(body)) return unusable(call, `the prompt was blocked${words}`, 'prompt_blocked');
  const status = Number(/^[45]\d\d$/.exec(String(fieldOf(fieldOf(body, 'error') ?? body, 'code')))?.[0] ?? 200);
  const kind = recordedKind(status, kindOfRefusal(status, body));
  const waitMs = requestedWaitMs({}, body, call.now());
  return unusable(call, `it holds an error${words}`, kind === 'http_error' ? 'error_answer' : kind, waitMs);
}

/** What is read of an error, however large the answer is: fields of a list or an object, UTF-16 units of a text, levels. */
const [MAX_FIELDS, MAX_CHARS, MAX_LEVELS] = [100, 64 * 1024, 8];

function beginningOf(value: unknown, level = 0): unknown {
  if (typeof value === 'string') return value.slice(0, MAX_CHARS);
  if (typeof value !== 'object' || value === null) return value;
  if (level === MAX_LEVELS) return null;
  if (isList(value)) return value.slice(0, MAX_FIELDS).map((each) => beginningOf(each, level + 1));
  const fields = Object.entries(value).slice(0, MAX_FIELDS);
  return Object.fromEntries(fields.map(([name, each]) => [name, beginningOf(each, level + 1)]));
}

/**
 * What a finish reason means, whatever the provider and its case: null for a complete answer and for an unknown reason,
 * which is no reason to pay for another answer.
 *
 * @param reason the provider's own word, absent if it gave none
 */
export function faultOfFinish(reason: string | undefined, call: ServerCall): ModelFailed | null {
  const word = (reason ?? '').toLowerCase();
  const fault = FAULTS.find(([reasons]) => reasons.includes(word));
  if (fault === undefined) return null;
  const [, kind, why] = fault;
  return unusable(call, `${why} (${redactName(reason, call.hidden)})`, kind);
}

/** Whether a finish reason is one of the words for a complete answer. */
export function isKnownFinish(reason: string): boolean {
  return COMPLETE.has(reason.toLowerCase());
}

const COMPLETE: ReadonlySet<string> = new Set([
  ...['', 'stop', 'end_turn', 'eos', 'eos_token', 'complete', 'completed', 'stop_sequence', 'end'],
  ...['tool_calls', 'tool_use', 'tool_call', 'function_call', 'finish_reason_unspecified'],
]);

const FAULTS: readonly (readonly [reasons: readonly string[], kind: ModelFailureKind, why: string])[] = [
  [
    ['length', 'max_tokens', 'model_length', 'max_output_tokens', 'model_context_window_exceeded'],
    'max_tokens',
    'it was cut off at the limit of output tokens',
  ],
  [['content_filter', 'content-filter'], 'content_filter', 'it was withheld by a filter'],
  [['refusal'], 'refused', 'the model refused'],
  [['safety', 'image_safety'], 'safety', 'it was withheld as unsafe'],
  [['recitation'], 'recitation', 'it was withheld as a recitation'],
  [['language'], 'language', 'its language is not supported'],
  [['other'], 'other', 'it stopped without a stated reason'],
  [['blocklist'], 'blocklist', 'it was withheld for a forbidden term'],
  [['prohibited_content'], 'prohibited_content', 'it was withheld as prohibited content'],
  [['spii'], 'spii', 'it was withheld as sensitive personal information'],
  [['malformed_function_call', 'unexpected_tool_call'], 'malformed_function_call', 'it made a malformed tool call'],
  [['error'], 'error_answer', 'the server stopped it with an error'],
];
