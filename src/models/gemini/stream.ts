/** Joins the chunks of a streamed answer, with every part and thought signature. */
import { fieldOf, listOf } from '../../system/untrusted.js';
import { answerEvents } from '../exchange.js';

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

function firstCandidate(chunk: unknown): object | null {
  const candidates = fieldOf(chunk, 'candidates');
  const candidate: unknown = Array.isArray(candidates) ? candidates[0] : null;
  return typeof candidate === 'object' ? candidate : null;
}

/** The texts among an answer's parts that are no thoughts. */
export function spokenTexts(parts: readonly unknown[]): readonly string[] {
  return parts
    .filter((part) => fieldOf(part, 'thought') !== true)
    .map((part) => fieldOf(part, 'text'))
    .filter((text) => typeof text === 'string');
}

/** The chunks of an answer as they come. @throws {SyntaxError | BodyTooLarge} */
export async function* geminiChunks(response: Response): AsyncGenerator {
  for await (const data of answerEvents(response)) yield JSON.parse(data);
}
