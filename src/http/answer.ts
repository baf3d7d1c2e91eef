/** Sends answers, also to clients that are still sending their request or read slowly; headers of answers; entity tags. */
import type { IncomingMessage, RequestListener } from 'node:http';
import { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Authenticator } from '../keys/authenticator.js';
import type { Grant } from '../keys/caller.js';
import type { System } from '../system/system.js';
import type { SharedBytes } from '../system/async/shared-bytes.js';

/** An answer; its body is null if it has none. */
export interface Answer {
  readonly status: number;
  /** A JSON value, bytes, or text: whole, or in chunks that are read as fast as the client takes them. */
  readonly body: object | Buffer | string | AsyncIterable<string | Buffer> | null;
  /** Media type of the text or bytes. Default: JSON. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Most unread bytes of a request that Node reads after the answer, so that the connection stays open. */
const SMALL_REST_BYTES = 1024 * 1024;
/** Text longer than this is sent as bytes: Node needs up to five times the memory for a long text that is not taken. */
const MAX_TEXT_CHARS = 4 * 1024;
/** Longer bodies are sent in pieces of this size, so that the service sees whether a slow client takes them. */
const PIECE_BYTES = 64 * 1024;
/** How much of an answered request the service reads and drops before it cuts the connection. */
const MAX_DRAINED_BYTES = 128 * 1024 * 1024;
const MAX_DRAIN_MS = 30_000;

export interface SendingDeps {
  readonly system: Pick<System, 'after'>;
  /** The limit of unsent bytes that all clients share. */
  readonly unsent: Pick<SharedBytes, 'update' | 'forget'>;
}

/** Sends an answer. Its unsent bytes, queued or written to the response, count against the limit of all clients. */
export function sendAnswer(
  ctx: Context,
  { status, body, type = 'json', headers = {} }: Answer,
  { system, unsent }: SendingDeps,
): void {
  ctx.status = status;
  ctx.set(headers);
  if (body === null) {
    ctx.body = null;
    // Koa has set 204.
    ctx.status = status;
    return;
  }
  ctx.type = headers['Content-Type'] ?? type;
  const content = isWhole(body) || isChunked(body) ? body : JSON.stringify(body);
  if (headers['Connection'] !== 'close' && isStillSending(ctx.req)) {
    ctx.set('Connection', 'close');
    ctx.body = bytesFrom(answerThenDrain(content, ctx.req, system));
  } else {
    ctx.body = sendable(content, ctx.res, unsent);
  }
  if (isWhole(content)) ctx.length = Buffer.byteLength(content);
}

type Content = string | Buffer | AsyncIterable<string | Buffer>;

/** A body as Koa sends it: a short one at once, a long one in pieces, chunks as fast as the client takes them. */
function sendable(
  content: Content,
  response: ServerResponse,
  unsent: SendingDeps['unsent'],
): string | Buffer | Readable {
  if (content instanceof Readable) return content;
  if (!isWhole(content)) return bytesFrom(content);
  if (content.length <= MAX_TEXT_CHARS) return content;
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  if (bytes.length <= PIECE_BYTES) return bytes;
  const queue = new Readable({ read: () => undefined });
  for (const piece of piecesOf(bytes)) queue.push(piece);
  queue.push(null);
  const holder = { bytes: () => queue.readableLength, cutOff: () => void response.destroy() };
  if (!response.closed) unsent.update(holder);
  whenClosed(response, () => unsent.forget(holder));
  return queue;
}

/** A stream of bytes, which holds less memory than one of texts. */
function bytesFrom(chunks: AsyncIterable<string | Buffer>): Readable {
  return Readable.from(inPieces(chunks), { objectMode: false });
}

/** The chunks in small pieces: Node reports a write as taken only as a whole. */
async function* inPieces(chunks: AsyncIterable<string | Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield* piecesOf(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  }
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += PIECE_BYTES) yield bytes.subarray(from, from + PIECE_BYTES);
}

function isWhole(body: object | string): body is string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body);
}

function isChunked(body: object): body is AsyncIterable<string | Buffer> {
  return Symbol.asyncIterator in body;
}

function isStillSending(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return !request.complete && (encoding !== undefined || Number(length ?? 0) > SMALL_REST_BYTES);
}

/**
 * Sends the whole answer, but ends the response only when the client has stopped sending. When a response ends, Node
 * closes the connection. Bytes that arrive after that reset the connection, and a client that writes before it reads
 * would lose the answer.
 */
async function* answerThenDrain(
  text: Content,
  request: IncomingMessage,
  system: Pick<System, 'after'>,
): AsyncGenerator<string | Buffer> {
  if (isWhole(text)) yield text;
  else yield* text;
  await drainRequest(request, system);
}

function drainRequest(request: IncomingMessage, system: Pick<System, 'after'>): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > MAX_DRAINED_BYTES) done();
    };
    const cancel = system.after(MAX_DRAIN_MS, () => done());
    const done = (): void => {
      cancel();
      request.off('data', onData).off('end', done).off('close', done);
      resolve();
    };
    if (request.complete || request.destroyed) return done();
    request.on('data', onData).on('end', done).on('close', done).resume();
  });
}

// Responses that count their unsent bytes. Every answer of the service is written to one, by Koa or without it.

/** Interval at which the service checks whether a client takes unsent bytes, in milliseconds. */
const CHECK_MS = 15_000;
/** Checks in a row without a taken byte after which the service ends the answer. */
const MAX_STALLED_CHECKS = 4;

/** Listeners for each event of a response; Node warns of more. Koa and the routes add 11 to an event stream. */
const MAX_LISTENERS = 20;

type Written = (error: Error | null | undefined) => void;

/**
 * The class of responses for `http.createServer`. A response ends when all clients together have too many unsent bytes and
 * it has the most, and when its client has taken nothing for 60 s.
 */
export function countedResponse({ system, unsent }: SendingDeps): typeof ServerResponse {
  return class CountedResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
    readonly #holder = { bytes: () => this.writableLength, cutOff: () => void this.destroy() };
    #cancelCheck: (() => void) | null = null;

    constructor(request: Request) {
      super(request);
      this.setMaxListeners(MAX_LISTENERS);
      // All of the answer is written: `end` does not call `write`.
      this.on('prefinish', () => this.#count());
      this.once('close', () => {
        this.#cancelCheck?.();
        unsent.forget(this.#holder);
      });
    }

    override write(chunk: unknown, encoding?: BufferEncoding | Written, onWritten?: Written): boolean {
      const isTaken =
        typeof encoding === 'string' ? super.write(chunk, encoding, onWritten) : super.write(chunk, encoding);
      this.#count();
      return isTaken;
    }

    #count(): void {
      if (this.writableLength === 0 || this.destroyed) return;
      if (this.#cancelCheck === null) this.#checkLater(this.#takenBytes, 0);
      unsent.update(this.#holder);
    }

    #checkLater(takenBefore: number, stalledChecks: number): void {
      this.#cancelCheck = system.after(CHECK_MS, () => {
        this.#cancelCheck = null;
        if (this.writableLength === 0) return;
        const taken = this.#takenBytes;
        const stalled = taken === takenBefore ? stalledChecks + 1 : 0;
        if (stalled >= MAX_STALLED_CHECKS) this.destroy();
        else this.#checkLater(taken, stalled);
      });
    }

    /** Bytes that the operating system has accepted on this connection. */
    get #takenBytes(): number {
      return (this.socket?.bytesWritten ?? 0) - (this.socket?.writableLength ?? 0);
    }
  };
}

/** Most requests of a connection that wait for their turn, each in memory. A client that sends more is disconnected. */
const MAX_WAITING = 100;

/**
 * Serves the requests of each connection one after the other. Node emits no `close` on a response whose turn has not come:
 * what its request held until then would never be released.
 */
export function inTurn(serve: RequestListener): RequestListener {
  const waiting = new WeakMap<Duplex, number>();
  return (request, response) => {
    const { socket } = request;
    // A response gets its socket when all earlier answers on the connection are sent.
    if (response.socket !== null) return serve(request, response);
    const count = waiting.get(socket) ?? 0;
    if (count >= MAX_WAITING) return void socket.destroy();
    waiting.set(socket, count + 1);
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      serve(request, response);
    });
  };
}

/** Calls back when a response is sent or aborted; at once if it already is. */
export function whenClosed(response: ServerResponse, onClosed: () => void): void {
  if (response.closed || response.writableEnded) onClosed();
  else response.once('close', onClosed);
}

/** Breaks off a response when its caller's grant ends. Returns a signal that aborts when the response is closed. */
export function closedSignal(
  response: ServerResponse,
  caller: Grant,
  { authenticator }: { readonly authenticator: Pick<Authenticator, 'watch'> },
): AbortSignal {
  const closed = new AbortController();
  const unwatch = authenticator.watch(caller, () => response.destroy());
  // One listener, because Node warns of a leak at eleven.
  whenClosed(response, () => {
    unwatch();
    // Without a reason, each signal would create an error.
    closed.abort('the client has gone');
  });
  return closed.signal;
}

// Headers that clients act on: the OpenAPI document names them, and listed origins may read them.

interface HeaderText {
  readonly description: string;
  readonly type: 'string' | 'integer';
}

export const ANSWER_HEADERS = {
  'Council-Run-Id': { description: 'The id of the run.', type: 'string' },
  'Content-Disposition': { description: 'Name of the file (RFC 6266).', type: 'string' },
  'Content-Location': { description: 'Path of the created or found resource.', type: 'string' },
  ETag: { description: 'Version of the resource, for conditional requests.', type: 'string' },
  Link: {
    description: '`<…>; rel="next"`: the next page, with the same parameters. Absent on the last page.',
    type: 'string',
  },
  Location: { description: 'Path of the created resource.', type: 'string' },
  RateLimit: {
    description:
      'For each limit of the request: `r` more requests pass now, another one in `t` seconds ' +
      '(draft-ietf-httpapi-ratelimit-headers-10).',
    type: 'string',
  },
  'RateLimit-Policy': {
    description: 'The limits of the request: `q` requests at once, refilled evenly in `w` seconds.',
    type: 'string',
  },
  'Total-Count': { description: 'Number of items on all pages.', type: 'integer' },
  'Retry-After': { description: 'Seconds after which the client may retry.', type: 'integer' },
  'WWW-Authenticate': {
    description: 'How to send a key, and what was wrong with the sent one (RFC 6750).',
    type: 'string',
  },
} as const satisfies Readonly<Record<string, HeaderText>>;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** These headers as OpenAPI's map of header objects. */
export function headerObjects(names: readonly AnswerHeader[]): Readonly<Record<string, object>> {
  return Object.fromEntries(
    names.map((name) => {
      const { description, type }: HeaderText = ANSWER_HEADERS[name];
      return [name, { description, schema: { type } }];
    }),
  );
}

// Entity tags (RFC 9110, sections 8.8.3 and 13.1).

/** Headers of a tagged answer: caches keep it for its client alone and revalidate it before each reuse. */
export function tagged(tag: string): { readonly ETag: string; readonly 'Cache-Control': string } {
  return { ETag: `"${tag}"`, 'Cache-Control': 'private, no-cache' };
}

/** Whether the client has the tagged answer: If-None-Match, compared weakly (section 13.1.2). */
export function isKnown(ctx: Context, { ETag: tag }: { readonly ETag: string }): boolean {
  const known = ctx.get('If-None-Match').split(',');
  return known.some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag);
}

/**
 * The condition of If-Match on the current tag, or null without one (`*` accepts any tag). Tags are compared strongly:
 * weak or malformed ones match nothing (section 13.1.1).
 */
export function ifMatch(ctx: Context): ((tag: string) => boolean) | null {
  const sent = ctx.req.headers['if-match'];
  if (sent === undefined || sent.trim() === '*') return null;
  const accepted = sent.split(',').map((each) => each.trim());
  return (tag) => accepted.includes(tagged(tag).ETag);
}

/** If-Match as an OpenAPI parameter. */
export const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'ETags of earlier answers. If none of them is current, the answer is 412 and nothing changes.',
  schema: { type: 'string' },
} as const;
