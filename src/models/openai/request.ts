/** Builds requests in the format of OpenAI's chat completions. */
import { FEEDBACK_SAYS, SCORE_MEANS, SCORES } from '../port.js';
import { fieldOf } from '../../system/untrusted.js';
import type { ModelRequest, ToolCall, ToolRound } from '../port.js';

/** Differences between servers that call themselves compatible. */
export interface Dialect {
  /** How JSON is asked for. */
  readonly format: 'json_schema' | 'json_object' | 'prompt';
  /** Whether a schema may stand beside tools: several local servers refuse both together. */
  readonly schemaBesideTools: boolean;
  /** Name of the limit on output tokens: newer OpenAI models accept only the second, many servers only the first. */
  readonly limit: 'max_tokens' | 'max_completion_tokens';
  /** Whether a stream is asked to report its usage. */
  readonly usageInStream: boolean;
  /** Whether it streams at all. */
  readonly streams: boolean;
}

/** The dialect to try first. */
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
 * The dialect to try after a server has refused a request (400 or 422), null when there is nothing left to change.
 * Parameters that the message names go first; refusals of JSON often name nothing.
 *
 * @param said the server's message
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

/** Beside tools a schema or nothing: in the mode for any JSON a model cannot call tools. */
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

/** The call as it came, except for a name or arguments that servers would refuse. */
function toolCall({ id, name, argumentsJson, echo }: ToolCall): object {
  const called = name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown';
  const extra = fieldOf(echo, 'extra_content');
  return {
    id,
    type: 'function',
    function: { name: called, arguments: isObject(argumentsJson) ? argumentsJson : '{}' },
    // Proxies for Gemini keep its thought signature here.
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

/** As strict mode requires: every property required, no others. */
const CRITIC_ANSWER = {
  type: 'object',
  additionalProperties: false,
  required: ['score', 'feedback'],
  properties: {
    score: { type: 'string', enum: SCORES, description: SCORE_MEANS },
    feedback: { type: 'string', description: FEEDBACK_SAYS },
  },
};
