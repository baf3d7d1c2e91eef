/** A run's events as server-sent events, from the client's last event to the run's end. */
import type { RouterContext } from '@koa/router';
import { RunUnknown } from '../../run/errors.js';
import type { RunSummary } from '../../projections/run-summary.js';
import type { RunEvent } from '../../run/events.js';
import { brokenRules } from '../../api/problems.js';
import { queryOf } from '../query.js';
import { streamPlaces } from '../concurrency.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';
import type { EventSink } from '../event-stream.js';
import {
  EVENT_STREAM_HEADERS,
  LAST_EVENT_ID,
  encodeEvent,
  eventStream,
  lastEventIdParameter,
} from '../event-stream.js';

/** Streams open at once; one key holds at most half. Further ones get 503. */
const MAX_STREAMS = 10_000;

/** GET /api/runs/{run_id}/stream. */
export function streamRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'stream-query.json');
  const takePlace = streamPlaces(MAX_STREAMS);
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/stream',
    access: 'read',
    name: 'streamRunEvents',
    summary: "Streams a run's events until the run ends",
    description: 'A client that was cut off resumes with Last-Event-ID: it misses no event and gets none twice.',
    tag: 'audit',
    query,
    header: lastEventIdParameter({ type: 'integer', minimum: -1 }),
    success: {
      status: 200,
      description:
        'Server-sent events: `id` is the seq, `event` the type, `data` the event as the events endpoint returns it',
      schema: 'run-event.json',
      mediaType: 'text/event-stream',
    },
    nothing: "The client knows the run's last event: nothing follows",
    async handle(ctx, caller) {
      const { from } = query.read(ctx);
      const after = lastEventIdOf(ctx) ?? from;
      const runId = runIdIn(ctx);
      const run = await http.withinDeadline(http.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      if (run.completedAt !== null && after >= run.seq) return { status: 204, body: null };
      takePlace(ctx.res, caller);
      const deliver = (sink: EventSink): Promise<void> => deliverRun(http, sink, { run, after });
      const body = await eventStream({ http, response: ctx.res, caller, deliver });
      return { status: 200, headers: EVENT_STREAM_HEADERS, body };
    },
  };
}

async function deliverRun(
  http: HttpContext,
  sink: EventSink,
  { run, after }: { readonly run: RunSummary; readonly after: number },
): Promise<void> {
  // Every client gets the last event, even one that claims to know later ones.
  const from = Math.min(after, run.seq) + 1;
  const onEvent = (event: RunEvent): void | Promise<void> =>
    event.seq > after ? sink.send(encodedEvent(event)) : undefined;
  await http.feed.follow(run.id, { from, onEvent, onCaughtUp: () => sink.begin(), signal: sink.signal });
}

/** The revision in Last-Event-ID, or null without that header. @throws {RequestRefused} 422 */
function lastEventIdOf(ctx: RouterContext): number | null {
  const text = ctx.get(LAST_EVENT_ID);
  if (text === '') return null;
  const seq = Number(text);
  if (/^(-1|[0-9]+)$/.test(text) && Number.isSafeInteger(seq)) return seq;
  const msg = 'Input should be a whole number of at least -1';
  throw brokenRules([{ loc: ['header', LAST_EVENT_ID], msg, type: 'int_parsing' }]);
}

/** Encoded events, shared by all clients. */
const encodedEvents = new WeakMap<RunEvent, Buffer>();

function encodedEvent(event: RunEvent): Buffer {
  const { seq, id, type, at, data, hash } = event;
  const bytes = encodedEvents.get(event) ?? encodeEvent(String(seq), type, { seq, id, type, at, data, hash });
  encodedEvents.set(event, bytes);
  return bytes;
}
