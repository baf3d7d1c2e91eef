/** Reads Gemini's answers with status 200, whole or streamed. */
import type { FinishReason } from '@google/generative-ai';
import type { ModelFailureKind } from '../../errors.js';
import { ModelFailed } from '../../errors.js';
import { fieldOf, listOf } from '../../system/untrusted.js';
import type { ModelAnswer, ModelUsage, ToolCall } from '../port.js';
import { answerEvents } from '../exchange.js';
import { redactedName } from '../failed-exchange.js';

export interface GeminiReading {
  readonly model: string;
  /** Whether tools were offered; if not, calls are ignored as parts of another kind. */
  readonly takesCalls: boolean;
  /** Texts that no message may hold: the key, what was sent. */
  readonly hidden: readonly string[];
  /** false: a stream broke off before its end. */
  readonly isFinished?: boolean;
}

/**
 * The text of the first candidate, its parts joined, without the model's thoughts, in well-formed Unicode, and its
 * calls. A candidate without `finishReason` counts as finished: proxies leave it out.
 *
 * @throws {ModelFailed} `prompt_blocked`, `no_candidates`, a finish reason's name in lower case, `unknown_finish`,
 * `unreadable_answer` (a stream cut off, or no object), `no_text` (only parts of other kinds) or `empty_answer`
 */
export function readGeminiAnswer(response: unknown, reading: GeminiReading): ModelAnswer {
  if (typeof response !== 'object' || response === null) {
    throw unusable(reading.model, 'its body is no JSON object', 'unreadable_answer', true);
  }
  const usage = usageOf(fieldOf(response, 'usageMetadata'));
  try {
    return { ...readCandidate(response, reading), usage };
  } catch (error) {
    if (!(error instanceof ModelFailed) || usage.inputTokens + usage.outputTokens === 0) throw error;
    throw new ModelFailed(error.message, { ...error.data, usage });
  }
}

function readCandidate(response: unknown, { model, takesCalls, hidden, isFinished = true }: GeminiReading) {
  const candidate = firstCandidate(response);
  const blockReason = fieldOf(fieldOf(response, 'promptFeedback'), 'blockReason');
  if (typeof blockReason === 'string') {
    throw unusable(model, `the prompt was blocked (${redactedName(blockReason, hidden)})`, 'prompt_blocked', false);
  }
  if (candidate === null) {
    throw unusable(model, 'Gemini answered without a candidate', 'no_candidates', true);
  }
  if (!isFinished) throw unusable(model, 'the stream of its answer broke off', 'unreadable_answer', true);
  const finishReason = fieldOf(candidate, 'finishReason') ?? 'STOP';
  if (finishReason !== 'STOP') throw unfinished(finishReason, { model, hidden });
  const parts = listOf(fieldOf(fieldOf(candidate, 'content'), 'parts'));
  const calls = takesCalls ? parts.flatMap(callOf) : [];
  return calls.length === 0 ? { text: textOf(parts, model) } : { text: spokenTexts(parts).join(''), calls };
}

function textOf(parts: readonly unknown[], model: string): string {
  const texts = spokenTexts(parts);
  if (texts.length === 0 && parts.length > 0) {
    throw unusable(model, 'none of the parts of its answer is a text', 'no_text', true);
  }
  const text = texts.join('');
  if (text.trim() === '') throw unusable(model, 'its answer is empty', 'empty_answer', true);
  return text.toWellFormed();
}

/** The part is sent back unchanged with the result: Gemini 3 refuses the next request without its thought signature. */
function callOf(part: unknown, index: number): readonly ToolCall[] {
  const call = fieldOf(part, 'functionCall');
  const name = fieldOf(call, 'name');
  if (typeof name !== 'string') return [];
  const id = fieldOf(call, 'id');
  const argumentsJson = JSON.stringify(fieldOf(call, 'args') ?? {});
  return [{ id: typeof id === 'string' ? id : `call_${index}`, name, argumentsJson, echo: part }];
}

/** Thoughts are billed as output. Missing counts are 0. */
function usageOf(metadata: unknown): ModelUsage {
  const count = (name: string): number => {
    const tokens = fieldOf(metadata, name);
    return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : 0;
  };
  return {
    inputTokens: count('promptTokenCount'),
    outputTokens: count('candidatesTokenCount') + count('thoughtsTokenCount'),
  };
}

function unfinished(reason: unknown, { model, hidden }: Pick<GeminiReading, 'model' | 'hidden'>): ModelFailed {
  if (!isUnfinished(reason)) {
    return unusable(
      model,
      `it stopped for an unknown reason (${redactedName(reason, hidden)})`,
      'unknown_finish',
      true,
    );
  }
  const { why, kind, retryable } = FINISHES[reason];
  return unusable(model, `${why} (${reason})`, kind, retryable);
}

function unusable(model: string, why: string, kind: ModelFailureKind, retryable: boolean): ModelFailed {
  return new ModelFailed(`Cannot use the answer of model "${model}": ${why}`, { kind, retryable });
}

/**
 * Finish reasons other than STOP. Retryable is what may come out differently: a malformed call, an unnamed fault, a
 * recitation. Not retryable is what lies in the request: a filter's finding, or the limit on the answer, which would be
 * reached again at the full price. An unknown reason is retryable: attempts are few, a lost run is worse.
 */
const FINISHES: {
  readonly [R in Unfinished]: { readonly why: string; readonly kind: Lowercase<R>; readonly retryable: boolean };
} = {
  MAX_TOKENS: { why: 'it was cut off at the limit of output tokens', kind: 'max_tokens', retryable: false },
  SAFETY: { why: 'it was withheld as unsafe', kind: 'safety', retryable: false },
  RECITATION: { why: 'it was withheld as a recitation', kind: 'recitation', retryable: true },
  LANGUAGE: { why: 'its language is not supported', kind: 'language', retryable: false },
  OTHER: { why: 'it stopped without a stated reason', kind: 'other', retryable: true },
  BLOCKLIST: { why: 'it was withheld for a forbidden term', kind: 'blocklist', retryable: false },
  PROHIBITED_CONTENT: { why: 'it was withheld as prohibited content', kind: 'prohibited_content', retryable: false },
  SPII: { why: 'it was withheld as sensitive personal information', kind: 'spii', retryable: false },
  MALFORMED_FUNCTION_CALL: {
    why: 'it made a malformed function call',
    kind: 'malformed_function_call',
    retryable: true,
  },
};

type Unfinished = Exclude<`${FinishReason}`, 'STOP' | 'FINISH_REASON_UNSPECIFIED'>;

function isUnfinished(reason: unknown): reason is Unfinished {
  return typeof reason === 'string' && Object.hasOwn(FINISHES, reason);
}

// Joins the chunks of a streamed answer, with every part and thought signature.

/** The answer as generateContent would have returned it. */
export interface JoinedAnswer {
  readonly promptFeedback: unknown;
  readonly candidates: readonly object[];
  readonly usageMetadata: unknown;
  /** Whether the stream marked its end; a stream that breaks off does not. */
  readonly isFinished: boolean;
}

/** Reads a stream to its end; `onToken` receives the first candidate's text as it comes, without thoughts. */
export async function joinChunks(
  chunks: AsyncIterable<unknown>,
  onToken: (text: string) => void,
): Promise<JoinedAnswer> {
  const parts: unknown[] = [];
  let [promptFeedback, usageMetadata, finishReason]: unknown[] = [];
  let hasCandidate = false;
  for await (const chunk of chunks) {
    promptFeedback = fieldOf(chunk, 'promptFeedback') ?? promptFeedback;
    usageMetadata = fieldOf(chunk, 'usageMetadata') ?? usageMetadata;
    const candidate = firstCandidate(chunk);
    if (candidate === null) continue;
    hasCandidate = true;
    finishReason = fieldOf(candidate, 'finishReason') ?? finishReason;
    const found = listOf(fieldOf(fieldOf(candidate, 'content'), 'parts'));
    parts.push(...found);
    spokenTexts(found).forEach(onToken);
  }
  const isBlocked = fieldOf(promptFeedback, 'blockReason') !== undefined;
  return {
    promptFeedback,
    usageMetadata,
    candidates: hasCandidate ? [{ content: { parts }, finishReason }] : [],
    isFinished: finishReason !== undefined || isBlocked || !hasCandidate,
  };
}

function firstCandidate(answer: unknown): object | null {
  const [candidate = null] = listOf(fieldOf(answer, 'candidates'));
  return typeof candidate === 'object' ? candidate : null;
}

/** The texts among an answer's parts that are no thoughts. */
function spokenTexts(parts: readonly unknown[]): readonly string[] {
  return parts
    .filter((part) => fieldOf(part, 'thought') !== true)
    .map((part) => fieldOf(part, 'text'))
    .filter((text) => typeof text === 'string');
}

/** The chunks of an answer as they come. @throws {SyntaxError | BodyTooLarge} */
export async function* geminiChunks(response: Response): AsyncGenerator {
  for await (const data of answerEvents(response)) yield JSON.parse(data);
}
