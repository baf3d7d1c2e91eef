/** Sends answers, also to a client that is still sending its request; and the entity tags of answers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { System } from '../system/system.js';
import type { UnsentBytes } from '../system/async/unsent-bytes.js';

/** An answer; a null body means none. */
export interface Answer {
  readonly status: number;
  /** A value to serialize as JSON; or the text itself, whole or as chunks that are read as fast as the client takes them. */
  readonly body: object | string | AsyncIterable<string | Buffer> | null;
  /** Media type of the text. Default: JSON. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Most unread bytes of a request that are left to Node, which reads them after the answer and keeps the connection. */
const SMALL_REST_BYTES = 1024 * 1024;
/**
 * Most that is read and dropped of a request already answered, in bytes and milliseconds; then the connection is cut.
 */
const MAX_DRAINED_BYTES = 128 * 1024 * 1024;
const MAX_DRAIN_MS = 30_000;

export interface SendingDeps {
  readonly system: Pick<System, 'after'>;
  readonly unsent: Pick<UnsentBytes, 'grew' | 'forget'>;
}

/** Sends an answer. Bytes that the client has not taken count against the limit of unsent bytes. */
export function sendAnswer(
  ctx: Context,
  { status, body, type = 'json', headers = {} }: Answer,
  { system, unsent }: SendingDeps,
): void {
  ctx.res.once('prefinish', () => countUnsent(ctx.res, unsent));
  ctx.status = status;
  ctx.set(headers);
  if (body === null) {
    ctx.body = null;
    return;
  }
  ctx.type = headers['Content-Type'] ?? type;
  const text = typeof body === 'string' || isChunked(body) ? body : JSON.stringify(body);
  if (isStillSending(ctx.req)) {
    ctx.set('Connection', 'close');
    ctx.body = Readable.from(answerThenDrain(text, ctx.req, system));
  } else {
    ctx.body = typeof text === 'string' || text instanceof Readable ? text : Readable.from(text);
  }
  if (typeof text === 'string') ctx.length = Buffer.byteLength(text);
}

/** Counts the unsent rest of an answer, once all of it is in the buffer of the response. */
function countUnsent(response: ServerResponse, unsent: SendingDeps['unsent']): void {
  if (response.writableLength === 0) return;
  const reader = { unsentBytes: () => response.writableLength, cutOff: () => response.destroy() };
  response.once('close', () => unsent.forget(reader));
  unsent.grew(reader);
}

function isChunked(body: object): body is AsyncIterable<string | Buffer> {
  return Symbol.asyncIterator in body;
}

function isStillSending(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return !request.complete && (encoding !== undefined || Number(length ?? 0) > SMALL_REST_BYTES);
}

/**
 * The whole answer first, the end of the response only when the client has stopped sending: Node closes the connection
 * at the end, and what then still arrives would reset it, which takes the answer away from a client that writes first
 * and reads later.
 */
async function* answerThenDrain(
  text: string | AsyncIterable<string | Buffer>,
  request: IncomingMessage,
  system: Pick<System, 'after'>,
): AsyncGenerator<string | Buffer> {
  if (typeof text === 'string') yield text;
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

/** Calls back once a response is sent or aborted, at once when it is already. */
export function whenClosed(response: ServerResponse, callBack: () => void): void {
  if (response.closed || response.writableEnded) callBack();
  else response.once('close', callBack);
}

// Entity tags: what a client has seen, named for conditional requests (RFC 9110, sections 8.8.3 and 13.1).

/** Headers of a tagged answer: private to the client, and revalidated before each reuse. */
export function tagged(tag: string): { readonly ETag: string; readonly 'Cache-Control': string } {
  return { ETag: `"${tag}"`, 'Cache-Control': 'private, no-cache' };
}

/** Whether the client already has the tagged answer: If-None-Match, compared weakly (section 13.1.2). */
export function isKnown(ctx: Context, { ETag: tag }: { readonly ETag: string }): boolean {
  const known = ctx.get('If-None-Match').split(',');
  return known.some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag);
}

/**
 * The condition that If-Match sets on the current tag, compared strongly: a weak tag, or what is no tag, matches
 * nothing (section 13.1.1). Null: no condition, or `*`, which any tag meets.
 */
export function ifMatch(ctx: Context): ((tag: string) => boolean) | null {
  const sent = ctx.req.headers['if-match'];
  if (sent === undefined || sent.trim() === '*') return null;
  const wanted = sent.split(',').map((each) => each.trim());
  return (tag) => wanted.includes(tagged(tag).ETag);
}

/** If-Match as an OpenAPI parameter. */
export const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'ETags of earlier answers: 412 when none of them is still that of the blueprint, and nothing is changed.',
  schema: { type: 'string' },
} as const;
