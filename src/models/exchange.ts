/**
 * One HTTP exchange with a model's server, the same for every provider. Answers are bounded; redirects are not followed,
 * because the key would go with them. Failures have no `cause`: it may quote the server at any length, and the server
 * the key.
 */
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { serverEvents } from '../system/server-events.js';
import { BodyTooLarge, boundedChunks, boundedText, fieldOf, listOf } from '../system/untrusted.js';
import type { FaultKind } from './failed-exchange.js';
import {
  hintOfConnection,
  kindOfConnection,
  redact,
  waitOfDetails,
  waitOfHeader,
  errorMessageOf,
} from './failed-exchange.js';
import type { ModelRequest } from './port.js';
import { callAborted } from './port.js';

/** What failures of one server have in common. */
export interface ModelServer {
  /** How their messages begin: what was wanted of whom. */
  readonly purpose: string;
  /** The setting that holds its address. */
  readonly addressSetting: string;
  /** The kind of failure behind an error status and the parsed body. */
  readonly kindOf: (status: number, body: unknown) => FaultKind;
  /** The likely cause of failures by their kind, mostly a setting to check. */
  readonly hints: ReadonlyMap<string, string>;
}

export interface ServerCall {
  readonly server: ModelServer;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  readonly signal: AbortSignal;
  /** Texts that no message may quote. */
  readonly hidden: readonly string[];
  /** What time a `Retry-After` counts from. */
  readonly now: System['now'];
}

export interface Reading<T> {
  /** Reads an answer with a status of success. */
  readonly read: (response: Response) => Promise<T>;
  /** What follows from an error status. Default: the failure is thrown. */
  readonly refused?: (failure: ModelFailed, refusal: { readonly status: number; readonly said: string }) => T;
}

/** @throws {ModelFailed} `aborted` by the signal, or as named by the server's answer or the connection */
export async function exchange<T>(call: ServerCall, { read, refused }: Reading<T>): Promise<T> {
  const { url, headers, body, signal } = call;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal,
    });
    if (response.ok) return await read(response);
    const said = await boundedText(response, MAX_ERROR_BYTES).catch(() => '');
    const failure = statusFailure(response, said, call);
    if (refused === undefined) throw failure;
    return refused(failure, { status: response.status, said });
  } catch (error) {
    if (signal.aborted) throw callAborted(signal);
    throw error instanceof ModelFailed ? error : thrownFailure(error, call.server);
  }
}

/** The JSON value of an answer. @throws {SyntaxError | BodyTooLarge} */
export async function jsonIn(response: Response): Promise<unknown> {
  return JSON.parse(await boundedText(response, MAX_ANSWER_BYTES));
}

/** The data of each event of a streamed answer. @throws {BodyTooLarge} or what a broken connection throws */
export function answerEvents(response: Response): AsyncGenerator<string> {
  const chunks = boundedChunks(response, MAX_ANSWER_BYTES);
  return serverEvents(chunks, { isLastComplete: true, maxChars: MAX_ANSWER_BYTES });
}

/** The texts of a request that no message may quote. */
export function textsOf({ system, prompt, rounds = [] }: ModelRequest): readonly string[] {
  return [prompt, system, ...rounds.flatMap(({ exchanges }) => exchanges.map(({ result }) => result))];
}

/** Largest answer in bytes. A draft takes 128 KiB; a stream adds some 200 bytes per token; 100 vectors are 6 MiB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Most bytes read of the body of an error status. */
const MAX_ERROR_BYTES = 64 * 1024;

function statusFailure({ status, headers }: Response, said: string, { server, hidden, now }: ServerCall): ModelFailed {
  if (status >= 300 && status < 400) {
    return failure(server, 'it answered with a redirect', { kind: 'redirected', retryable: false });
  }
  const body = parsed(said);
  const fault = server.kindOf(status, body);
  const hint = server.hints.get(fault.kind);
  const words = redact(errorMessageOf(body), hidden);
  const asked = [
    waitOfHeader(headers.get('retry-after'), now()),
    waitOfDetails(fieldOf(fieldOf(body, 'error'), 'details')),
  ];
  const waits = asked.filter((wait) => wait !== null);
  const why = `it answered ${status}${hint === undefined ? '' : ` (${hint})`}${words === '' ? '' : `: ${words}`}`;
  return failure(server, why, { ...fault, ...(waits.length > 0 && { retryAfterMs: Math.max(...waits) }) });
}

/** The failure behind an error of fetch, or of reading the body. */
function thrownFailure(error: unknown, server: ModelServer): ModelFailed {
  if (error instanceof BodyTooLarge) {
    return failure(server, 'its answer is too large', { kind: 'answer_too_large', retryable: false });
  }
  if (error instanceof SyntaxError) {
    return failure(server, 'the body of its answer is not complete JSON', {
      kind: 'unreadable_answer',
      retryable: true,
    });
  }
  const cause = fieldOf(error, 'cause');
  const found = fieldOf(cause, 'code');
  const code = typeof found === 'string' ? found : null;
  const { why, kind, retryable } = kindOfConnection(code);
  const named = code === null ? why : `${why} (${code})${hintOfConnection(cause, server.addressSetting)}`;
  return failure(server, named, { kind, retryable });
}

function failure({ purpose }: ModelServer, why: string, fault: ModelFailed['data']): ModelFailed {
  return new ModelFailed(`${purpose}: ${why}`, fault);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/** Whether an error body says that the key is refused: Gemini does so with status 400. */
export function isKeyRefused(body: unknown): boolean {
  const details = fieldOf(fieldOf(body, 'error'), 'details');
  return listOf(details).some((each) => fieldOf(each, 'reason') === 'API_KEY_INVALID');
}
