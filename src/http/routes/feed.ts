/** The events of all runs in the order of the log, as server-sent events. */
import { shownParent } from '../../api/serializers/parent-run.js';
import type { RouterContext } from '@koa/router';
import type { FeedEvent, FeedStart } from '../../projections/log-feed.js';
import { RequestRefused, brokenRules } from '../../api/problems.js';
import { streamPlaces } from '../concurrency.js';
import type { EventSink } from '../event-stream.js';
import {
  EVENT_STREAM_HEADERS,
  LAST_EVENT_ID,
  encodeEvent,
  eventStream,
  lastEventIdParameter,
} from '../event-stream.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';

/** Feeds open at once, each with a subscription to the log; one key holds at most half. Further ones get 503. */
const MAX_FEEDS = 100;

/** GET /api/feed. */
export function feedRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'feed-query.json');
  const known = Object.keys(http.schemas.document('run-events.json').properties ?? {});
  const takePlace = streamPlaces(MAX_FEEDS);
  return {
    method: 'GET',
    path: '/api/feed',
    access: 'read',
    name: 'streamFeed',
    summary: 'Streams the events of all runs in the order of the log',
    description:
      'The stream never ends. A client that was cut off resumes with Last-Event-ID, on any instance: it misses no event ' +
      'and gets none twice. Runs whose record is damaged are left out.',
    tag: 'audit',
    query,
    header: lastEventIdParameter({ type: 'string' }),
    success: {
      status: 200,
      description: 'Server-sent events: `id` is the cursor after the event, `event` the type, `data` the event',
      schema: 'feed-event.json',
      mediaType: 'text/event-stream',
    },
    problems: [409],
    async handle(ctx, caller) {
      const { from = null, types, blueprint_id: blueprintId = null } = query.read(ctx);
      const wanted = { types: typesIn(types, known), blueprintId };
      const start = await startIn(ctx, http, from);
      takePlace(ctx.res, caller);
      const deliver = (sink: EventSink): Promise<void> => deliverFeed(http, sink, { ...wanted, start });
      const body = await eventStream({ http, response: ctx.res, caller, deliver });
      return { status: 200, headers: EVENT_STREAM_HEADERS, body };
    },
  };
}

interface WantedEvents {
  readonly start: Start;
  readonly types: ReadonlySet<string> | null;
  readonly blueprintId: string | null;
}

function deliverFeed(http: HttpContext, sink: EventSink, { start, ...wanted }: WantedEvents): Promise<void> {
  sink.begin();
  // A client that requested the head and loses its connection before the first event resumes here, not at a newer head.
  if (start.cursor !== null) sink.sendCursor(start.cursor);
  return http.logFeed.follow({
    ...wanted,
    after: start.after,
    signal: sink.signal,
    onProgress: (cursor) => sink.passed(cursor),
    onEvent: (event) => sink.send(encodedFeedEvent(event)),
  });
}

/** The types in a query, or null for all. @throws {RequestRefused} 422 for a type that no event has */
function typesIn(text: string | undefined, known: readonly string[]): ReadonlySet<string> | null {
  if (text === undefined) return null;
  const types = text.split(',').map((each) => each.trim());
  if (types.every((each) => known.includes(each))) return new Set(types);
  const msg = `Input should be some of ${known.join(', ')}, with commas between`;
  throw brokenRules([{ loc: ['query', 'types'], msg, type: 'enum' }]);
}

type Start = Extract<FeedStart, object>;

/**
 * Where a stream starts: after Last-Event-ID, or without that header after `from`.
 * @throws {RequestRefused} 422, 409
 */
export async function startIn(ctx: RouterContext, http: HttpContext, from: string | null): Promise<Start> {
  const lastEventId = ctx.get(LAST_EVENT_ID);
  const isHeader = lastEventId !== '';
  const start = await http.withinDeadline(http.logFeed.start(isHeader ? lastEventId : from));
  if (typeof start === 'object') return start;
  if (start === 'unreadable') {
    const loc = isHeader ? ['header', LAST_EVENT_ID] : ['query', 'from'];
    throw brokenRules([{ loc, msg: 'Input should be the id of an event of this feed, or "head"', type: 'cursor' }]);
  }
  const why = start === 'ahead' ? 'it is past the end of this log' : 'it is of another log';
  throw new RequestRefused(`Cannot resume from this cursor: ${why}. Start again without one`, { status: 409 });
}

function encodedFeedEvent({ runId, parentRun, event, cursor }: FeedEvent): Buffer {
  const { seq, id, type, at, data, hash } = event;
  return encodeEvent(cursor, type, { run_id: runId, ...shownParent(parentRun), seq, id, type, at, data, hash });
}
