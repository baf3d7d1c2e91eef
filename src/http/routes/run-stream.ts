/** A run's events as server-sent events (WHATWG HTML, section 9.2), from where the client left off to the run's end. */
import type { ServerResponse } from 'node:http';
import type { RouterContext } from '@koa/router';
import { RunUnknown } from '../../run/errors.js';
import { ServiceStopping } from '../../errors.js';
import type { RunEvent } from '../../run/events.js';
import { isFinished } from '../../run/state.js';
import { brokenRules } from '../../api/problems.js';
import { queryOf } from '../query.js';
import { crowded } from '../concurrency.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';
import { whenClosed } from '../answer.js';

/** Streams open at once; more are refused with 503. */
const MAX_STREAMS = 10_000;
/** Time between comments that keep proxies from closing a silent connection, in milliseconds. */
const KEEP_ALIVE_MS = 15_000;
/** Beats after which a client that has read nothing of what is queued is cut off. */
const MAX_STALLED_BEATS = 4;
/** Unsent characters, beside what is in the socket, at which a slow reader is cut off; it can resume. As with sockets (contract, section 3). */
const MAX_UNSENT_CHARS = 1024 * 1024;
/** The `retry` field: how long a client waits before it connects again, in milliseconds. */
const RETRY_MS = 1_000;

const LAST_EVENT_ID = 'Last-Event-ID';

/** GET /api/runs/{run_id}/stream. */
export function streamRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'stream-query.json');
  let open = 0;
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/stream',
    access: 'read',
    name: 'streamRunEvents',
    summary: "Streams a run's events as they are recorded, to the run's end",
    description: 'A client that was cut off goes on with Last-Event-ID, without a gap and without a repeat.',
    tag: 'audit',
    query,
    header: LAST_EVENT_ID_PARAMETER,
    success: {
      status: 200,
      description:
        'Server-sent events: `id` is the seq, `event` the type, `data` the event as the events endpoint has it',
      schema: 'run-event.json',
      mediaType: 'text/event-stream',
    },
    nothing: "Nothing follows the event that is known: it was the run's last",
    problems: [503],
    async handle(ctx) {
      const { from } = query.read(ctx);
      const after = lastEventIdOf(ctx) ?? from;
      const runId = runIdIn(ctx);
      const run = await http.inTime(http.queries.state(runId));
      if (run === null) throw new RunUnknown({ runId });
      if (isFinished(run) && after >= run.head.seq) return { status: 204, body: null };
      if (open >= MAX_STREAMS) throw crowded();
      open += 1;
      whenClosed(ctx.res, () => (open -= 1));
      // The last event is sent to every client, also to one that claims to know events yet to come.
      const start = { runId, after, from: Math.min(after, run.head.seq) + 1 };
      return { status: 200, headers: HEADERS, body: eventStream(start, { http, response: ctx.res }) };
    },
  };
}

/** `X-Accel-Buffering` keeps proxies from buffering the stream. */
const HEADERS = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };

const LAST_EVENT_ID_PARAMETER = {
  name: LAST_EVENT_ID,
  in: 'header',
  required: false,
  description: 'As `from`; browsers send it when they connect again.',
  schema: { type: 'integer', minimum: -1 },
};

/** Null when there is none. @throws {RequestRefused} 422 */
function lastEventIdOf(ctx: RouterContext): number | null {
  const text = ctx.get(LAST_EVENT_ID);
  if (text === '') return null;
  const seq = Number(text);
  if (/^(-1|[0-9]+)$/.test(text) && Number.isSafeInteger(seq)) return seq;
  const msg = 'Input should be a whole number of at least -1';
  throw brokenRules([{ loc: ['header', LAST_EVENT_ID], msg, type: 'int_parsing' }]);
}

interface StreamStart {
  readonly runId: string;
  /** Revision of the last event that is known. */
  readonly after: number;
  readonly from: number;
}

function eventStream(
  { runId, after, from }: StreamStart,
  { http, response }: { readonly http: HttpContext; readonly response: ServerResponse },
): SendQueue {
  const queue = new SendQueue();
  const gone = new AbortController();
  const stopBeats = keepAlive(queue, { http, response });
  whenClosed(response, () => {
    stopBeats();
    gone.abort();
    queue.close();
  });
  // Sent at once, and the headers with it.
  queue.put(`retry: ${RETRY_MS}\n\n`);
  const onEvent = (event: RunEvent): Promise<void> => {
    if (event.seq > after) queue.put(textOf(event));
    if (queue.chars > MAX_UNSENT_CHARS) response.destroy();
    return queue.emptied();
  };
  http.feed.follow(runId, { from, onEvent, signal: gone.signal }).then(
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
function textOf({ seq, id, type, at, data, hash }: RunEvent): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify({ seq, id, type, at, data, hash })}\n\n`;
}

/** Sends comments while no events come, and cuts off a client that reads nothing; returns the function that stops it. */
function keepAlive(
  queue: SendQueue,
  { http, response }: { readonly http: HttpContext; readonly response: ServerResponse },
): () => void {
  let [stalledBeats, takenBefore] = [0, 0];
  const beat = (): void => {
    stalledBeats = queue.chars > 0 && queue.taken === takenBefore ? stalledBeats + 1 : 0;
    takenBefore = queue.taken;
    if (stalledBeats >= MAX_STALLED_BEATS) return void response.destroy();
    if (queue.chars === 0) queue.put(':\n\n');
    cancel = http.system.after(KEEP_ALIVE_MS, beat);
  };
  let cancel = http.system.after(KEEP_ALIVE_MS, beat);
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
