/**
 * Asks Gemini for a streamed answer. The SDK would lose the last event of a stream that lacks its empty line, and with it
 * the whole answer; its errors are thrown here too, so that both kinds of calls fail in the same words.
 */
import { GoogleGenerativeAIFetchError } from '@google/generative-ai';
import { BodyTooLarge, boundedChunks, boundedText } from '../bounded-body.js';
import type { Exchange } from './exchange.js';
import { fieldOf } from './field.js';
import { serverEvents } from './server-events.js';

export interface StreamedCall {
  readonly url: string;
  readonly apiKey: string;
  readonly body: object;
  readonly signal: AbortSignal;
  /** Is told what is seen of the call. */
  readonly exchange: Exchange;
  readonly maxBytes: number;
}

/** The chunks of an answer as they come. @throws what `geminiFailure` names, together with the exchange */
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

/** In the form the SDK gives it, from which its words are taken. */
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

/** Of the body beside an error status; more of it is not read. */
const MAX_ERROR_BYTES = 64 * 1024;
