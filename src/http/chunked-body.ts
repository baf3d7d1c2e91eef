/** Long answers: sent in chunks as fast as the client reads, so that no answer is in memory as a whole. */
import type { ServerResponse } from 'node:http';
import { isFault } from '../api/problems.js';
import { whenClosed } from './answer.js';
import type { HttpContext } from './route.js';

/** Number of characters read before the answer begins. An error while reading them still becomes a problem answer. */
const READ_AHEAD_CHARS = 1024 * 1024;
/** Characters of each further chunk. */
const CHUNK_CHARS = 64 * 1024;

export interface ChunkedBodyDeps {
  readonly http: Pick<HttpContext, 'system' | 'onFault' | 'withinDeadline'>;
  readonly response: ServerResponse;
}

/**
 * The body of an answer from a text in chunks: the whole text if it is short.
 *
 * @throws the error of its beginning
 */
export async function readBody(
  texts: AsyncGenerator<string>,
  { http, response }: ChunkedBodyDeps,
): Promise<string | AsyncIterable<string>> {
  // Koa drops a body unread, for HEAD or when the client has gone, without ending its generator.
  whenClosed(response, () => void texts.return(undefined).catch(() => undefined));
  const body = await http.withinDeadline(readAhead(texts));
  return typeof body === 'string' ? body : chunkedBody(body, { http, response });
}

/** Sends chunks to a client, each when it has taken the one before. Breaks the answer off after an error. */
export async function* chunkedBody<Chunk extends string | Buffer>(
  chunks: AsyncIterable<Chunk>,
  { http, response }: ChunkedBodyDeps,
): AsyncGenerator<Chunk> {
  try {
    yield* chunks;
  } catch (error) {
    // The answer has begun, so all that is left is to break it off.
    if (!response.destroyed && isFault(error)) http.onFault(http.system.uuid(), error);
    throw error;
  }
}

/** Reads the beginning of a text in chunks: returns a short text whole, a long one as a stream. */
async function readAhead(texts: AsyncGenerator<string>): Promise<string | AsyncIterable<string>> {
  const beginning = await gathered(texts, READ_AHEAD_CHARS);
  return beginning.isWhole ? beginning.text : continued(beginning.text, texts);
}

async function* continued(beginning: string, texts: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    yield beginning;
    for (let isWhole = false; !isWhole;) {
      const chunk = await gathered(texts, CHUNK_CHARS);
      isWhole = chunk.isWhole;
      if (chunk.text !== '') yield chunk.text;
    }
  } finally {
    await texts.return(undefined);
  }
}

/** Joins texts up to a length. */
async function gathered(
  texts: AsyncGenerator<string>,
  chars: number,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  let text = '';
  while (text.length < chars) {
    const next = await texts.next();
    if (next.done === true) return { text, isWhole: true };
    text += next.value;
  }
  return { text, isWhole: false };
}
