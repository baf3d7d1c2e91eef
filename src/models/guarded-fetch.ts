/**
 * The `fetch` that the provider packages are given: one HTTP request of one model call. It follows no redirect, because the
 * key would go with it; bounds the answer; classifies every failure; and hands the package an answer in the form it can
 * read. Failures have no `cause`: it may quote the server at any length, and the server the key.
 */
import type { Dispatcher } from 'undici';
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { BodyTooLarge, fieldOf } from '../system/untrusted.js';
import { parsed, readable, received } from './answer-body.js';
import { connectionFault, errorMessageOf, kindOfRefusal, modelFailed, redact } from './failed-exchange.js';
import { callAborted } from './port.js';
import { requestedWaitMs } from './retry-after.js';
import type { HttpAnswer } from './transport.js';
import { post } from './transport.js';
import { unusable } from './unusable-answer.js';

/** A provider's server, for requests and the messages of failures. */
export interface ModelServer {
  /** Sent with each request and nowhere else; replaces what the package sends. Null values are not sent. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** The setting that holds its address. */
  readonly addressSetting: string;
  /** What to check after a failure, by its kind; mostly a setting. */
  readonly hints: ReadonlyMap<string, string>;
  /** The kind of failure behind a refusal. Default: `kindOfRefusal`. */
  readonly kindOf?: (status: number, body: unknown) => ModelFailureKind;
}

/** What one wire needs to know of answers. */
export interface WireReading {
  /** A whole answer in the form that the package reads. @throws {ModelFailed} when it holds an error */
  whole(body: unknown, call: ServerCall): unknown;
  /** An event of a streamed answer, likewise; null leaves it out. @throws {ModelFailed} when it holds an error */
  event(event: unknown, call: ServerCall): unknown;
  /** Whether this event ends the answer; a stream without such an event broke off. */
  isEnd(event: unknown): boolean;
}

/** One model call, from its first request to its answer. */
export interface ServerCall {
  /** How the messages of its failures begin: what was wanted of whom. */
  readonly purpose: string;
  /** Texts that no message may quote: keys and prompts. */
  readonly hidden: readonly string[];
  readonly signal: AbortSignal;
  /** Model rounds before this one: makes the ids of tool calls unique where the server gives none. */
  readonly rounds: number;
  /** Working memory of the wire's reading, per request. */
  readonly reading: Record<string, unknown>;
  /** An answer that came in the other form than was asked for; the package reads it again as that form. */
  received: { readonly form: AnswerForm; readonly text: string } | null;
}

export type AnswerForm = 'whole' | 'stream';

/** The server answered in this form, which was not asked for; `ServerCall.received` holds the answer. */
export class OtherForm extends Error {
  readonly form: AnswerForm;
  constructor(form: AnswerForm) {
    super(`The answer is ${form === 'whole' ? 'one JSON value' : 'a stream'}`);
    this.form = form;
  }
}

/** The server refused a request; another form of the request may be accepted. */
export class RequestRefused extends ModelFailed {
  readonly status: number;
  /** Private, so that no logger prints it: a server may quote the key. */
  readonly #said: string;
  constructor(failure: ModelFailed, { status, said }: { readonly status: number; readonly said: string }) {
    super(failure.message, failure.data);
    this.status = status;
    this.#said = said;
  }

  /** The server's own words, at most 64 KiB. */
  get said(): string {
    return this.#said;
  }
}

export interface GuardedFetchOptions {
  readonly server: ModelServer;
  readonly wire: WireReading;
  readonly transport: Dispatcher;
  /** What time a `Retry-After` counts from. */
  readonly now: System['now'];
}

export interface GuardedFetch {
  readonly fetch: typeof globalThis.fetch;
  /** Makes requests with this call's signal requests of this call. */
  begin(call: ServerCall): void;
}

/** @returns a fetch that rejects with {ModelFailed} for every failure, and with {OtherForm} */
export function guardedFetch(options: GuardedFetchOptions): GuardedFetch {
  /** The provider packages pass on a call's signal and nothing else of it. */
  const calls = new WeakMap<AbortSignal, ServerCall>();
  return {
    begin: (call) => void calls.set(call.signal, call),
    async fetch(url, init) {
      const call = init?.signal ? calls.get(init.signal) : undefined;
      if (call === undefined) throw new TypeError('Cannot send a request outside a model call');
      const address = url instanceof Request ? url.url : url.toString();
      const body = typeof init?.body === 'string' ? init.body : '';
      const form: AnswerForm = wantsStream(address, body) ? 'stream' : 'whole';
      try {
        if (call.received !== null) return received(call.received, { call, wire: options.wire });
        // The packages send a record of names in lower case.
        const answer = await accepted(address, { ...init, body }, { call, options });
        return await readable(answer, form, { call, wire: options.wire });
      } catch (error) {
        throw failureOf(error, call, options.server);
      }
    },
  };
}

/** Every wire marks a streamed request in the body, but for Gemini, which does in the address. */
function wantsStream(url: string, body: string): boolean {
  return url.includes(':streamGenerateContent') || body.includes('"stream":true');
}

/** The answer to a request that the server accepts. @throws {ModelFailed} for a refusal */
async function accepted(
  url: string,
  { headers, body }: { readonly headers?: RequestInit['headers']; readonly body: string },
  { call, options: { server, transport, now } }: { readonly call: ServerCall; readonly options: GuardedFetchOptions },
): Promise<HttpAnswer> {
  const all = new Map<string, unknown>([...Object.entries(headers ?? {}), ...Object.entries(server.headers)]);
  const sent = Object.fromEntries([...all].filter((each): each is [string, string] => typeof each[1] === 'string'));
  const answer = await post(url, { headers: sent, body, signal: call.signal, transport });
  if (answer.isSuccess) return answer;
  throw refusal(answer, await answer.text().catch(() => ''), { call, server, now });
}

function refusal(
  { status, headers }: HttpAnswer,
  said: string,
  { call, server, now }: { readonly call: ServerCall; readonly server: ModelServer; readonly now: System['now'] },
): ModelFailed {
  if (status >= 300 && status < 400) return modelFailed(`${call.purpose}: it answered with a redirect`, 'redirected');
  const body = parsed(said);
  const kind = (server.kindOf ?? kindOfRefusal)(status, body ?? said);
  const hint = server.hints.get(kind);
  const words = redact(errorMessageOf(body), call.hidden);
  const waitMs = requestedWaitMs(headers, body, now());
  const why = `it answered ${status}${hint === undefined ? '' : ` (${hint})`}${words === '' ? '' : `: ${words}`}`;
  const failure = modelFailed(`${call.purpose}: ${why}`, kind, waitMs === null ? {} : { retryAfterMs: waitMs });
  return new RequestRefused(failure, { status, said });
}

/** The failure behind whatever ended a request. */
export function failureOf(error: unknown, { purpose, signal }: ServerCall, server: ModelServer): Error {
  if (signal.aborted) return callAborted(signal);
  if (error instanceof ModelFailed || error instanceof OtherForm) return error;
  if (error instanceof BodyTooLarge) return modelFailed(`${purpose}: its answer is too large`, 'answer_too_large');
  const { why, kind } = connectionFault(error, server.addressSetting);
  return modelFailed(`${purpose}: ${why}`, kind);
}

/** The failure behind what a package throws: it wraps errors of a fetch or a body; its own say that it cannot read an answer. */
export function failureBehind(error: unknown, call: ServerCall, server: ModelServer): Error {
  for (let each = error; each instanceof Error; each = each.cause) {
    const isOurs = each instanceof ModelFailed || each instanceof OtherForm;
    if (isOurs || typeof fieldOf(each, 'code') === 'string') return failureOf(each, call, server);
  }
  if (call.signal.aborted) return callAborted(call.signal);
  return unusable(call, 'it has another form than an answer has', 'unreadable_answer');
}
