/** Reads a streamed chat completion and joins it into the form of a plain one. */
import { fieldOf, listOf } from '../../system/untrusted.js';
import { answerEvents } from '../exchange.js';
import { textOf } from './answer.js';

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

function firstChoice(chunk: unknown): unknown {
  const choices = fieldOf(chunk, 'choices');
  return Array.isArray(choices) ? choices[0] : undefined;
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
