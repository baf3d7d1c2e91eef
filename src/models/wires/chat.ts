/** Chat completions: OpenAI's, and every server that calls itself compatible. */
import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { ModelFailed } from '../../errors.js';
import { fieldOf, isList, isRecord, jsonIn, listOf, recordOf, textOf } from '../../system/untrusted.js';
import type { ServerCall } from '../server-call.js';
import { redact } from '../redaction.js';
import { errorInAnswer, unusable } from '../unusable-answer.js';
import type { ModelUsage } from '../port.js';
import type { ReportedUsage } from '../usage.js';
import { count, sumOf, withReport } from '../usage.js';
import type { RequestForm, Wire, WireOptions, WireReader } from './wire.js';

/** The package's own choice by model names is not used: a server decides by its refusals what it accepts. */
export async function chatWire({ baseUrl, apiKey }: WireOptions): Promise<Wire> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  return {
    headers: { authorization: apiKey === null ? null : `Bearer ${apiKey}` },
    model(name, form, fetch): LanguageModelV3 {
      const provider = createOpenAICompatible({
        // The package returns a thought signature of Gemini only under this name.
        name: 'google',
        baseURL: baseUrl,
        fetch,
        includeUsage: form.usageInStream,
        supportsStructuredOutputs: true,
        transformRequestBody: (body) => bodyIn(form, body),
      });
      return provider(name);
    },
    reader: readerOf,
  };
}

/** A call, and what has come of its answer. */
interface Reading extends ServerCall {
  hasChoice: boolean;
  hasFinish: boolean;
  reported: ReportedUsage;
  readonly calls: StreamedCall[];
  /** The model's reasoning as a router sent it, a list if any came. */
  reasoningDetails: unknown;
  /** Whether the reasoning is an empty text, or null if none came. */
  isReasoningEmpty: boolean | null;
}

function readerOf(call: ServerCall): WireReader {
  const reading: Reading = {
    ...call,
    ...{ hasChoice: false, hasFinish: false, reported: {}, calls: [], reasoningDetails: null, isReasoningEmpty: null },
  };
  return {
    whole(body) {
      refuseError(body, call);
      const choices = listOf(fieldOf(body, 'choices')).slice(0, 1);
      if (!choices.some(hasMessage)) throw noChoice(call);
      return readable(body, 'message', reading);
    },
    event(event) {
      if (event !== null) {
        refuseError(event, call);
        return readable(event, 'delta', reading);
      }
      if (!reading.hasChoice) throw noChoice(call);
      return reading.hasFinish ? null : { choices: [{ delta: {}, finish_reason: 'stop' }] };
    },
    isEnd: (event) => finishOf(listOf(fieldOf(event, 'choices'))[0]) !== null,
    usage: () => usageOf(reading.reported),
    turnOptions() {
      const { reasoningDetails: details, isReasoningEmpty } = reading;
      if (!Array.isArray(details) && isReasoningEmpty !== true) return undefined;
      return {
        openaiCompatible: {
          ...(Array.isArray(details) && { reasoning_details: details }),
          ...(isReasoningEmpty === true && { reasoning_content: '' }),
        },
      };
    },
  };
}

/** An answer, or an event of one, in the form that the package reads. */
function readable(body: unknown, field: 'message' | 'delta', reading: Reading): object {
  const choices = listOf(fieldOf(body, 'choices')).slice(0, 1);
  if (choices.length > 0) reading.hasChoice = true;
  reading.reported = withReport(reading.reported, fieldOf(body, 'usage'));
  return { choices: choices.map((each) => choiceIn(each, field, reading)) };
}

function noChoice(call: ServerCall): ModelFailed {
  return unusable(call, 'it holds no choice', 'no_choices');
}

/** Some filters omit the message. */
function hasMessage(choice: unknown): boolean {
  return isRecord(fieldOf(choice, 'message')) || fieldOf(choice, 'finish_reason') === 'content_filter';
}

function bodyIn(
  { limit, reasoning }: RequestForm,
  { max_tokens: maxTokens, ...body }: Record<string, unknown>,
): object {
  return {
    ...body,
    ...(maxTokens !== undefined && { [limit]: maxTokens }),
    ...(!reasoning && { messages: listOf(body['messages']).map(withoutReasoning) }),
  };
}

function withoutReasoning(message: unknown): unknown {
  const { reasoning_content: _, reasoning_details: __, ...rest } = recordOf(message);
  return rest;
}

/** An error with status 200; a stream carries it in an event. */
function refuseError(body: unknown, call: ServerCall): void {
  const error =
    fieldOf(body, 'error') ?? (fieldOf(body, 'choices') === undefined ? fieldOf(body, 'detail') : undefined);
  if (error !== undefined && error !== null && error !== '') throw errorInAnswer(body, call);
}

/** A choice in the form that the package reads. */
function choiceIn(choice: unknown, field: 'message' | 'delta', reading: Reading): object {
  const message = recordOf(fieldOf(choice, field));
  const given = listOf(message['tool_calls']);
  const calls =
    field === 'delta'
      ? given.flatMap((each) => callIn(each, fieldOf(each, 'index'), reading))
      : given.filter(isNamed).flatMap((each, index) => callIn(each, index, reading));
  remember(message, reading);
  refuseRefusal(message, reading);
  const reason = finishOf(choice);
  if (reason !== null) reading.hasFinish = true;
  return {
    [field]: {
      role: 'assistant',
      content: content(message['content']),
      reasoning_content: textOf(message['reasoning_content']),
      reasoning: textOf(message['reasoning']),
      tool_calls: calls.length > 0 ? calls : undefined,
    },
    finish_reason: reason,
  };
}

function isNamed(given: unknown): boolean {
  return isText(fieldOf(fieldOf(given, 'function'), 'name'));
}

/** The finish reason, or null if there is none; some servers write "null" until there is one. */
function finishOf(choice: unknown): string | null {
  const reason = fieldOf(choice, 'finish_reason');
  return isText(reason) && reason !== 'null' ? reason : null;
}

/** Some routers want the model's reasoning back in the form it came in. */
function remember(message: Readonly<Record<string, unknown>>, reading: Reading): void {
  const details = listOf(message['reasoning_details']);
  if (details.length > 0) reading.reasoningDetails = [...listOf(reading.reasoningDetails), ...details];
  // The package leaves an empty text out, and DeepSeek insists on the field.
  const text = textOf(message['reasoning_content']);
  if (text !== undefined) reading.isReasoningEmpty = text === '' && reading.isReasoningEmpty !== false;
}

/** A refusal stands beside the content or in one of its parts. */
function refuseRefusal(message: Readonly<Record<string, unknown>>, call: ServerCall): void {
  const refusals = [message, ...listOf(message['content'])].map((each) => fieldOf(each, 'refusal'));
  const refusal = refusals.filter((each) => typeof each === 'string').join('');
  if (refusal !== '') throw unusable(call, `the model refused: ${redact(refusal, call.hidden)}`, 'refused');
}

/** Parts that are texts of another kind count as texts; the package drops them. */
function content(given: unknown): unknown {
  if (given === undefined || given === null || typeof given === 'string') return given;
  return listOf(given).flatMap((part): readonly object[] => {
    const thoughts = fieldOf(part, 'thinking');
    if (fieldOf(part, 'type') === 'thinking' && isList(thoughts)) return [{ type: 'thinking', thinking: thoughts }];
    const text = fieldOf(part, 'text');
    return typeof text === 'string' ? [{ type: 'text', text }] : [];
  });
}

/**
 * A call, or a piece of one in a stream. Some servers give every call index 0 or none, and no id or one id to all: each call
 * gets an index and an id of its own. Arguments come as JSON text; some servers send the object itself, or none.
 *
 * @param sent the index that the server sent; in a whole answer the call's place
 */
function callIn(given: unknown, sent: unknown, { calls, rounds }: Reading): readonly object[] {
  const name = fieldOf(fieldOf(given, 'function'), 'name');
  const piece = { sent, id: fieldOf(given, 'id'), name, args: argumentsOf(given) };
  const last = calls.findLast((each) => each.sent === piece.sent);
  if (last !== undefined && !isNextCall(piece, last)) {
    last.args += piece.args;
    return [{ ...signed(given), index: calls.indexOf(last), function: { arguments: piece.args } }];
  }
  const isOwn = isText(piece.id) && calls.every(({ id }) => id !== piece.id);
  const id = isOwn ? piece.id : `call_${rounds}_${calls.length}`;
  const named = isText(name) ? { name } : {};
  const index = calls.push(piece) - 1;
  return [{ ...signed(given), index, id, function: { ...named, arguments: piece.args } }];
}

interface StreamedCall {
  /** The index that the server sent. */
  readonly sent: unknown;
  readonly id: unknown;
  readonly name: unknown;
  /** All that came of the arguments. */
  args: string;
}

/** Whether a piece with the index of a call begins the next one. Servers may repeat a call's name in each of its pieces. */
function isNextCall({ sent, id, name, args }: StreamedCall, last: StreamedCall): boolean {
  if (!isText(name)) return false;
  if (name !== last.name || (isText(id) ? id !== last.id : sent === undefined)) return true;
  return args.trimStart().startsWith('{') && isRecord(jsonIn(last.args));
}

/** Gemini's thought signature of a call, which goes back with it. */
function signed(call: unknown): object {
  const signature = fieldOf(fieldOf(fieldOf(call, 'extra_content'), 'google'), 'thought_signature');
  return isText(signature) ? { extra_content: { google: { thought_signature: signature } } } : {};
}

function argumentsOf(call: unknown): string {
  const given = fieldOf(fieldOf(call, 'function'), 'arguments');
  if (typeof given === 'string') return given;
  return isRecord(given) ? JSON.stringify(given) : '';
}

function usageOf(raw: ReportedUsage): ModelUsage {
  const prompt = fieldOf(raw, 'prompt_tokens_details');
  const input = count(raw, 'prompt_tokens');
  const output = count(raw, 'completion_tokens');
  const reasoning = count(fieldOf(raw, 'completion_tokens_details'), 'reasoning_tokens');
  const total = count(raw, 'total_tokens');
  // xAI counts reasoning beside the completion, others within it: the total shows which.
  const isBeside = reasoning !== null && total !== null && total === sumOf(input, output, reasoning) && reasoning > 0;
  const cost = fieldOf(raw, 'cost');
  return {
    inputTokens: input,
    cachedInputTokens: count(prompt, 'cached_tokens') ?? count(raw, 'prompt_cache_hit_tokens'),
    cacheWriteTokens: count(prompt, 'cache_write_tokens'),
    outputTokens: isBeside ? sumOf(output, reasoning) : output,
    reasoningTokens: reasoning,
    ...(typeof cost === 'number' && cost >= 0 && { costUsd: cost }),
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
