/** Writes a request in the words of OpenAI's chat completions. */
import { FEEDBACK_SAYS, SCORE_MEANS, SCORES } from '../port.js';
import { fieldOf } from '../../system/untrusted.js';
import type { ModelRequest, ToolCall, ToolRound } from '../port.js';

/** What servers that call themselves compatible differ in. */
export interface Dialect {
  /** How JSON is asked for. */
  readonly format: 'json_schema' | 'json_object' | 'prompt';
  /** Whether a schema may stand beside tools: several local servers refuse both together. */
  readonly schemaBesideTools: boolean;
  /** Name of the limit on output tokens: newer models of the vendor know the second one only, many servers the first. */
  readonly limit: 'max_tokens' | 'max_completion_tokens';
  /** Whether a stream is asked for its usage. */
  readonly usageInStream: boolean;
  /** Whether it streams at all. */
  readonly streams: boolean;
}

/** What is tried first. */
export const FIRST_DIALECT: Dialect = {
  format: 'json_schema',
  schemaBesideTools: true,
  limit: 'max_tokens',
  usageInStream: true,
  streams: true,
};

/** The body of a call. */
export function openAiRequest(model: string, request: ModelRequest, dialect: Dialect): object {
  const { system, prompt, temperature, maxOutputTokens, tools = [], rounds = [], onToken } = request;
  return {
    model,
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: prompt },
      ...rounds.flatMap((round) => messagesOf(round)),
    ],
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { [dialect.limit]: maxOutputTokens }),
    ...responseFormat(formatOf(request, dialect)),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function',
        function: { name, description, parameters },
      })),
    }),
    ...(onToken !== undefined &&
      dialect.streams && {
        stream: true,
        ...(dialect.usageInStream && { stream_options: { include_usage: true } }),
      }),
  };
}

/**
 * The dialect to try after a server has refused a request (400 or 422), null when there is nothing left to change. Named
 * parameters go first; a refusal of JSON is often unnamed.
 *
 * @param said the server's own words
 */
export function plainerDialect(dialect: Dialect, request: ModelRequest, said: string): Dialect | null {
  if (request.maxOutputTokens !== undefined && dialect.limit === 'max_tokens' && /max_completion_tokens/.test(said)) {
    return { ...dialect, limit: 'max_completion_tokens' };
  }
  const isStreamed = request.onToken !== undefined && dialect.streams;
  if (isStreamed && dialect.usageInStream && /stream_options|include_usage/.test(said)) {
    return { ...dialect, usageInStream: false };
  }
  if (isStreamed) return { ...dialect, streams: false };
  if (formatOf(request, dialect) === 'prompt') return null;
  if (hasTools(request)) return { ...dialect, schemaBesideTools: false };
  return { ...dialect, format: dialect.format === 'json_schema' ? 'json_object' : 'prompt' };
}

/** Beside tools a schema or nothing: a mode that asks for any JSON leaves no room for a call. */
function formatOf(request: ModelRequest, { format, schemaBesideTools }: Dialect): Dialect['format'] {
  if (request.answer !== 'critique') return 'prompt';
  if (!hasTools(request)) return format;
  return schemaBesideTools && format === 'json_schema' ? format : 'prompt';
}

function hasTools({ tools = [] }: ModelRequest): boolean {
  return tools.length > 0;
}

function responseFormat(format: Dialect['format']): object {
  if (format === 'prompt') return {};
  if (format === 'json_object') return { response_format: { type: 'json_object' } };
  return {
    response_format: { type: 'json_schema', json_schema: { name: 'critique', strict: true, schema: CRITIC_ANSWER } },
  };
}

function messagesOf({ text, exchanges }: ToolRound): readonly object[] {
  return [
    { role: 'assistant', content: text === '' ? null : text, tool_calls: exchanges.map(({ call }) => toolCall(call)) },
    ...exchanges.map(({ call, result }) => ({ role: 'tool', tool_call_id: call.id, content: result })),
  ];
}

/** As it came, but for what servers refuse to see again: a name or arguments of no usable form. */
function toolCall({ id, name, argumentsJson, echo }: ToolCall): object {
  const called = name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown';
  const extra = fieldOf(echo, 'extra_content');
  return {
    id,
    type: 'function',
    function: { name: called, arguments: isObject(argumentsJson) ? argumentsJson : '{}' },
    // Servers in front of Gemini keep its thought signature here.
    ...(extra !== undefined && { extra_content: extra }),
  };
}

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** As strict mode takes it: every property required, no others. */
const CRITIC_ANSWER = {
  type: 'object',
  additionalProperties: false,
  required: ['score', 'feedback'],
  properties: {
    score: { type: 'string', enum: SCORES, description: SCORE_MEANS },
    feedback: { type: 'string', description: FEEDBACK_SAYS },
  },
};
