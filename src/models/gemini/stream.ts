/**
 * Joins the chunks of a streamed answer. The SDK's own aggregate loses parts: of a chunk with several it keeps the last
 * one, twice, and it drops thought signatures.
 */
import { BodyTooLarge, boundedChunks, boundedText, fieldOf } from '../../system/untrusted.js';
import { GoogleGenerativeAIFetchError } from '@google/generative-ai';
import type { Exchange } from './http-exchange.js';
import { serverEvents } from '../server-events.js';

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
    const found = fieldOf(fieldOf(candidate, 'content'), 'parts');
    if (!Array.isArray(found)) continue;
    parts.push(...(found as readonly unknown[]));
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

export interface StreamedCall {
  readonly url: string;
  readonly apiKey: string;
  readonly body: object;
  readonly signal: AbortSignal;
  /** Filled with what is observed of the call. */
  readonly exchange: Exchange;
  readonly maxBytes: number;
}

/**
 * Calls Gemini and yields the chunks of its answer as they come. Not through the SDK, which loses the last event of a
 * stream that lacks its empty line, and with it the whole answer.
 *
 * @throws the SDK's kinds of errors, which `geminiFailure` classifies together with the exchange
 */
export async function* geminiChunks(call: StreamedCall): AsyncGenerator {
  const { url, apiKey, body, signal, exchange, maxBytes } = call;
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'x-goog-api-key': apiKey },
    body: JSON.stringify(body),
    redirect: 'manual',
    signal,
  });
  exchange.retryAfter = response.headers.get('retry-after');
  exchange.redirected = response.status >= 300 && response.status < 400;
  if (!response.ok) throw exchange.redirected ? new Error('Redirects are not followed') : await refusalOf(response);
  try {
    for await (const data of serverEvents(boundedChunks(response, maxBytes))) yield JSON.parse(data);
  } catch (error) {
    exchange.tooLarge = error instanceof BodyTooLarge;
    throw error;
  }
}

/** An error in the SDK's form, from which `geminiFailure` takes the message. */
async function refusalOf(response: Response): Promise<GoogleGenerativeAIFetchError> {
  const { status, statusText } = response;
  const error = fieldOf(parsed(await boundedText(response, MAX_ERROR_BYTES).catch(() => '')), 'error');
  const [said, details] = [fieldOf(error, 'message'), fieldOf(error, 'details')];
  const shown = Array.isArray(details) ? ` ${JSON.stringify(details)}` : '';
  const message = `[${status} ${statusText}] ${typeof said === 'string' ? said : ''}${shown}`;
  return new GoogleGenerativeAIFetchError(message, status, statusText, Array.isArray(details) ? details : undefined);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Most bytes read of the body of an error status. */
const MAX_ERROR_BYTES = 64 * 1024;
