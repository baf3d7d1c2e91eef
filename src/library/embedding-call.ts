/** One request for vectors over HTTP: its deadline, its retries, and how it fails. The same for every provider. */
import type { Ambient } from '../ambient.js';
import { BodyTooLarge, boundedText } from '../bounded-body.js';
import { ModelFailed } from '../errors.js';
import { callAborted } from '../model/call-aborted.js';
import { kindOfConnection, kindOfStatus, quoted } from '../model/failed-exchange.js';
import { fieldOf } from '../model/field.js';
import { waitOfDetails, waitOfHeader } from '../model/retry-after.js';
import { wait } from '../wait.js';
import { normalised } from './embeddings.js';

export interface EmbeddingCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  readonly model: string;
  /** The setting that holds the key, as a hint. */
  readonly keySetting: string;
  /** Texts that no message may hold: the key, the texts. */
  readonly hidden: readonly string[];
}

export interface EmbeddingLimits {
  /** Of one request, in milliseconds. */
  readonly timeoutMs: number;
  /** Requests until the call fails. */
  readonly maxAttempts: number;
}

export const EMBEDDING_LIMITS: EmbeddingLimits = { timeoutMs: 60_000, maxAttempts: 5 };

export interface EmbeddingAmbient {
  readonly limits: EmbeddingLimits;
  readonly ambient: Pick<Ambient, 'after' | 'now' | 'random'>;
}

/** 100 vectors of 3,072 numbers of 20 digits are 6 MiB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** A Retry-After is honoured up to this (contract, section 1). */
const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * What the server answered, read by `read`. What may pass by itself is asked again: after a wait that doubles, with full
 * jitter, and is never shorter than the server asks for. Redirects are not followed, for the key would go with them.
 *
 * @throws {ModelFailed} of the last try, or `aborted` by the signal
 */
export async function askForVectors<T>(
  call: EmbeddingCall,
  { signal, read }: { readonly signal: AbortSignal; readonly read: (answer: unknown) => T },
  { limits, ambient }: EmbeddingAmbient,
): Promise<T> {
  const isStopped = (): boolean => signal.aborted;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return read(await exchanged(call, signal, { limits, ambient }));
    } catch (error) {
      if (isStopped()) throw callAborted(signal);
      const isFinal = !(error instanceof ModelFailed) || !error.data.retryable || attempt >= limits.maxAttempts;
      if (isFinal) throw error;
      const backoffMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)) * ambient.random();
      const askedMs = Math.min(LONGEST_RETRY_AFTER_MS, error.data.retryAfterMs ?? 0);
      await wait(ambient, Math.max(backoffMs, askedMs), signal);
      if (isStopped()) throw callAborted(signal);
    }
  }
}

/** The vector of length 1 that a server's numbers make. @throws {ModelFailed} `bad_vector` */
export function vectorIn(values: unknown, dimensions: number, model: string): Float32Array {
  if (!Array.isArray(values) || values.length !== dimensions) {
    const found = Array.isArray(values) ? `${values.length} dimensions` : 'none';
    throw failure(model, `a vector of ${dimensions} dimensions is wanted, ${found} came`, 'bad_vector', false);
  }
  const numbers: readonly unknown[] = values;
  const vector = numbers.every((each) => typeof each === 'number') ? normalised(numbers) : null;
  if (vector !== null) return vector;
  throw failure(model, 'a vector of its answer is zero, or holds something else than numbers', 'bad_vector', false);
}

/** The list of an answer when it has one entry a text. @throws {ModelFailed} `unreadable_answer` */
export function listIn(answer: unknown, name: string, count: number, model: string): readonly unknown[] {
  const list = fieldOf(answer, name);
  if (Array.isArray(list) && list.length === count) return list;
  const came = Array.isArray(list) ? `${list.length} came` : 'no list came';
  throw failure(model, `${count} vectors are wanted, ${came}`, 'unreadable_answer', true);
}

export function failure(
  model: string,
  why: string,
  kind: string,
  retryable: boolean,
  retryAfterMs: number | null = null,
): ModelFailed {
  const fault = { kind, retryable, ...(retryAfterMs !== null && { retryAfterMs }) };
  return new ModelFailed(`Cannot get vectors of model "${model}": ${why}`, fault);
}

/** Settles by the deadline, also where the server sends one byte after the other. */
async function exchanged(
  call: EmbeddingCall,
  signal: AbortSignal,
  { limits, ambient }: EmbeddingAmbient,
): Promise<unknown> {
  const deadline = new AbortController();
  const cancel = ambient.after(limits.timeoutMs, () => deadline.abort());
  try {
    const response = await fetch(call.url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...call.headers },
      body: JSON.stringify(call.body),
      redirect: 'manual',
      signal: AbortSignal.any([signal, deadline.signal]),
    });
    if (!response.ok) {
      const said = await boundedText(response, MAX_ERROR_BYTES).catch(() => '');
      throw statusFailure(response, said, call, ambient.now());
    }
    return JSON.parse(await boundedText(response, MAX_ANSWER_BYTES)) as unknown;
  } catch (error) {
    if (error instanceof ModelFailed) throw error;
    if (deadline.signal.aborted) {
      throw failure(call.model, `none came within ${limits.timeoutMs} ms`, 'timeout', true);
    }
    throw thrownFailure(error, call.model);
  } finally {
    cancel();
  }
}

function statusFailure({ status, headers }: Response, body: string, call: EmbeddingCall, now: string): ModelFailed {
  const { model, hidden, keySetting } = call;
  if (status >= 300 && status < 400) return failure(model, 'it answered with a redirect', 'redirected', false);
  const error = fieldOf(parsed(body), 'error');
  const details = fieldOf(error, 'details');
  const { kind, retryable } = isKeyRefused(details) ? KEY_REFUSED : kindOfStatus(status);
  const message = fieldOf(error, 'message');
  const words = typeof message === 'string' ? quoted(message, hidden) : '';
  const hint = kind === 'unauthorized' || kind === 'forbidden' ? ` (check ${keySetting})` : '';
  const waits = [waitOfHeader(headers.get('retry-after'), now), waitOfDetails(details)].filter((each) => each !== null);
  const why = `it answered ${status}${hint}${words === '' ? '' : `: ${words}`}`;
  return failure(model, why, kind, retryable, waits.length > 0 ? Math.max(...waits) : null);
}

/** It has no `cause`: that may quote the server. */
function thrownFailure(error: unknown, model: string): ModelFailed {
  if (error instanceof BodyTooLarge) return failure(model, 'its answer is too large', 'answer_too_large', false);
  if (error instanceof SyntaxError) {
    return failure(model, 'the body of its answer is cut off or no JSON', 'unreadable_answer', true);
  }
  const code = fieldOf(fieldOf(error, 'cause'), 'code');
  const { why, kind, retryable } = kindOfConnection(typeof code === 'string' ? code : null);
  return failure(model, typeof code === 'string' ? `${why} (${code})` : why, kind, retryable);
}

/** Gemini answers a wrong key with 400 and says so in the details. */
function isKeyRefused(details: unknown): boolean {
  return Array.isArray(details) && details.some((each) => fieldOf(each, 'reason') === 'API_KEY_INVALID');
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

const KEY_REFUSED = { kind: 'unauthorized', retryable: false };
