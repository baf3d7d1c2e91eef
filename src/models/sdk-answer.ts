/** An answer of a provider package, whole or streamed, as the council sees it. */
import type { LanguageModelV3, LanguageModelV3Content, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { ModelFailed } from '../errors.js';
import { callsInText } from './calls-in-text.js';
import { redactName } from './redaction.js';
import type { ServerCall } from './server-call.js';
import type { ModelAnswer, ModelRequest, ModelUsage, ToolCall } from './port.js';
import { droppedFrom } from './request-form.js';
import { MAX_CALLS } from './port.js';
import { turnOf } from './sdk-request.js';
import { faultOfFinish, isKnownFinish, unusable } from './unusable-answer.js';
import type { RequestForm, WireReader } from './wires/wire.js';

/** The call that an answer belongs to. */
export interface AnsweredCall {
  readonly request: ModelRequest;
  readonly form: RequestForm;
  readonly call: ServerCall;
  readonly reader: WireReader;
}

/** A whole answer of a package. */
export type Answered = Pick<
  Awaited<ReturnType<LanguageModelV3['doGenerate']>>,
  'content' | 'finishReason' | 'warnings'
>;

/** Joins the parts of a streamed answer into those of a whole one. */
export async function joined(
  stream: ReadableStream<LanguageModelV3StreamPart>,
  onToken?: (text: string) => void,
): Promise<Answered> {
  const content: LanguageModelV3Content[] = [];
  let warnings: Answered['warnings'] = [];
  const open = new Map<string, TextPart>();
  for await (const part of stream) {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start': {
        const begun: TextPart = { type: part.type === 'text-start' ? 'text' : 'reasoning', text: '' };
        open.set(part.id, begun);
        content.push(begun);
        break;
      }
      case 'text-delta':
      case 'reasoning-delta':
      case 'text-end':
      case 'reasoning-end':
        extend(open.get(part.id), part, onToken);
        break;
      case 'tool-call':
        content.push(part);
        break;
      case 'stream-start':
        ({ warnings } = part);
        break;
      case 'error':
        throw part.error;
      case 'finish':
        return { content, finishReason: part.finishReason, warnings };
      default:
    }
  }
  throw new TypeError('The package ended its stream without a finish');
}

type TextPart = Extract<LanguageModelV3Content, { type: 'text' | 'reasoning' }>;

/** Adds a piece to a text that has begun, or the metadata of its end. */
function extend(
  begun: TextPart | undefined,
  piece: Extract<LanguageModelV3StreamPart, { type: 'text-delta' | 'reasoning-delta' | 'text-end' | 'reasoning-end' }>,
  onToken?: (text: string) => void,
): void {
  if (begun === undefined) return;
  if ('delta' in piece) begun.text += piece.delta;
  if (piece.type === 'text-delta' && piece.delta !== '') onToken?.(piece.delta);
  if (piece.providerMetadata !== undefined) begun.providerMetadata = piece.providerMetadata;
}

/** @throws {ModelFailed} for an answer that cannot be used, with its usage if the provider reports it */
export function answerIn({ content, finishReason, warnings }: Answered, answered: AnsweredCall): ModelAnswer {
  const dropped = droppedFrom(answered.request, answered.form, warnings);
  const usage = answered.reader.usage();
  try {
    return { ...usableAnswer(content, finishReason.raw, answered), usage, ...(dropped.length > 0 && { dropped }) };
  } catch (error) {
    throw withUsage(error, usage);
  }
}

/** The failure of an answer with what the provider has reported of its usage: a count, or the cost alone. */
export function withUsage(error: unknown, usage: ModelUsage): unknown {
  const { inputTokens, outputTokens, costUsd = null } = usage;
  const isReported = [inputTokens, outputTokens, costUsd].some((each) => each !== null);
  return error instanceof ModelFailed && isReported ? new ModelFailed(error.message, { ...error.data, usage }) : error;
}

function usableAnswer(
  content: readonly LanguageModelV3Content[],
  reason: string | undefined,
  { request, call, reader }: AnsweredCall,
): Omit<ModelAnswer, 'usage'> {
  const fault = faultOfFinish(reason, call);
  if (fault !== null) throw fault;
  const text = content
    .flatMap((part) => (part.type === 'text' ? [part.text] : []))
    .join('')
    .toWellFormed();
  const chars = content.reduce((sum, part) => sum + ('text' in part ? part.text.length : 0), 0);
  if (chars > MAX_TEXT_CHARS) throw unusable(call, `it holds ${chars} characters`, 'answer_too_large');
  const finish = reason !== undefined && !isKnownFinish(reason) && { finish: redactName(reason, call.hidden) };
  const calls = (request.tools ?? []).length > 0 ? callsIn(content, text, { request, call }) : [];
  if (calls.length > 0) return { text, calls, turn: turnOf(content, reader.turnOptions?.()), ...finish };
  if (text.trim() !== '') return { text, ...finish };
  const kinds = new Set(content.map(({ type }) => type));
  if (kinds.has('tool-call')) throw unusable(call, 'it calls tools and holds no text', 'no_text');
  if (kinds.has('reasoning')) throw unusable(call, 'it holds reasoning and no text', 'thoughts_only');
  throw unusable(call, 'its text is empty', 'empty_answer');
}

/** Most UTF-16 units of an answer with its thoughts; a draft has at most 128 KiB. What follows reads them several times. */
const MAX_TEXT_CHARS = 4 * 1024 * 1024;

function callsIn(
  content: readonly LanguageModelV3Content[],
  text: string,
  { request, call }: Pick<AnsweredCall, 'request' | 'call'>,
): readonly ToolCall[] {
  const calls = content.flatMap((part): ToolCall[] =>
    part.type === 'tool-call' ? [{ id: part.toolCallId, name: part.toolName, argumentsJson: part.input }] : [],
  );
  if (calls.length > 0) return calls.slice(0, MAX_CALLS);
  const written = callsInText(text, new Set(request.tools?.map(({ name }) => name)));
  if (written === 'malformed')
    throw unusable(
      call,
      'it writes a tool call that cannot be read or names no offered tool',
      'malformed_function_call',
    );
  return written.slice(0, MAX_CALLS).map((each, index) => ({ ...each, id: `call_${call.rounds}_${index}` }));
}
