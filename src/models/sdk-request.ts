/** A request in the words of the provider packages, and the model's own message that goes back with its tool calls. */
import type {
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3Message,
  LanguageModelV3TextPart,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider';
import { isRecord, jsonIn, recordOf } from '../system/untrusted.js';
import type { ModelRequest, ToolCall, ToolRound } from './port.js';
import { materialSection, userMessage } from './material.js';
import { answerSchema } from './answer-schema.js';
import type { RequestForm } from './wires/wire.js';

/** The texts of a request that no message may quote. */
export function textsOf({ system, material = '', prompt, rounds = [] }: ModelRequest): readonly string[] {
  return [prompt, material, system, ...rounds.flatMap(({ exchanges }) => exchanges.map(({ result }) => result))];
}

/** @param cacheMark of the wire */
export function optionsOf(
  request: ModelRequest,
  form: RequestForm,
  cacheMark?: SharedV3ProviderOptions,
): LanguageModelV3CallOptions {
  const { system, material, prompt, temperature, maxOutputTokens, answer, tools = [], rounds = [] } = request;
  const rest = form.systemRole ? prompt : `${system}\n\n${prompt}`;
  return {
    prompt: [
      ...(form.systemRole ? [{ role: 'system' as const, content: system }] : []),
      { role: 'user', content: userParts({ material, rest, cacheMark }) },
      ...rounds.flatMap(messagesOf),
    ],
    ...(temperature !== undefined && form.temperature && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(answer !== 'draft' && responseFormat(form, request)),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function' as const,
        name,
        description,
        inputSchema: { ...parameters, properties: { ...parameters.properties }, required: [...parameters.required] },
      })),
    }),
  };
}

/** Longest material that is not worth a mark for the cache, in UTF-16 units. */
const MIN_MARKED_CHARS = 4000;

/** The user message in one part; in two if the first ends where the provider's cache should. */
function userParts({
  material,
  rest,
  cacheMark,
}: {
  readonly material: string | undefined;
  readonly rest: string;
  readonly cacheMark: SharedV3ProviderOptions | undefined;
}): LanguageModelV3TextPart[] {
  if (material === undefined) return [{ type: 'text', text: rest }];
  if (cacheMark === undefined || material.length <= MIN_MARKED_CHARS) {
    return [{ type: 'text', text: userMessage({ material, prompt: rest }) }];
  }
  return [
    { type: 'text', text: materialSection(material), providerOptions: cacheMark },
    { type: 'text', text: `\n\n${rest}` },
  ];
}

/** Beside tools a schema or nothing: in the mode for any JSON a model cannot call tools. */
function responseFormat(
  { json, schemaBesideTools }: RequestForm,
  request: ModelRequest,
): Pick<LanguageModelV3CallOptions, 'responseFormat'> {
  const { answer, tools = [] } = request;
  if (json === 'prompt' || (tools.length > 0 && !(schemaBesideTools && json === 'schema'))) return {};
  const schema = answerSchema(request);
  if (json === 'object' || schema === null) return { responseFormat: { type: 'json' } };
  return { responseFormat: { type: 'json', name: answer, schema } };
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
        type: 'tool-result' as const,
        toolCallId: call.id,
        toolName: nameOf(call),
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
