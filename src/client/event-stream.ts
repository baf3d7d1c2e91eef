/**
 * Server-sent events over connections that may break: each message comes once, in order, over any number of
 * connections.
 */
import { CouncilError, UnexpectedAnswerError, UnreachableError } from './errors.js';
import type { Api, ApiRequest, OpenAnswer } from './http.js';
import type { Outage } from './retry.js';
import { openOutage } from './retry.js';

const EVENT_STREAM = 'text/event-stream';

export interface StreamRequest<T> extends Pick<ApiRequest, 'path' | 'query'> {
  /** Ends the stream. */
  readonly signal: AbortSignal;
  /** `id` of the last event that is known; null: none is. */
  readonly after: string | null;
  /**
   * Makes an item of a message; null: it holds nothing new. @throws {UnreachableError} a message before it is missing:
   * the stream reconnects
   */
  readonly read: (message: StreamedMessage) => T | null;
  /** Called with each `id` after which the stream would resume. */
  readonly onPlace?: (id: string) => void;
}

/**
 * An iterator over a stream's items. It frees all that it holds when it ends, is left, or the signal aborts; an abort
 * ends it without an error.
 *
 * @param events the remaining items, until their signal aborts
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
    // return() on a suspended generator blocks until its next value, so it is aborted first.
    return() {
      leave();
      return items.return();
    },
  };
}

/** A message as it was sent. With empty data it only moves the place at which the stream would resume. */
export interface StreamedMessage {
  readonly id?: string | undefined;
  readonly event?: string | undefined;
  readonly data: string;
}

/**
 * The items of a stream. It ends when the service says that nothing follows (204), or without an error when the signal
 * aborts; an answer that merely ends counts as a lost connection. It resumes after the last `id` that was read.
 *
 * @throws {CouncilError} a failure that waiting does not mend
 */
export async function* streamed<T>(api: Api, request: StreamRequest<T>): AsyncGenerator<T, void> {
  const place = { after: request.after };
  yield* overCuts(api, request.signal, (outage) => connection(api, request, { place, outage }));
}

/**
 * The items of one connection after the other, until one ends without an error, or the signal aborts.
 *
 * @param connect opens the next connection; what it throws is waited out
 * @throws {CouncilError} a failure that waiting does not mend
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
  /** The `id` of the last message that was read. */
  readonly place: { after: string | null };
  readonly outage: Outage;
}

/** The items of one connection; it returns only when nothing follows. @throws {UnreachableError} at any other end */
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

/** As a function, because the compiler would take the property for unchanged across awaits. */
export function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}

function assertStream(url: string, { status, headers }: OpenAnswer): void {
  const type = headers.get('Content-Type') ?? 'nothing';
  if (type.startsWith(EVENT_STREAM)) return;
  throw new UnexpectedAnswerError(`${url} answers ${type} where a stream of events is`, { status });
}

/** The complete messages of an answer; an incomplete last one is dropped. */
async function* messagesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StreamedMessage> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    // Heartbeats and retry times are no messages.
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
