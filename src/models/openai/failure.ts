/** Classifies failed calls to an OpenAI-compatible server. */
import { BodyTooLarge } from '../../system/untrusted.js';
import { ModelFailed } from '../../errors.js';
import type { FaultKind } from '../failed-exchange.js';
import {
  hintOfConnection,
  isModelUnknown,
  kindOfConnection,
  kindOfStatus,
  quoted,
  wordsOfError,
} from '../failed-exchange.js';
import { fieldOf } from '../../system/untrusted.js';
import { isBlocked } from './answer.js';
import { waitOfHeader } from '../failed-exchange.js';

export interface FailedCall {
  readonly model: string;
  /** ISO 8601. */
  readonly now: string;
  /** Texts that no message may quote: the key, the prompt. */
  readonly hidden: readonly string[];
}

/** The failure behind an error status; `body` is the response's text. */
export function statusFailure(response: Response, body: string, call: FailedCall): ModelFailed {
  const { status, headers } = response;
  if (status >= 300 && status < 400) return failure(call, 'it answered with a redirect', 'redirected', false);
  const parsedBody = parsed(body);
  const { kind, retryable } = kindOf(status, parsedBody);
  const words = quoted(wordsOfError(parsedBody), call.hidden);
  const hint = HINTS.get(kind);
  const retryAfterMs = waitOfHeader(headers.get('retry-after'), call.now);
  const why = `it answered ${status}${hint === undefined ? '' : ` (${hint})`}${words === '' ? '' : `: ${words}`}`;
  return new ModelFailed(`${about(call)}: ${why}`, { kind, retryable, ...(retryAfterMs !== null && { retryAfterMs }) });
}

/** The failure behind an error of fetch or of reading the body. It has no `cause`: that may quote the server. */
export function thrownFailure(error: unknown, call: FailedCall): ModelFailed {
  if (error instanceof BodyTooLarge) return failure(call, 'its answer is too large', 'answer_too_large', false);
  if (error instanceof SyntaxError) {
    const what = error.message.startsWith('Unexpected end') ? 'empty or cut off' : 'no JSON';
    return failure(call, `the body of its answer is ${what}`, 'unreadable_answer', true);
  }
  const code = fieldOf(fieldOf(error, 'cause'), 'code');
  const { why, kind, retryable } = kindOfConnection(typeof code === 'string' ? code : null);
  if (typeof code !== 'string') return failure(call, why, kind, retryable);
  return failure(call, `${why} (${code})${hintOfConnection(code, 'OPENAI_BASE_URL')}`, kind, retryable);
}

function failure(call: FailedCall, why: string, kind: string, retryable: boolean): ModelFailed {
  return new ModelFailed(`${about(call)}: ${why}`, { kind, retryable });
}

function about({ model }: FailedCall): string {
  return `Cannot get an answer from the OpenAI-compatible server for model "${model}"`;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/** Routers and filters use the status of a bad request or an outage for failures that no retry can fix. */
function kindOf(status: number, body: unknown): FaultKind {
  const code = fieldOf(fieldOf(body, 'error'), 'code');
  if (code === 'insufficient_quota') return QUOTA_USED_UP;
  if (isBlocked(body)) return PROMPT_BLOCKED;
  if (code === 'model_not_found' || isModelUnknown(status, wordsOfError(body))) return MODEL_UNKNOWN;
  return kindOfStatus(status);
}

/** OpenAI answers 429 for an empty account too, where waiting does not help. */
const QUOTA_USED_UP = { kind: 'quota_used_up', retryable: false };
const PROMPT_BLOCKED = { kind: 'prompt_blocked', retryable: false };
const MODEL_UNKNOWN = { kind: 'model_unknown', retryable: false };

/** The likely cause of a refusal, mostly a setting. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ['unauthorized', 'check OPENAI_API_KEY'],
  ['forbidden', 'check OPENAI_API_KEY'],
  ['model_unknown', 'check OPENAI_MODEL and OPENAI_BASE_URL'],
  ['prompt_blocked', 'the prompt was blocked'],
]);
