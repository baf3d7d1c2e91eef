/**
 * The `fetch` that the provider packages are given: one HTTP request of one model call. It follows no redirect, because the
 * key would go with it; bounds the answer; classifies every failure; and hands the package an answer in the form it can
 * read. Failures have no `cause`: it may quote the server at any length, and the server the key.
 */
import { createParser } from 'eventsource-parser';
import type { Dispatcher } from 'undici';
import { request as send } from 'undici';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { BodyTooLarge, fieldOf } from '../system/untrusted.js';
import type { FaultKind } from './failed-exchange.js';
import { errorMessageOf, hintOfConnection, kindOfConnection, kindOfRefusal, redact } from './failed-exchange.js';
import { callAborted } from './port.js';
import { requestedWaitMs } from './retry-after.js';

/** A provider's server, for requests and the messages of failures. */
export interface ModelServer {
  /** Sent with each request and nowhere else; replaces what the package sends. Null values are not sent. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** The setting that holds its address. */
  readonly addressSetting: string;
  /** What to check after a failure, by its kind; mostly a setting. */
  readonly hints: ReadonlyMap<string, string>;
  /** The kind of failure behind a refusal. Default: `kindOfRefusal`. */
  readonly kindOf?: (status: number, body: unknown) => FaultKind;
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
        const response = call.received ?? (await exchange(address, { ...init, body }, { call, options }));
        call.received = null;
        return await readable(response, form, { call, wire: options.wire });
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

interface Exchange {
  readonly call: ServerCall;
  readonly options: GuardedFetchOptions;
}

type Answer = Dispatcher.ResponseData | NonNullable<ServerCall['received']>;

async function exchange(
  url: string,
  { headers, body }: { readonly headers?: RequestInit['headers']; readonly body: string },
  { call, options: { server, transport, now } }: Exchange,
): Promise<Answer> {
  const sent = new Headers(headers);
  for (const [name, value] of Object.entries(server.headers)) {
    if (value === null) sent.delete(name);
    else sent.set(name, value);
  }
  const { signal } = call;
  const response = await send(url, {
    method: 'POST',
    headers: Object.fromEntries(sent),
    body,
    signal,
    dispatcher: transport,
  });
  if (response.statusCode >= 200 && response.statusCode < 300) return response;
  const said = await textOf(bounded(response.body, MAX_ERROR_BYTES)).catch(() => '');
  throw refusal(response, said, { call, server, now });
}

/** The answer for the package: one JSON value, or events that each hold one, in the form that was asked for. */
async function readable(
  answer: Answer,
  form: AnswerForm,
  { call, wire }: { readonly call: ServerCall; readonly wire: WireReading },
): Promise<Response> {
  const { first, all } = await beginning(bounded(bodyOf(answer), MAX_ANSWER_BYTES));
  const came: AnswerForm = first === '' ? form : EVENT_STARTS.has(first) ? 'stream' : 'whole';
  if (came !== form) {
    call.received = { form: came, text: await textOf(all) };
    throw new OtherForm(came);
  }
  if (form === 'stream') {
    const events = ReadableStream.from(encodedEvents(all, { call, wire }));
    return new Response(events, { headers: { 'content-type': 'text/event-stream' } });
  }
  const body = wire.whole(jsonIn(await textOf(all), call), call);
  return new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' } });
}

function bodyOf(answer: Answer): AsyncIterable<Uint8Array> {
  if ('body' in answer) return answer.body;
  return bytesOf(answer.text);
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** Reads up to the first character that is no space, so that the content type need not be believed. */
async function beginning(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly first: string; readonly all: AsyncIterable<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let first = '';
  while (first === '') {
    const next = await iterator.next();
    if (next.done === true) break;
    read.push(next.value);
    first = Buffer.from(next.value).toString('latin1').replace('\u00EF\u00BB\u00BF', '').trimStart().slice(0, 1);
  }
  const rest = { [Symbol.asyncIterator]: () => iterator };
  return { first, all: joined(read, rest) };
}

async function* joined(read: readonly Uint8Array[], rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* read;
  yield* rest;
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
  chunks: AsyncIterable<Uint8Array>,
  { call, wire }: { readonly call: ServerCall; readonly wire: WireReading },
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
async function* eventsIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
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

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  return new TextDecoder().decode(Buffer.concat(read));
}

async function* bounded(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new BodyTooLarge(`More than ${maxBytes} bytes came`);
    yield chunk;
  }
}

/** Largest answer in bytes. A draft takes 128 KiB; a stream adds some 200 bytes per token; 100 vectors are 6 MiB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** First characters of an event stream: of its fields, and of a comment. */
const EVENT_STARTS: ReadonlySet<string> = new Set(['d', 'e', 'i', 'r', ':']);

/** Most bytes read of the body of an error status. */
const MAX_ERROR_BYTES = 64 * 1024;

function refusal(
  { statusCode, headers }: Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>,
  said: string,
  { call, server, now }: { readonly call: ServerCall; readonly server: ModelServer; readonly now: System['now'] },
): ModelFailed {
  if (statusCode >= 300 && statusCode < 400) {
    return failed(call.purpose, 'it answered with a redirect', { kind: 'redirected', retryable: false });
  }
  const body = parsed(said);
  const fault = (server.kindOf ?? kindOfRefusal)(statusCode, body ?? said);
  const hint = server.hints.get(fault.kind);
  const words = redact(errorMessageOf(body), call.hidden);
  const waitMs = requestedWaitMs(headers, body, now());
  const why = `it answered ${statusCode}${hint === undefined ? '' : ` (${hint})`}${words === '' ? '' : `: ${words}`}`;
  const failure = failed(call.purpose, why, { ...fault, ...(waitMs !== null && { retryAfterMs: waitMs }) });
  return new RequestRefused(failure, { status: statusCode, said });
}

/** The failure behind whatever ended a request. */
export function failureOf(error: unknown, { purpose, signal }: ServerCall, server: ModelServer): Error {
  if (signal.aborted) return callAborted(signal);
  if (error instanceof ModelFailed || error instanceof OtherForm) return error;
  if (error instanceof BodyTooLarge) {
    return failed(purpose, 'its answer is too large', { kind: 'answer_too_large', retryable: false });
  }
  const found = fieldOf(error, 'code');
  const code = typeof found === 'string' ? found : null;
  const { why, kind, retryable } = kindOfConnection(code);
  const named = code === null ? why : `${why} (${code})${hintOfConnection(error, server.addressSetting)}`;
  return failed(purpose, named, { kind, retryable });
}

function unreadable(purpose: string, what: string): ModelFailed {
  return failed(purpose, `the body of its answer ${what}`, { kind: 'unreadable_answer', retryable: true });
}

function failed(purpose: string, why: string, fault: FaultKind): ModelFailed {
  return new ModelFailed(`${purpose}: ${why}`, fault);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
