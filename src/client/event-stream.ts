/** Reads server-sent events. Each message comes once, in order, over any number of connections. */
import { CouncilError, UnexpectedAnswerError, UnreachableError } from './errors.js';
import type { Api, ApiRequest, OpenAnswer } from './http.js';
import type { Outage } from './retry.js';
import { openOutage } from './retry.js';

const EVENT_STREAM = 'text/event-stream';

export interface StreamRequest<T> extends Pick<ApiRequest, 'path' | 'query'> {
  /** Ends the stream. */
  readonly signal: AbortSignal;
  /** `id` of the last known event, or null if none is known. */
  readonly after: string | null;
  /** Returns the item of a message, or null to skip it. @throws {UnreachableError} to reconnect: a message is missing */
  readonly read: (message: StreamedMessage) => T | null;
  /** Called with each `id` from which the stream can resume. */
  readonly onPlace?: (id: string) => void;
}

/**
 * An iterator over the items of a stream. It closes the connection when it ends, when the loop ends or when the signal
 * aborts. An abort is no error.
 *
 * @param events gives the remaining items until its signal aborts
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
  const items = events(left.signal);
  return {
    async next() {
      let isOver = true;
      try {
        const result = await items.next();
        isOver = result.done === true;
        return result;
      } finally {
        if (isOver) leave();
      }
    },
    // Aborts first, because return() of a suspended generator waits for its next value.
    return() {
      leave();
      return items.return();
    },
  };
}

/** A message. Without data it only moves the place from which the stream resumes. */
export interface StreamedMessage {
  readonly id?: string | undefined;
  readonly event?: string | undefined;
  readonly data: string;
}

/**
 * The items of a stream, until the service answers 204 or the signal aborts. After any other end of an answer it connects
 * again and resumes after the last `id`.
 *
 * @throws {CouncilError} a failure that is not transient
 */
export async function* streamed<T>(api: Api, request: StreamRequest<T>): AsyncGenerator<T, void> {
  const place = { after: request.after };
  yield* overCuts(api, request.signal, (outage) => connection(api, request, { place, outage }));
}

/**
 * The items of successive connections, until one ends without an error or the signal aborts.
 *
 * @param connect opens the next connection. After a transient failure it is called again
 * @throws {CouncilError} a failure that is not transient
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
  /** The `id` of the last message. */
  readonly place: { after: string | null };
  readonly outage: Outage;
}

/** The items of one connection. Returns only if nothing follows. @throws {UnreachableError} at any other end */
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
      const item = message.data === '' ? null : read(message);
      outage.ended();
      place.after = message.id ?? place.after;
      if (message.id !== undefined) onPlace?.(message.id);
      if (item !== null) yield item;
    }
    throw new UnreachableError(api.url);
  } finally {
    answer.close();
  }
}

/** A function, because the compiler assumes that the property does not change across an await. */
export function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}

function assertStream(url: string, { status, headers }: OpenAnswer): void {
  const type = headers.get('Content-Type') ?? 'nothing';
  if (type.startsWith(EVENT_STREAM)) return;
  throw new UnexpectedAnswerError(`${url} answers ${type} instead of a stream of events`, { status });
}

/** The complete messages of an answer. */
async function* messagesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StreamedMessage> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    // Without heartbeats and retry times.
    yield* blocks.map(messageIn).filter(({ id, data }) => id !== undefined || data !== '');
  }
}

/** The message in a block of lines. The service writes each field at most once, with a space before its value. */
function messageIn(block: string): StreamedMessage {
  const fields = block.split(/\r?\n/).map((line) => {
    const [name = ''] = line.split(': ', 1);
    return [name, line.slice(name.length + 2)] as const;
  });
  const { id, event, data = '' }: Readonly<Partial<Record<string, string>>> = Object.fromEntries(fields);
  return { id, event, data };
}
