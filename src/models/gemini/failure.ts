/** Classifies failed calls to Gemini. */
import { GoogleGenerativeAIFetchError } from '@google/generative-ai';
import { ModelFailed } from '../../errors.js';
import type { Exchange } from './http-exchange.js';
import { hintOfConnection, kindOfConnection, kindOfStatus, quoted } from '../failed-exchange.js';
import { fieldOf } from '../../system/untrusted.js';
import { waitOfDetails, waitOfHeader } from '../failed-exchange.js';

export interface FailedCall {
  readonly model: string;
  readonly exchange: Exchange;
  /** ISO 8601. */
  readonly now: string;
  /** Texts that no message may quote: the key, the prompt. */
  readonly hidden: readonly string[];
}

/**
 * The failure of a call, from the SDK's error and what was observed of the exchange. It has no `cause`: the SDK's
 * errors quote the server at any length, and a server may quote the key.
 */
export function geminiFailure(error: unknown, call: FailedCall): ModelFailed {
  if (error instanceof GoogleGenerativeAIFetchError && error.status !== undefined) {
    return statusFailure(error, error.status, call);
  }
  const seen = givenUp(call);
  if (seen !== null) return seen;
  if (error instanceof SyntaxError) {
    const what = error.message.startsWith('Unexpected end') ? 'empty or cut off' : 'no JSON';
    return failure(call, `the body of its answer is ${what}`, 'unreadable_answer', true);
  }
  const code = call.exchange.brokenBy ?? fieldOf(fieldOf(error, 'cause'), 'code');
  if (typeof code === 'string') return connectionFailure(code, call);
  // The SDK adds methods to the parsed body, which fails for a number, a text or null.
  if (error instanceof TypeError && error.cause === undefined) {
    return failure(call, 'the body of its answer is no JSON object', 'unreadable_answer', true);
  }
  return failure(call, 'the request failed', 'network_error', true);
}

/** The failure of a call that was aborted because of its answer's size or redirect; null when it was not. */
function givenUp(call: FailedCall): ModelFailed | null {
  const { tooLarge, redirected } = call.exchange;
  if (tooLarge) return failure(call, 'its answer is too large', 'answer_too_large', false);
  return redirected ? failure(call, 'it answered with a redirect', 'redirected', false) : null;
}

function statusFailure(error: GoogleGenerativeAIFetchError, status: number, call: FailedCall): ModelFailed {
  const { kind, retryable } = isKeyRefused(error) ? KEY_REFUSED : kindOfStatus(status);
  const words = wordsOf(error, call.hidden);
  const setting = SETTINGS.get(kind);
  const hint = setting === undefined ? '' : ` (check ${setting})`;
  const waits = [waitOfHeader(call.exchange.retryAfter, call.now), waitOfDetails(error.errorDetails)];
  const retryAfters = waits.filter((wait) => wait !== null);
  return new ModelFailed(`${about(call)}: it answered ${status}${hint}${words === '' ? '' : `: ${words}`}`, {
    kind,
    retryable,
    ...(retryAfters.length > 0 && { retryAfterMs: Math.max(...retryAfters) }),
  });
}

/** Gemini answers a wrong key with 400 and says so in the details. */
function isKeyRefused({ errorDetails }: GoogleGenerativeAIFetchError): boolean {
  return Array.isArray(errorDetails) && errorDetails.some((each) => fieldOf(each, 'reason') === 'API_KEY_INVALID');
}

/** The server's message. The SDK puts it between URL and details. */
function wordsOf(
  { message, status, statusText, errorDetails }: GoogleGenerativeAIFetchError,
  hidden: readonly string[],
): string {
  const head = `[${status ?? ''} ${statusText ?? ''}] `;
  const details = errorDetails === undefined ? '' : ` ${JSON.stringify(errorDetails)}`;
  const said = message.slice(message.indexOf(head) + head.length, message.length - details.length);
  return quoted(said, hidden);
}

function connectionFailure(code: string, call: FailedCall): ModelFailed {
  const { why, kind, retryable } = kindOfConnection(code);
  return failure(call, `${why} (${code})${hintOfConnection(code, 'GEMINI_BASE_URL')}`, kind, retryable);
}

function failure(call: FailedCall, why: string, kind: string, retryable: boolean): ModelFailed {
  return new ModelFailed(`${about(call)}: ${why}`, { kind, retryable });
}

function about({ model }: FailedCall): string {
  return `Cannot get an answer from Gemini for model "${model}"`;
}

/** The settings behind a refusal. */
const SETTINGS: ReadonlyMap<string, string> = new Map([
  ['unauthorized', 'GEMINI_API_KEY'],
  ['forbidden', 'GEMINI_API_KEY'],
  ['model_unknown', 'GEMINI_MODEL'],
]);

const KEY_REFUSED = { kind: 'unauthorized', retryable: false };
