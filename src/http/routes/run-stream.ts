/** A run's events as server-sent events, from where the client left off to the run's end. */
import type { RouterContext } from '@koa/router';
import { RunUnknown } from '../../run/errors.js';
import type { RunEvent } from '../../run/events.js';
import { brokenRules } from '../../api/problems.js';
import { queryOf } from '../query.js';
import { crowded } from '../concurrency.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';
import { whenClosed } from '../answer.js';
import type { EventSink, ServerEvent } from '../event-stream.js';
import { EVENT_STREAM_HEADERS, LAST_EVENT_ID, eventStream } from '../event-stream.js';

/** Streams open at once; more are refused with 503. */
const MAX_STREAMS = 10_000;

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
      // Only the part of the record that is sent is read and verified.
      const run = await http.inTime(http.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      if (run.completedAt !== null && after >= run.seq) return { status: 204, body: null };
      if (open >= MAX_STREAMS) throw crowded();
      open += 1;
      whenClosed(ctx.res, () => (open -= 1));
      // The last event is sent to every client, also to one that claims to know events yet to come.
      const first = Math.min(after, run.seq) + 1;
      const tell = ({ send, begin, signal }: EventSink): Promise<void> => {
        const onEvent = (event: RunEvent): void | Promise<void> =>
          event.seq > after ? send(serverEvent(event)) : undefined;
        return http.feed.follow(runId, { from: first, onEvent, onCaughtUp: begin, signal });
      };
      return { status: 200, headers: EVENT_STREAM_HEADERS, body: await eventStream({ http, response: ctx.res, tell }) };
    },
  };
}

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

/** Serialized events, shared by all clients. */
const made = new WeakMap<RunEvent, ServerEvent>();

function serverEvent(event: RunEvent): ServerEvent {
  const { seq, id, type, at, data, hash } = event;
  const known = made.get(event);
  if (known !== undefined) return known;
  const sent = { id: String(seq), type, data: JSON.stringify({ seq, id, type, at, data, hash }) };
  made.set(event, sent);
  return sent;
}
