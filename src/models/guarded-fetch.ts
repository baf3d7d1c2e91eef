/**
 * The `fetch` that the provider packages are given: one HTTP request of one model call. It follows no redirect, because the
 * key would go with it; bounds the answer; classifies every failure; and hands the package an answer in the form it can
 * read. Failures have no `cause`: it may quote the server at any length, and the server the key.
 */
import { createParser } from 'eventsource-parser';
import type { Dispatcher } from 'undici';
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { BodyTooLarge, fieldOf } from '../system/untrusted.js';
import { connectionFault, errorMessageOf, kindOfRefusal, modelFailed, redact } from './failed-exchange.js';
import { callAborted } from './port.js';
import { requestedWaitMs } from './retry-after.js';
import type { HttpAnswer } from './transport.js';
import { firstCharacter, post } from './transport.js';
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

interface Reading {
  readonly call: ServerCall;
  readonly wire: WireReading;
}

/** The answer for the package: one JSON value, or events that each hold one, in the form that was asked for. */
async function readable(answer: HttpAnswer, form: AnswerForm, reading: Reading): Promise<Response> {
  if (form === 'stream' && formOf(await answer.firstCharacter()) !== 'whole') {
    return streamed(answer.chunks(), reading);
  }
  const text = await answer.text();
  const came = formOf(firstCharacter(text)) ?? form;
  if (came === form) return whole(text, reading);
  reading.call.received = { form: came, text };
  throw new OtherForm(came);
}

/** An answer that came in the form that is now asked for. */
function received({ form, text }: NonNullable<ServerCall['received']>, reading: Reading): Response {
  reading.call.received = null;
  return form === 'whole' ? whole(text, reading) : streamed([Buffer.from(text)], reading);
}

/** The content type need not be believed: an event stream begins with a name of its fields, or with a comment. */
function formOf(first: string): AnswerForm | null {
  if (first === '') return null;
  return 'deir:'.includes(first) ? 'stream' : 'whole';
}

function streamed(chunks: AsyncIterable<Buffer> | Iterable<Buffer>, reading: Reading): Response {
  const events = ReadableStream.from(encodedEvents(chunks, reading));
  return new Response(events, { headers: { 'content-type': 'text/event-stream' } });
}

function whole(text: string, { call, wire }: Reading): Response {
  return ofBytes(Buffer.from(JSON.stringify(wire.whole(jsonIn(text, call), call))));
}

/** A response as far as the packages read one. A web stream around the bytes costs ten times as much. */
function ofBytes(bytes: Uint8Array): Response {
  const unread = [bytes];
  const reader = {
    read: () => Promise.resolve({ done: unread.length === 0, value: unread.pop() }),
    cancel: () => Promise.resolve(),
    releaseLock: () => undefined,
  };
  return Object.defineProperty(new Response(), 'body', { value: { getReader: () => reader } });
}

/** A JSON value, or `[DONE]` after it, which some servers send after a whole answer too. */
function jsonIn(text: string, { purpose }: ServerCall): unknown {
  const json = text.replace(/\s*(?:data:\s*)?\[DONE\]\s*$/, '');
  if (json.trim() === '') throw unreadable(purpose, 'is empty');
  const value = parsed(json);
  if (typeof value === 'object' && value !== null) return value;
  throw unreadable(purpose, 'is no JSON object, or cut off');
}

async function* encodedEvents(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  { call, wire }: Reading,
): AsyncGenerator<Uint8Array> {
  let isEnded = false;
  for await (const data of eventsIn(chunks)) {
    if (data.trim() === '') continue;
    if (data.trim() === '[DONE]') {
      isEnded = true;
      break;
    }
    const came = jsonIn(data, call);
    isEnded ||= wire.isEnd(came);
    const event = wire.event(came, call);
    if (event !== null) yield Buffer.from(`data: ${JSON.stringify(event)}\n\n`);
  }
  if (!isEnded) throw unreadable(call.purpose, 'broke off');
  const last = wire.event(null, call);
  if (last !== null) yield Buffer.from(`data: ${JSON.stringify(last)}\n\n`);
}

/** The data of each event; the last one counts without its empty line, which several servers leave out. */
async function* eventsIn(chunks: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let came: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => came.push(data) });
  const feed = (text: string): readonly string[] => {
    came = [];
    parser.feed(text);
    return came;
  };
  for await (const chunk of chunks) yield* feed(decoder.decode(chunk, { stream: true }));
  yield* feed(`${decoder.decode()}\n\n`);
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

function unreadable(purpose: string, what: string): ModelFailed {
  return modelFailed(`${purpose}: the body of its answer ${what}`, 'unreadable_answer');
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
