/** Chat completions: OpenAI's, and every server that calls itself compatible. */
import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { ModelFailed } from '../../errors.js';
import { sumOfDollars } from '../../system/dollars.js';
import { fieldOf, isList, isRecord, listOf, recordOf, textOf } from '../../system/untrusted.js';
import type { ServerCall } from '../server-call.js';
import { redact } from '../redaction.js';
import { errorInAnswer, partsIn, unusable } from '../unusable-answer.js';
import type { ModelUsage } from '../port.js';
import type { ReportedUsage } from '../usage.js';
import { count, sumOf, withReport } from '../usage.js';
import { ChatCalls } from './chat-calls.js';
import type { RequestForm, Wire, WireOptions, WireReader } from './wire.js';

/** The package's own choice by model names is not used: a server decides by its refusals what it accepts. */
export async function chatWire({ baseUrl, apiKey }: WireOptions): Promise<Wire> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  return {
    headers: { authorization: apiKey === null ? null : `Bearer ${apiKey}` },
    model(name, { form, fetch }): LanguageModelV3 {
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
  readonly calls: ChatCalls;
  hasChoice: boolean;
  hasFinish: boolean;
  reported: ReportedUsage;
  /** The model's reasoning as a router sent it. */
  readonly reasoningDetails: unknown[];
  /** Whether the reasoning is an empty text, or null if none came. */
  isReasoningEmpty: boolean | null;
}

function readerOf(call: ServerCall): WireReader {
  const reading: Reading = {
    ...call,
    hasChoice: false,
    hasFinish: false,
    reported: {},
    reasoningDetails: [],
    isReasoningEmpty: null,
    calls: new ChatCalls(call.rounds),
  };
  return {
    whole(body) {
      keepUsage(body, reading);
      refuseError(body, call);
      const choices = listOf(fieldOf(body, 'choices')).slice(0, 1);
      if (!choices.some(hasMessage)) throw noChoice(call);
      return readable(body, 'message', reading);
    },
    event(event) {
      if (event !== null) {
        keepUsage(event, reading);
        refuseError(event, call);
        return readable(event, 'delta', reading);
      }
      if (!reading.hasChoice) throw noChoice(call);
      // The package would read the arguments of a call again with each of their pieces: it gets the calls whole.
      const calls = reading.calls.all();
      if (reading.hasFinish && calls.length === 0) return null;
      const delta = calls.length > 0 ? { tool_calls: calls } : {};
      return { choices: [{ delta, finish_reason: reading.hasFinish ? null : 'stop' }] };
    },
    isEnd: (event) => finishOf(listOf(fieldOf(event, 'choices'))[0]) !== null,
    usage: () => usageOf(reading.reported),
    turnOptions() {
      const { reasoningDetails, isReasoningEmpty } = reading;
      const details: unknown = reasoningDetails.length > 0 ? reasoningDetails : null;
      if (details === null && isReasoningEmpty !== true) return undefined;
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
  return { choices: choices.map((each) => choiceIn(each, field, reading)) };
}

function keepUsage(from: unknown, reading: Reading): void {
  reading.reported = withReport(reading.reported, fieldOf(from, 'usage'), REPORTED);
}

/** The fields of `usage` that are read. */
const REPORTED = [
  ...['prompt_tokens', 'completion_tokens', 'total_tokens', 'prompt_tokens_details', 'completion_tokens_details'],
  ...['prompt_cache_hit_tokens', 'cost', 'cost_details', 'is_byok'],
];

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

/**
 * An error with status 200; a stream carries it in an event. vLLM's has its fields in the body itself, and a router's may
 * stand in the choice.
 */
function refuseError(body: unknown, call: ServerCall): void {
  if (fieldOf(body, 'object') === 'error') throw errorInAnswer(body, call);
  const error =
    fieldOf(body, 'error') ?? (fieldOf(body, 'choices') === undefined ? fieldOf(body, 'detail') : undefined);
  if (isSet(error)) throw errorInAnswer(body, call);
  const [choice] = listOf(fieldOf(body, 'choices'));
  if (isSet(fieldOf(choice, 'error'))) throw errorInAnswer(choice, call);
}

function isSet(error: unknown): boolean {
  return error !== undefined && error !== null && error !== '';
}

/** A choice in the form that the package reads. */
function choiceIn(choice: unknown, field: 'message' | 'delta', reading: Reading): object {
  const message = recordOf(fieldOf(choice, field));
  const calls = listOf(message['tool_calls']);
  if (field === 'delta') reading.calls.addPieces(calls);
  else reading.calls.addWhole(calls);
  remember(message, reading);
  refuseRefusal(message, reading);
  const reason = finishOf(choice);
  if (reason !== null) reading.hasFinish = true;
  return {
    [field]: {
      role: 'assistant',
      content: content(message['content'], reading),
      reasoning_content: textOf(message['reasoning_content']),
      reasoning: textOf(message['reasoning']),
      tool_calls: field === 'message' && calls.length > 0 ? reading.calls.all() : undefined,
    },
    finish_reason: reason,
  };
}

/** The finish reason, or null if there is none; some servers write "null" until there is one. */
function finishOf(choice: unknown): string | null {
  const reason = fieldOf(choice, 'finish_reason');
  return typeof reason === 'string' && reason !== '' && reason !== 'null' ? reason : null;
}

/** Some routers want the model's reasoning back in the form it came in. */
function remember(message: Readonly<Record<string, unknown>>, reading: Reading): void {
  for (const each of listOf(message['reasoning_details'])) reading.reasoningDetails.push(each);
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
function content(given: unknown, call: ServerCall): unknown {
  if (given === undefined || given === null || typeof given === 'string') return given;
  return partsIn(given, call).flatMap((part): readonly object[] => {
    const thoughts = fieldOf(part, 'thinking');
    if (fieldOf(part, 'type') === 'thinking' && isList(thoughts)) return [{ type: 'thinking', thinking: thoughts }];
    const text = fieldOf(part, 'text');
    return typeof text === 'string' ? [{ type: 'text', text }] : [];
  });
}

function usageOf(raw: ReportedUsage): ModelUsage {
  const prompt = fieldOf(raw, 'prompt_tokens_details');
  const input = count(raw, 'prompt_tokens');
  const output = count(raw, 'completion_tokens');
  const reasoning = count(fieldOf(raw, 'completion_tokens_details'), 'reasoning_tokens');
  const total = count(raw, 'total_tokens');
  // xAI counts reasoning beside the completion, others within it: the total shows which.
  const isBeside = reasoning !== null && total !== null && total === sumOf(input, output, reasoning) && reasoning > 0;
  const cost = costIn(raw);
  return {
    inputTokens: input,
    cachedInputTokens: count(prompt, 'cached_tokens') ?? count(raw, 'prompt_cache_hit_tokens'),
    cacheWriteTokens: count(prompt, 'cache_write_tokens'),
    outputTokens: isBeside ? sumOf(output, reasoning) : output,
    reasoningTokens: reasoning,
    ...(cost !== null && { costUsd: cost }),
  };
}

/**
 * The cost that OpenRouter reports, in US dollars, or null. If a call uses the customer's own key at another provider
 * (`is_byok`), `cost` is OpenRouter's fee alone, and the customer pays the other provider too. Without that amount the cost is
 * unknown.
 */
function costIn(raw: ReportedUsage): number | null {
  const fee = amountOf(fieldOf(raw, 'cost'));
  if (fee === null || fieldOf(raw, 'is_byok') !== true) return fee;
  const upstream = amountOf(fieldOf(fieldOf(raw, 'cost_details'), 'upstream_inference_cost'));
  return upstream === null ? null : sumOfDollars([fee, upstream]);
}

/** An amount in US dollars, or null if the field holds none. A call costs less than a million: sums stay finite. */
function amountOf(cost: unknown): number | null {
  return typeof cost === 'number' && cost >= 0 && cost < MAX_USD ? cost : null;
}

const MAX_USD = 1_000_000;
