/** Reads answers of an OpenAI-compatible server with status 200, whole or streamed. */
import type { ModelFailureKind } from '../../errors.js';
import { ModelFailed } from '../../errors.js';
import { redact, redactedName, errorMessageOf } from '../failed-exchange.js';
import { fieldOf, listOf } from '../../system/untrusted.js';
import type { ModelAnswer, ModelUsage, ToolCall } from '../port.js';
import { answerEvents } from '../exchange.js';

export interface OpenAiReading {
  readonly model: string;
  /** Whether tools were offered; if not, calls are ignored. */
  readonly takesCalls: boolean;
  /** Rounds before this answer: they make call ids unique where the server gives none. */
  readonly rounds: number;
  /** Texts that no message may quote. */
  readonly hidden: readonly string[];
}

/**
 * The text of the first choice, in well-formed Unicode, and its calls. A choice without `finish_reason` counts as
 * finished: local servers leave it out.
 *
 * @throws {ModelFailed} `unreadable_answer`, `error_answer` (an error with status 200), `no_choices`, `refused`,
 * `max_tokens`, `content_filter`, `prompt_blocked`, `unknown_finish`, `no_text` (calls that nobody offered) or
 * `empty_answer`
 */
export function readOpenAiAnswer(body: unknown, reading: OpenAiReading): ModelAnswer {
  const usage = usageOf(fieldOf(body, 'usage'));
  try {
    return { ...readChoice(body, reading), usage };
  } catch (error) {
    if (!(error instanceof ModelFailed) || usage.inputTokens + usage.outputTokens === 0) throw error;
    throw new ModelFailed(error.message, { ...error.data, usage });
  }
}

/** An answer that cannot be used. */
export function unusable(model: string, why: string, kind: ModelFailureKind, retryable: boolean): ModelFailed {
  return new ModelFailed(`Cannot use the answer of model "${model}": ${why}`, { kind, retryable });
}

function readChoice(body: unknown, reading: OpenAiReading): Omit<ModelAnswer, 'usage'> {
  const { model } = reading;
  if (typeof body !== 'object' || body === null) {
    throw unusable(model, 'its body is no JSON object', 'unreadable_answer', true);
  }
  const error = fieldOf(body, 'error');
  if (error !== undefined && error !== null) {
    const said = redact(errorMessageOf(body), reading.hidden);
    const words = said === '' ? '' : `: ${said}`;
    if (isBlocked(body)) throw unusable(model, `the prompt was blocked${words}`, 'prompt_blocked', false);
    throw unusable(model, `it holds an error${words}`, 'error_answer', true);
  }
  const choice = firstChoice(body);
  const message = fieldOf(choice, 'message');
  // Some filters omit the message.
  if (fieldOf(choice, 'finish_reason') === 'content_filter') checkFinish('content_filter', reading);
  if (typeof message !== 'object' || message === null) {
    throw unusable(model, 'it holds no choice', 'no_choices', true);
  }
  const refusal = refusalIn(message);
  if (refusal !== '') {
    throw unusable(model, `the model refused: ${redact(refusal, reading.hidden)}`, 'refused', false);
  }
  checkFinish(fieldOf(choice, 'finish_reason'), reading);
  return contentOf(message, reading);
}

function contentOf(message: object, { model, takesCalls, rounds }: OpenAiReading): Omit<ModelAnswer, 'usage'> {
  const text = textOf(fieldOf(message, 'content')).toWellFormed();
  const entries = listOf(fieldOf(message, 'tool_calls'));
  const calls = takesCalls ? entries.flatMap((entry, index) => callOf(entry, `call_${rounds}_${index}`)) : [];
  if (calls.length > 0) return { text, calls };
  if (text.trim() !== '') return { text };
  if (entries.length > 0) throw unusable(model, 'it calls tools and holds no text', 'no_text', true);
  throw unusable(model, 'its text is empty', 'empty_answer', true);
}

/** A refusal stands beside the content or in one of its parts. */
function refusalIn(message: object): string {
  const parts = listOf(fieldOf(message, 'content'));
  const refusals = [message, ...parts].map((each) => fieldOf(each, 'refusal'));
  return refusals.filter((each) => typeof each === 'string').join('');
}

/** Content is a text, or a list of parts of which the texts are joined; thoughts are parts of another kind. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => fieldOf(part, 'text'))
    .filter((text) => typeof text === 'string')
    .join('');
}

/** Arguments come as JSON text; some servers send the object itself. */
function callOf(entry: unknown, fallbackId: string): readonly ToolCall[] {
  const called = fieldOf(entry, 'function');
  const name = fieldOf(called, 'name');
  if (typeof name !== 'string') return [];
  const id = fieldOf(entry, 'id');
  const given = fieldOf(called, 'arguments') ?? '{}';
  const argumentsJson = typeof given === 'string' ? given.trim() || '{}' : JSON.stringify(given);
  return [{ id: typeof id === 'string' && id !== '' ? id : fallbackId, name, argumentsJson, echo: entry }];
}

function checkFinish(reason: unknown, { model, hidden }: Pick<OpenAiReading, 'model' | 'hidden'>): void {
  if (reason === undefined || reason === null || FINISHED.has(reason)) return;
  if (reason === 'length') {
    throw unusable(model, 'it was cut off at the limit of output tokens (length)', 'max_tokens', false);
  }
  if (reason === 'content_filter') {
    throw unusable(model, 'it was withheld by a filter (content_filter)', 'content_filter', false);
  }
  const why = `it stopped for an unknown reason (${redactedName(reason, hidden)})`;
  throw unusable(model, why, 'unknown_finish', true);
}

/** Reasoning is billed as output and included in it. Missing counts are 0. */
function usageOf(usage: unknown): ModelUsage {
  const count = (name: string): number => {
    const tokens = fieldOf(usage, name);
    return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : 0;
  };
  return { inputTokens: count('prompt_tokens'), outputTokens: count('completion_tokens') };
}

/** Whether an error says that a filter stopped the prompt: in its code, its inner code, or what a router adds to it. */
export function isBlocked(body: unknown): boolean {
  const error = fieldOf(body, 'error');
  const codes = [error, fieldOf(error, 'innererror'), body].flatMap((each) => [
    fieldOf(each, 'code'),
    fieldOf(each, 'type'),
  ]);
  return codes.some((code) => BLOCKED.has(code)) || fieldOf(fieldOf(error, 'metadata'), 'flagged_input') !== undefined;
}

/** Codes of OpenAI, Azure and others. */
const BLOCKED: ReadonlySet<unknown> = new Set([
  'content_filter',
  'content_policy_violation',
  'ResponsibleAIPolicyViolation',
  'invalid_prompt',
  'moderation_blocked',
  'data_inspection_failed',
]);

/** Finish reasons of a complete answer, of OpenAI and of local servers. */
const FINISHED: ReadonlySet<unknown> = new Set(['', 'stop', 'tool_calls', 'function_call', 'eos', 'stop_sequence']);

// Reads a streamed chat completion and joins it into the form of a plain one.

/** The joined chunks of one call. */
interface CallChunks {
  id: string;
  name: string;
  arguments: string;
  extra: unknown;
}

export interface JoinedCompletion {
  /** In the form of a plain answer. */
  readonly body: object;
  /** Whether the stream marked its end. */
  readonly isFinished: boolean;
}

/**
 * Reads to `[DONE]` or the end of the body; `onToken` receives the text as it comes.
 *
 * @throws {SyntaxError | BodyTooLarge} or what a broken connection throws
 */
export async function joinCompletion(response: Response, onToken: (text: string) => void): Promise<JoinedCompletion> {
  const calls = new Map<number, CallChunks>();
  const message = { content: '', refusal: '' };
  let [choice, usage, error, finishReason]: unknown[] = [];
  let isDone = false;
  for await (const data of answerEvents(response)) {
    isDone = data.trim() === '[DONE]';
    if (isDone) break;
    const chunk: unknown = JSON.parse(data);
    error = fieldOf(chunk, 'error') ?? error;
    usage = fieldOf(chunk, 'usage') ?? usage;
    choice = firstChoice(chunk) ?? choice;
    finishReason = fieldOf(firstChoice(chunk), 'finish_reason') ?? finishReason;
    const delta = fieldOf(firstChoice(chunk), 'delta');
    const text = textOf(fieldOf(delta, 'content'));
    message.content += text;
    message.refusal += textOf(fieldOf(delta, 'refusal'));
    collectCalls(calls, fieldOf(delta, 'tool_calls'));
    if (text !== '') onToken(text);
  }
  const whole = {
    message: { ...message, tool_calls: [...calls.values()].map(wholeCall) },
    finish_reason: finishReason,
  };
  return {
    body: { choices: choice === undefined ? [] : [whole], usage, error },
    isFinished: isDone || [finishReason, error].some((each) => each !== undefined),
  };
}

function firstChoice(answer: unknown): unknown {
  return listOf(fieldOf(answer, 'choices'))[0];
}

/** A call's id and name come once, its arguments in chunks. A server that gives no index sends each call whole. */
function collectCalls(calls: Map<number, CallChunks>, deltas: unknown): void {
  for (const delta of listOf(deltas)) {
    const index = fieldOf(delta, 'index');
    const at = typeof index === 'number' ? index : calls.size;
    const call = calls.get(at) ?? { id: '', name: '', arguments: '', extra: undefined };
    const called = fieldOf(delta, 'function');
    const given = fieldOf(called, 'arguments');
    call.id ||= textOf(fieldOf(delta, 'id'));
    call.name ||= textOf(fieldOf(called, 'name'));
    call.arguments += typeof given === 'object' && given !== null ? JSON.stringify(given) : textOf(given);
    call.extra ??= fieldOf(delta, 'extra_content');
    calls.set(at, call);
  }
}

function wholeCall({ id, name, arguments: given, extra }: CallChunks): object {
  return { id, function: { name, arguments: given }, ...(extra !== undefined && { extra_content: extra }) };
}
