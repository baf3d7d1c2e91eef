/** Server-sent events (WHATWG HTML, section 9.2) as an answer that is read as fast as its client takes it. */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { isFault } from '../api/problems.js';
import type { Grant } from '../keys/caller.js';
import { RunErased } from '../run/errors.js';
import { whenClosed } from './answer.js';
import type { HttpContext } from './route.js';

/** A comment: clients ignore it. */
const BEAT = Buffer.from(':\n\n');
/** Time between beats in milliseconds. Beats keep proxies from closing a silent connection. */
const BEAT_MS = 15_000;
/**
 * Bytes queued before the socket at which the service disconnects a slow reader, which can resume. As for WebSockets.
 */
const MAX_QUEUED_BYTES = 1024 * 1024;
/** The `retry` field: how long a client waits before it reconnects, in milliseconds. */
const RETRY_MS = 1_000;
const RETRY = Buffer.from(`retry: ${RETRY_MS}\n\n`);

/** The abort reason; without one, each signal would create an error. */
const CLIENT_GONE = 'the client has gone';

/** Media type of the answer; `X-Accel-Buffering` keeps proxies from buffering it. */
export const EVENT_STREAM_HEADERS = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };

/** The header by which a client resumes. */
export const LAST_EVENT_ID = 'Last-Event-ID';

/** The same as an OpenAPI parameter. */
export function lastEventIdParameter(schema: object): Readonly<Record<string, unknown>> {
  const description = 'Resumes after this event, as `from` does. Browsers send it when they reconnect.';
  return { name: LAST_EVENT_ID, in: 'header', required: false, description, schema };
}

/**
 * The bytes of an event. JSON contains no line break, so one line holds all of the data.
 *
 * @param id cursor by which a client resumes after this event, or null if it resumes after an earlier one
 */
export function encodeEvent(id: string | null, type: string, data: object): Buffer {
  return Buffer.from(`${id === null ? '' : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** An id without data: clients store it as their cursor and show nothing. */
function encodeCursor(cursor: string): Buffer {
  return Buffer.from(`id: ${cursor}\n\n`);
}

interface EventStreamOptions {
  /** The first bytes. Default: the `retry` field. */
  readonly opening?: Buffer;
  readonly http: Pick<HttpContext, 'system' | 'onFault' | 'unsent' | 'withinDeadline' | 'streams'> & {
    readonly authenticator: Pick<HttpContext['authenticator'], 'watch'>;
  };
  readonly response: ServerResponse;
  /** The stream breaks off when the grant of its caller ends. */
  readonly caller: Grant;
  /** Sends the events. The answer ends when it resolves, and breaks off when it rejects after the answer has begun. */
  readonly deliver: (sink: EventSink) => Promise<void>;
}

/**
 * The body of an answer. Resolves when `deliver` begins the answer, so that an earlier error becomes a problem answer.
 *
 * @throws what `deliver` throws before the answer begins
 */
export async function eventStream({ deliver, ...options }: EventStreamOptions): Promise<Readable> {
  const sink = new EventSink(options);
  deliver(sink).then(
    () => sink.end(),
    (error: unknown) => sink.fail(error),
  );
  await options.http.withinDeadline(sink.begun);
  return sink.body;
}

/** The queue of one stream, from which its client reads. Sends beats while no event arrives. */
export class EventSink {
  readonly body: Readable;
  /** Resolves when the answer begins; rejects if it fails before. */
  readonly begun: Promise<void>;
  readonly #http: EventStreamOptions['http'];
  readonly #response: ServerResponse;
  readonly #gone = new AbortController();
  /** The response counts the bytes that have left the queue. */
  readonly #holder = { bytes: () => this.#queuedBytes, cutOff: () => void this.#response.destroy() };
  #hasBegun = false;
  #resolveBegun = (): void => undefined;
  #rejectBegun = (_: unknown): void => undefined;
  #isEnded = false;
  readonly #onTaken: (() => void)[] = [];
  /** The cursor that the stream has reached without an event, or null if the client knows it. */
  #passedCursor: string | null = null;
  #cancelBeat: () => void;

  constructor({ http, response, caller, opening = RETRY }: Omit<EventStreamOptions, 'deliver'>) {
    this.#http = http;
    this.#response = response;
    // Node calls `read` as it takes the last bytes of the queue.
    this.body = new Readable({ highWaterMark: 1, read: () => queueMicrotask(() => this.#notifyTaken()) });
    response.on('drain', () => this.#notifyTaken());
    this.begun = new Promise((resolve, reject) => {
      [this.#resolveBegun, this.#rejectBegun] = [resolve, reject];
    });
    this.#put(opening);
    this.#cancelBeat = http.system.after(BEAT_MS, () => this.#beat());
    const endCount = http.streams.open();
    const unwatch = http.authenticator.watch(caller, () => response.destroy());
    whenClosed(response, () => {
      endCount();
      unwatch();
      this.#cancelBeat();
      this.#gone.abort(CLIENT_GONE);
      this.end();
      this.#notifyTaken();
      http.unsent.forget(this.#holder);
    });
  }

  /** Aborts when the client has gone. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Begins the answer before there is anything to send; `send` and `sendCursor` begin it too. */
  begin(): void {
    this.#hasBegun = true;
    this.#resolveBegun();
  }

  /** Resolves once the client has taken everything sent. If the caller does not wait, a slow client is disconnected. */
  send(event: Buffer): Promise<void> {
    this.begin();
    this.#passedCursor = null;
    if (this.#isEnded || this.#response.destroyed) return Promise.resolve();
    this.#put(event);
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.#response.destroy();
    else this.#http.unsent.update(this.#holder);
    if (this.#isTaken) return Promise.resolve();
    return new Promise((resolve) => this.#onTaken.push(resolve));
  }

  /** Sends the cursor that the stream has reached. A client that loses its connection resumes after it. */
  sendCursor(cursor: string): void {
    this.begin();
    this.#put(encodeCursor(cursor));
  }

  /**
   * Notes a cursor that the stream has reached without an event. The next beat sends it, so that a client skips the
   * part before it.
   */
  passed(cursor: string): void {
    this.#passedCursor = cursor;
  }

  /** Ends the answer after what is queued. */
  end(): void {
    this.begin();
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.body.push(null);
  }

  fail(error: unknown): void {
    if (!this.#hasBegun) return this.#rejectBegun(error);
    // There is nothing more to read of its run.
    if (error instanceof RunErased) return this.end();
    // The answer has begun, so all that is left is to break it off.
    if (!this.#response.destroyed && isFault(error)) this.#http.onFault(this.#http.system.uuid(), error);
    this.#response.destroy();
  }

  /** Bytes that the client has not taken from the queue. */
  get #queuedBytes(): number {
    return this.body.readableLength;
  }

  #put(bytes: Buffer): void {
    if (this.#isEnded) return;
    this.body.push(bytes);
  }

  /** Keeps a silent connection open. */
  #beat(): void {
    if (this.#queuedBytes === 0) {
      this.#put(this.#passedCursor === null ? BEAT : encodeCursor(this.#passedCursor));
      this.#passedCursor = null;
    }
    this.#cancelBeat = this.#http.system.after(BEAT_MS, () => this.#beat());
  }

  /** Whether the queue is empty and the socket accepts more. */
  get #isTaken(): boolean {
    return this.#queuedBytes === 0 && !this.#response.writableNeedDrain;
  }

  #notifyTaken(): void {
    if (!this.#isTaken && !this.#isEnded) return;
    for (const resolve of this.#onTaken.splice(0)) resolve();
  }
}
