/** A request in the words of the provider packages, and the model's own message that goes back with its tool calls. */
import type { LanguageModelV3CallOptions, LanguageModelV3Content, LanguageModelV3Message } from '@ai-sdk/provider';
import { isRecord, jsonIn, recordOf } from '../system/untrusted.js';
import type { ModelRequest, ToolCall, ToolRound } from './port.js';
import type { RequestForm } from './wires/wire.js';

/** The texts of a request that no message may quote. */
export function textsOf({ system, prompt, rounds = [] }: ModelRequest): readonly string[] {
  return [prompt, system, ...rounds.flatMap(({ exchanges }) => exchanges.map(({ result }) => result))];
}

export function optionsOf(request: ModelRequest, form: RequestForm): LanguageModelV3CallOptions {
  const { system, prompt, temperature, maxOutputTokens, answer, tools = [], rounds = [] } = request;
  const user = form.systemRole ? prompt : `${system}\n\n${prompt}`;
  return {
    prompt: [
      ...(form.systemRole ? [{ role: 'system' as const, content: system }] : []),
      { role: 'user', content: [{ type: 'text', text: user }] },
      ...rounds.flatMap(messagesOf),
    ],
    ...(temperature !== undefined && form.temperature && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(answer === 'critique' && responseFormat(form, tools.length > 0)),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        ...{ type: 'function' as const, name, description },
        inputSchema: { ...parameters, properties: { ...parameters.properties }, required: [...parameters.required] },
      })),
    }),
  };
}

/** Beside tools a schema or nothing: in the mode for any JSON a model cannot call tools. */
function responseFormat(
  { json, schemaBesideTools }: RequestForm,
  hasTools: boolean,
): Pick<LanguageModelV3CallOptions, 'responseFormat'> {
  if (json === 'prompt' || (hasTools && !(schemaBesideTools && json === 'schema'))) return {};
  return {
    responseFormat: json === 'object' ? { type: 'json' } : { type: 'json', name: 'critique', schema: CRITIC_ANSWER },
  };
}

/** A model's message with its calls, as it came, and their results. */
function messagesOf({ text, exchanges, turn }: ToolRound): readonly LanguageModelV3Message[] {
  const own = isTurn(turn) ? turn : { content: text === '' ? [] : [{ type: 'text' as const, text }] };
  const answeredCalls = new Set(exchanges.map(({ call }) => call.id));
  const kept = own.content.filter((part) => part.type !== 'tool-call' || answeredCalls.has(part.toolCallId));
  const named = new Set(kept.map((part) => (part.type === 'tool-call' ? part.toolCallId : '')));
  const written = exchanges.filter(({ call }) => !named.has(call.id)).map(({ call }) => callPart(call));
  const isWritten = isTurn(turn) && written.length > 0;
  return [
    {
      role: 'assistant',
      // Calls that the model wrote into its text are sent back as calls; the text would be read as an answer.
      content: [...(isWritten ? kept.filter(({ type }) => type === 'reasoning') : kept), ...written],
      ...(own.providerOptions !== undefined && { providerOptions: own.providerOptions }),
    },
    {
      role: 'tool',
      content: exchanges.map(({ call, result }) => ({
        ...{ type: 'tool-result' as const, toolCallId: call.id, toolName: nameOf(call) },
        output: { type: 'text' as const, value: result },
      })),
    },
  ];
}

type AssistantMessage = Extract<LanguageModelV3Message, { role: 'assistant' }>;
type Turn = Pick<AssistantMessage, 'content' | 'providerOptions'>;

/** What a provider requires back with the results of its calls: texts, reasoning and signatures. */
export function turnOf(content: readonly LanguageModelV3Content[], providerOptions: Turn['providerOptions']): Turn {
  const parts = content.flatMap((part): AssistantMessage['content'] => {
    const options = 'providerMetadata' in part && { providerOptions: part.providerMetadata };
    if (part.type === 'text' || part.type === 'reasoning') return [{ type: part.type, text: part.text, ...options }];
    if (part.type !== 'tool-call') return [];
    return [{ ...callPart({ id: part.toolCallId, name: part.toolName, argumentsJson: part.input }), ...options }];
  });
  return { content: parts, ...(providerOptions !== undefined && { providerOptions }) };
}

/** Whether a model's message holds reasoning that goes back with it. */
export function holdsReasoning(turn: unknown): boolean {
  if (!isTurn(turn)) return false;
  return turn.providerOptions !== undefined || turn.content.some(({ type }) => type === 'reasoning');
}

function isTurn(turn: unknown): turn is Turn {
  return isRecord(turn) && Array.isArray(turn['content']);
}

/** The call as it came, but for a name or arguments that servers would refuse. */
function callPart(call: ToolCall): Extract<AssistantMessage['content'][number], { type: 'tool-call' }> {
  return {
    type: 'tool-call',
    toolCallId: call.id,
    toolName: nameOf(call),
    input: recordOf(jsonIn(call.argumentsJson)),
  };
}

function nameOf({ name }: ToolCall): string {
  return name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown';
}

/**
 * The scores a critic chooses from (schemas/critic-answer.json). As texts: servers that enforce a schema by a grammar
 * (llama.cpp) ignore the bounds of a number, and Gemini accepts enums of texts only.
 */
const SCORES = Array.from({ length: 21 }, (_, halves) => String(halves / 2));

/** As strict mode requires: every property required, no others. */
const CRITIC_ANSWER = {
  type: 'object' as const,
  additionalProperties: false,
  required: ['score', 'feedback'],
  properties: {
    score: { type: 'string' as const, enum: SCORES, description: 'From 0 to 10; 8 or more approves the draft.' },
    feedback: { type: 'string' as const, description: 'What would raise the score.' },
  },
};
