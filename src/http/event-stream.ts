/** Server-sent events (WHATWG HTML, section 9.2) as an answer that is read as fast as its client takes it. */
import type { ServerResponse } from 'node:http';
import { ServiceStopping } from '../errors.js';
import { whenClosed } from './answer.js';
import type { HttpContext } from './route.js';

/** Time between beats, which keep proxies from closing a silent connection, in milliseconds. */
const BEAT_MS = 15_000;
/** Beats after which a client that has read nothing of what is queued is cut off. */
const MAX_STALLED_BEATS = 4;
/** Unsent characters, beside what is in the socket, at which a slow reader is cut off; it can resume. As with sockets (contract, section 3). */
const MAX_UNSENT_CHARS = 1024 * 1024;
/** The `retry` field: how long a client waits before it connects again, in milliseconds. */
const RETRY_MS = 1_000;

/** Without a reason each signal would make an error of its own. */
const GONE = 'the client has gone';

/** Media type and conditions of the answer; `X-Accel-Buffering` keeps proxies from buffering it. */
export const EVENT_STREAM_HEADERS = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };

/** The header by which a client resumes. */
export const LAST_EVENT_ID = 'Last-Event-ID';

/** An event on its way to a client. */
export interface ServerEvent {
  /** What a client names to go on after it; null: it goes on after the one before. */
  readonly id: string | null;
  readonly type: string;
  /** A JSON value, as one line. */
  readonly data: string;
}

/** Where the events of one stream are sent. */
export interface EventSink {
  /** Resolves once the client has taken all that was sent. Whoever does not wait is bounded: a slow client is cut off. */
  send(event: ServerEvent): Promise<void>;
  /** Tells where the stream has come to, as a client names it: it goes on after that if it is cut off. */
  place(id: string): void;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
}

export interface EventStreamOptions {
  readonly http: Pick<HttpContext, 'system' | 'onFault'>;
  readonly response: ServerResponse;
  /** Where a stream has come to since the last event sent, as a client names it; null: nowhere. Told by the next beat. */
  readonly passed?: () => string | null;
  /** Sends the events: the answer ends when it resolves, and breaks off when it rejects. */
  readonly tell: (sink: EventSink) => Promise<void>;
}

/** The body of an answer that begins at once. */
export function eventStream({ http, response, tell, passed = () => null }: EventStreamOptions): AsyncIterable<string> {
  const queue = new SendQueue();
  const gone = new AbortController();
  const stopBeats = keepAlive(queue, { http, response, passed });
  whenClosed(response, () => {
    stopBeats();
    gone.abort(GONE);
    queue.close();
  });
  // Sent at once, and the headers with it.
  queue.put(`retry: ${RETRY_MS}\n\n`);
  const send = (event: ServerEvent): Promise<void> => {
    queue.put(textOf(event));
    if (queue.chars > MAX_UNSENT_CHARS) response.destroy();
    return queue.emptied();
  };
  tell({ send, place: (id) => queue.put(placeText(id)), signal: gone.signal }).then(
    () => queue.close(),
    (error: unknown) => {
      // The answer has begun: all that is left is to break it off.
      if (!response.destroyed && !(error instanceof ServiceStopping)) http.onFault(http.system.uuid(), error);
      response.destroy();
    },
  );
  return queue;
}

/** JSON holds no line break, so that one line of data is all of it. */
function textOf({ id, type, data }: ServerEvent): string {
  return `${id === null ? '' : `id: ${id}\n`}event: ${type}\ndata: ${data}\n\n`;
}

/** An id without data moves a client's place on and is no event to it. */
function placeText(id: string): string {
  return `id: ${id}\n\n`;
}

/** Beats while no events come, and cuts off a client that reads nothing; returns the function that stops it. */
function keepAlive(
  queue: SendQueue,
  { http, response, passed }: Required<Pick<EventStreamOptions, 'http' | 'response' | 'passed'>>,
): () => void {
  let [stalledBeats, takenBefore] = [0, 0];
  let told = passed();
  const beat = (): void => {
    stalledBeats = queue.chars > 0 && queue.taken === takenBefore ? stalledBeats + 1 : 0;
    takenBefore = queue.taken;
    if (stalledBeats >= MAX_STALLED_BEATS) return void response.destroy();
    const place = passed();
    if (queue.chars === 0) queue.put(place === null || place === told ? ':\n\n' : placeText(place));
    told = place;
    cancel = http.system.after(BEAT_MS, beat);
  };
  let cancel = http.system.after(BEAT_MS, beat);
  return () => cancel();
}

/** Texts on their way to a client that takes them one by one. */
class SendQueue implements AsyncIterable<string> {
  readonly #texts: string[] = [];
  #isClosed = false;
  #chars = 0;
  #taken = 0;
  #wake: () => void = () => undefined;
  readonly #emptied: (() => void)[] = [];

  /** Characters not yet taken. */
  get chars(): number {
    return this.#chars;
  }

  /** How many texts have been taken. */
  get taken(): number {
    return this.#taken;
  }

  put(text: string): void {
    if (this.#isClosed) return;
    this.#texts.push(text);
    this.#chars += text.length;
    this.#wake();
  }

  /** Ends it once what is in it has been taken. */
  close(): void {
    this.#isClosed = true;
    this.#wake();
    this.#notifyEmptied();
  }

  /** Resolves once everything has been taken, or nothing more is going to be. */
  emptied(): Promise<void> {
    if (this.#texts.length === 0 || this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#emptied.push(resolve));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      for (let text = this.#texts.shift(); text !== undefined; text = this.#texts.shift()) {
        this.#chars -= text.length;
        this.#taken += 1;
        yield text;
      }
      if (this.#isClosed) return;
      this.#notifyEmptied();
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #notifyEmptied(): void {
    for (const resolve of this.#emptied.splice(0)) resolve();
  }
}
