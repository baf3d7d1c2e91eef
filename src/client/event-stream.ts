/** Server-sent events over connections that may break: each comes once, in order, however often the line is cut. */
import { CouncilError, UnexpectedAnswerError, UnreachableError } from './errors.js';
import type { Api, ApiRequest, OpenAnswer } from './http.js';
import type { Outage } from './retry.js';
import { openOutage } from './retry.js';

const EVENT_STREAM = 'text/event-stream';

export interface StreamRequest<T> extends Pick<ApiRequest, 'path' | 'query'> {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** `id` of the last event that is known; null: none is. */
  readonly after: string | null;
  /** What a message tells; null: nothing new. @throws {UnreachableError} it does not follow: the line is taken for cut */
  readonly read: (message: StreamedMessage) => T | null;
  /** Told each `id` that the stream would go on after. */
  readonly onPlace?: (id: string) => void;
}

/**
 * An iterator over what a stream tells, which frees all that it holds when it ends, when it is left, and when the signal
 * aborts: then it ends too.
 *
 * @param events what is still to come, until their signal aborts
 */
export function reader<T>(
  events: (signal: AbortSignal) => AsyncGenerator<T, void>,
  signal: AbortSignal | undefined,
): AsyncIterator<T, void> {
  const left = new AbortController();
  const leave = (): void => {
    signal?.removeEventListener('abort', leave);
    left.abort();
  };
  signal?.addEventListener('abort', leave);
  if (signal?.aborted === true) leave();
  const told = events(left.signal);
  return {
    async next() {
      let isOver = true;
      try {
        const result = await told.next();
        isOver = result.done === true;
        return result;
      } finally {
        if (isOver) leave();
      }
    },
    // return() on a suspended generator blocks until its next value, so it is aborted first.
    return() {
      leave();
      return told.return();
    },
  };
}

/** An event as it was sent, or a place without one: its data are empty. */
export interface StreamedMessage {
  readonly id?: string | undefined;
  readonly event?: string | undefined;
  readonly data: string;
}

/**
 * What a stream tells. It ends when the service says that nothing follows (204), or with the signal, quietly; an answer
 * that only ends is a cut like any other. The stream goes on after the last `id` that was read.
 *
 * @throws {CouncilError} what does not pass by waiting
 */
export async function* streamed<T>(api: Api, request: StreamRequest<T>): AsyncGenerator<T, void> {
  const place = { after: request.after };
  yield* overCuts(api, request.signal, (outage) => connection(api, request, { place, outage }));
}

/**
 * What connections tell, one after the other, until one ends of itself, or quietly with the signal.
 *
 * @param connect opens the next one; what it throws is a cut, to be waited out
 * @throws {CouncilError} what does not pass by waiting
 */
export async function* overCuts<T>(
  api: Api,
  signal: AbortSignal,
  connect: (outage: Outage) => AsyncGenerator<T, void>,
): AsyncGenerator<T, void> {
  const { streamMs: maxMs = Infinity, onWait } = api.retry;
  const outage = openOutage({ system: api.system, maxMs, onWait, signal });
  while (!isAborted(signal)) {
    try {
      yield* connect(outage);
      return;
    } catch (error) {
      if (isAborted(signal)) return;
      if (!(error instanceof CouncilError)) throw error;
      await outage.sitOut(error);
    }
  }
}

interface Following {
  /** Moves on with what is read. */
  readonly place: { after: string | null };
  readonly outage: Outage;
}

/** What one connection tells; it ends only when nothing follows. @throws {UnreachableError} at any other end */
async function* connection<T>(
  api: Api,
  { path, query = {}, signal, read, onPlace }: StreamRequest<T>,
  { place, outage }: Following,
): AsyncGenerator<T, void> {
  const { after } = place;
  const headers = { Accept: EVENT_STREAM, ...(after !== null && { 'Last-Event-ID': after }) };
  const answer = await api.open({ path, query, headers, signal });
  try {
    if (answer.status === 204) return;
    assertStream(api.url, answer);
    outage.answered();
    for await (const message of messagesIn(answer.chunks)) {
      const told = message.data === '' ? null : read(message);
      outage.ended();
      place.after = message.id ?? place.after;
      if (message.id !== undefined) onPlace?.(message.id);
      if (told !== null) yield told;
    }
    throw new UnreachableError(api.url);
  } finally {
    answer.close();
  }
}

/** Asked anew each time: it changes meanwhile. */
export function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}

function assertStream(url: string, { status, headers }: OpenAnswer): void {
  const type = headers.get('Content-Type') ?? 'nothing';
  if (type.startsWith(EVENT_STREAM)) return;
  throw new UnexpectedAnswerError(`${url} answers ${type} where a stream of events is`, { status });
}

/** The events that come whole, and places without one; the rest of a stream that breaks off is left out. */
async function* messagesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StreamedMessage> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    // A beat, or a time to wait before another try, is no message.
    yield* blocks.map(messageIn).filter(({ id, data }) => id !== undefined || data !== '');
  }
}

/** A block of lines as the service writes them: each field at most once, with a space before its value. */
function messageIn(block: string): StreamedMessage {
  const fields = block.split(/\r?\n/).map((line) => {
    const [name = ''] = line.split(': ', 1);
    return [name, line.slice(name.length + 2)] as const;
  });
  const { id, event, data = '' }: Readonly<Partial<Record<string, string>>> = Object.fromEntries(fields);
  return { id, event, data };
}
