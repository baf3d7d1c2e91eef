/** Server-sent events (WHATWG HTML, section 9.2) as an answer that is read as fast as its client takes it. */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isFault } from '../api/problems.js';
import { whenClosed } from './answer.js';
import type { HttpContext } from './route.js';

/** A comment, which is no event. */
const BEAT = Buffer.from(':\n\n');
/** Time between beats, which keep proxies from closing a silent connection, in milliseconds. */
const BEAT_MS = 15_000;
/** Beats after which a client that has read nothing of what is queued is cut off. */
const MAX_STALLED_BEATS = 4;
/** Unsent bytes, beside what is in the socket, at which a slow reader is cut off; it can resume. Equal for WebSockets. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** The `retry` field: how long a client waits before it connects again, in milliseconds. */
const RETRY_MS = 1_000;

/** Without a reason each signal would make an error of its own. */
const GONE = 'the client has gone';

/** Media type and conditions of the answer; `X-Accel-Buffering` keeps proxies from buffering it. */
export const EVENT_STREAM_HEADERS = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };

/** The header by which a client resumes. */
export const LAST_EVENT_ID = 'Last-Event-ID';

/** An event on its way to clients; encoded once for all clients that are sent the same object. */
export interface ServerEvent {
  /** The cursor by which a client resumes after this event; null: it resumes after the one before. */
  readonly id: string | null;
  readonly type: string;
  /** A JSON value, as one line. */
  readonly data: string;
}

/** Where the events of one stream are sent. */
export interface EventSink {
  /** Resolves once the client has taken all that was sent. For a caller that does not wait, a slow client is cut off. */
  send(event: ServerEvent): Promise<void>;
  /** Sends the cursor the stream has reached: a client that is cut off resumes after it. */
  place(id: string): void;
  /** Begins the answer before there is anything to send; `send` and `place` begin it too. */
  begin(): void;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
}

export interface EventStreamOptions {
  readonly http: Pick<HttpContext, 'system' | 'onFault' | 'unsent' | 'inTime'>;
  readonly response: ServerResponse;
  /** Cursor the stream has reached since the last event sent; null: none. The next beat sends it. */
  readonly passed?: () => string | null;
  /** Sends the events: the answer ends when it resolves, and breaks off when it rejects after it has begun. */
  readonly tell: (sink: EventSink) => Promise<void>;
}

/**
 * The body of an answer. It resolves when `tell` begins the answer, so an error before that becomes a problem answer.
 *
 * @throws what `tell` throws before the answer begins
 */
export async function eventStream({
  http,
  response,
  tell,
  passed = () => null,
}: EventStreamOptions): Promise<Readable> {
  const queue = new StreamQueue(response);
  const reader = { unsentBytes: () => queue.unsentBytes, cutOff: () => response.destroy() };
  const gone = new AbortController();
  const stopBeats = keepAlive(queue, { http, response, passed });
  whenClosed(response, () => {
    stopBeats();
    gone.abort(GONE);
    queue.close();
    http.unsent.forget(reader);
  });
  // The first bytes, sent with the headers.
  queue.put(Buffer.from(`retry: ${RETRY_MS}\n\n`));
  const { begun, begin, fail } = beginning();
  const send = (event: ServerEvent): Promise<void> => {
    begin();
    if (!response.destroyed && !gone.signal.aborted) {
      queue.put(bytesOf(event));
      if (queue.bytes > MAX_UNSENT_BYTES) response.destroy();
      else http.unsent.grew(reader);
    }
    return queue.emptied();
  };
  const place = (id: string): void => {
    begin();
    queue.put(placeBytes(id));
  };
  tell({ send, place, begin, signal: gone.signal }).then(
    () => {
      begin();
      queue.close();
    },
    (error: unknown) => {
      if (fail(error)) return;
      // The answer has begun: all that is left is to break it off.
      if (!response.destroyed && isFault(error)) http.onFault(http.system.uuid(), error);
      response.destroy();
    },
  );
  await http.inTime(begun);
  return queue.body;
}

/** A promise that `begin` resolves and `fail` rejects. `fail` returns false if `begin` was called before. */
function beginning() {
  let hasBegun = false;
  let begin = (): void => undefined;
  let fail = (_: unknown): boolean => false;
  const begun = new Promise<void>((resolve, reject) => {
    begin = () => {
      hasBegun = true;
      resolve();
    };
    fail = (error) => {
      reject(error instanceof Error ? error : new Error(String(error)));
      return !hasBegun;
    };
  });
  return { begun, begin, fail };
}

const encoded = new WeakMap<ServerEvent, Buffer>();

function bytesOf(event: ServerEvent): Buffer {
  let bytes = encoded.get(event);
  if (bytes === undefined) {
    bytes = Buffer.from(textOf(event));
    encoded.set(event, bytes);
  }
  return bytes;
}

/** JSON holds no line break, so that one line of data is all of it. */
function textOf({ id, type, data }: ServerEvent): string {
  return `${id === null ? '' : `id: ${id}\n`}event: ${type}\ndata: ${data}\n\n`;
}

/** An id without data moves a client's place on and is no event to it. */
function placeBytes(id: string): Buffer {
  return Buffer.from(`id: ${id}\n\n`);
}

/** Beats while no events come, and cuts off a client that reads nothing; returns the function that stops it. */
function keepAlive(
  queue: StreamQueue,
  { http, response, passed }: Required<Pick<EventStreamOptions, 'http' | 'response' | 'passed'>>,
): () => void {
  let [stalledBeats, takenBefore] = [0, 0];
  let placeBefore = passed();
  const beat = (): void => {
    stalledBeats = queue.bytes > 0 && queue.taken === takenBefore ? stalledBeats + 1 : 0;
    takenBefore = queue.taken;
    if (stalledBeats >= MAX_STALLED_BEATS) return void response.destroy();
    const place = passed();
    if (queue.bytes === 0) queue.put(place === null || place === placeBefore ? BEAT : placeBytes(place));
    placeBefore = place;
    cancel = http.system.after(BEAT_MS, beat);
  };
  let cancel = http.system.after(BEAT_MS, beat);
  return () => cancel();
}

/** What is on its way to a client that takes it piece by piece. */
class StreamQueue {
  /** Gives the pieces as fast as the client takes them. */
  readonly body: Readable;
  readonly #response: ServerResponse;
  readonly #pieces: Buffer[] = [];
  #isWanted = false;
  #isClosed = false;
  #bytes = 0;
  #taken = 0;
  readonly #emptied: (() => void)[] = [];

  constructor(response: ServerResponse) {
    this.#response = response;
    const read = (): void => {
      this.#isWanted = true;
      this.#give();
    };
    // One piece waits in it at most.
    this.body = new Readable({ highWaterMark: 1, read });
  }

  /** Bytes not yet taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that have not left this process: those, and what is on its way through the answer and its socket. */
  get unsentBytes(): number {
    return this.#bytes + this.body.readableLength + this.#response.writableLength;
  }

  /** How many pieces have been taken. */
  get taken(): number {
    return this.#taken;
  }

  put(piece: Buffer): void {
    if (this.#isClosed) return;
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    // Flushed synchronously if the client has taken all before it, so that the time-slicing scheduler measures the true cost
    // of a write: Node itself would write after the turn's other work.
    const { socket } = this.#response;
    socket?.cork();
    this.#give();
    socket?.uncork();
  }

  /** Ends it once what is in it has been taken. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#give();
    this.#notifyEmptied();
  }

  /** Resolves once the response has taken everything from the body, or takes nothing more. */
  emptied(): Promise<void> {
    if (this.#isEmpty || this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#emptied.push(resolve));
  }

  get #isEmpty(): boolean {
    return this.#pieces.length === 0 && this.#isWanted;
  }

  #give(): void {
    while (this.#isWanted) {
      const piece = this.#pieces.shift();
      if (piece === undefined) break;
      this.#bytes -= piece.length;
      this.#taken += 1;
      this.#isWanted = this.body.push(piece);
    }
    if (this.#isEmpty) this.#notifyEmptied();
    if (this.#isClosed && this.#pieces.length === 0) this.body.push(null);
  }

  #notifyEmptied(): void {
    for (const resolve of this.#emptied.splice(0)) resolve();
  }
}
