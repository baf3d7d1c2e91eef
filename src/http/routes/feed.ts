/** The events of all runs in the log's order, as server-sent events: one stream for dashboards and warehouses. */
import type { Readable } from 'node:stream';
import type { RouterContext } from '@koa/router';
import type { FeedEvent, FeedStart } from '../../projections/log-feed.js';
import { RequestRefused, brokenRules } from '../../api/problems.js';
import { whenClosed } from '../answer.js';
import { crowded } from '../concurrency.js';
import type { EventSink, ServerEvent } from '../event-stream.js';
import { EVENT_STREAM_HEADERS, LAST_EVENT_ID, eventStream } from '../event-stream.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';

/** Feeds open at once, each with a subscription to the log; more are refused with 503. */
const MAX_FEEDS = 100;

/** GET /api/feed. */
export function feedRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'feed-query.json');
  const known = Object.keys(http.schemas.document('run-events.json').properties ?? {});
  let open = 0;
  return {
    method: 'GET',
    path: '/api/feed',
    access: 'read',
    name: 'streamFeed',
    summary: 'Streams the events of all runs, in the order of the log, as they are recorded',
    description:
      'It never ends. A client that was cut off goes on with Last-Event-ID, on any instance of the log, without a gap ' +
      'and without a repeat. Runs whose record is damaged are left out.',
    tag: 'audit',
    query,
    header: LAST_EVENT_ID_PARAMETER,
    success: {
      status: 200,
      description: 'Server-sent events: `id` is the place after the event, `event` the type, `data` the event',
      schema: 'feed-event.json',
      mediaType: 'text/event-stream',
    },
    problems: [409, 503],
    async handle(ctx) {
      const { from = null, types, blueprint_id: blueprintId = null } = query.read(ctx);
      const wanted = { types: typesIn(types, known), blueprintId };
      const start = await placeIn(ctx, http, from);
      if (open >= MAX_FEEDS) throw crowded();
      open += 1;
      whenClosed(ctx.res, () => (open -= 1));
      return {
        status: 200,
        headers: EVENT_STREAM_HEADERS,
        body: await feedStream({ start, ...wanted }, { http, ctx }),
      };
    },
  };
}

/** Of streams in the log's order. */
export const LAST_EVENT_ID_PARAMETER = {
  name: LAST_EVENT_ID,
  in: 'header',
  required: false,
  description: 'As `from`; browsers send it when they connect again.',
  schema: { type: 'string' },
};

/** Null when all are wanted. @throws {RequestRefused} 422 for a type that no event has */
function typesIn(text: string | undefined, known: readonly string[]): ReadonlySet<string> | null {
  if (text === undefined) return null;
  const types = text.split(',').map((each) => each.trim());
  if (types.every((each) => known.includes(each))) return new Set(types);
  const msg = `Input should be some of ${known.join(', ')}, with commas between`;
  throw brokenRules([{ loc: ['query', 'types'], msg, type: 'enum' }]);
}

type Place = Extract<FeedStart, object>;

/** Where a stream begins: after what Last-Event-ID names, or else `from`. @throws {RequestRefused} 422, 409 */
export async function placeIn(ctx: RouterContext, http: HttpContext, from: string | null): Promise<Place> {
  const lastEventId = ctx.get(LAST_EVENT_ID);
  const isHeader = lastEventId !== '';
  const start = await http.inTime(http.logFeed.start(isHeader ? lastEventId : from));
  return placeOf(start, isHeader ? ['header', LAST_EVENT_ID] : ['query', 'from']);
}

/** @throws {RequestRefused} 422 for what is no cursor, 409 for one that this log cannot go on from */
function placeOf(start: FeedStart, loc: string[]): Place {
  if (typeof start === 'object') return start;
  if (start === 'unreadable') {
    const msg = 'Input should be the id of an event of this feed, or "head"';
    throw brokenRules([{ loc, msg, type: 'cursor' }]);
  }
  const why = start === 'ahead' ? 'it is past the end of this log' : 'it is of another log';
  throw new RequestRefused(`Cannot go on from this cursor: ${why}. Begin again without one`, { status: 409 });
}

interface Wanted {
  readonly start: Place;
  readonly types: ReadonlySet<string> | null;
  readonly blueprintId: string | null;
}

function feedStream(
  { start: { after, cursor }, ...wanted }: Wanted,
  deps: { readonly http: HttpContext; readonly ctx: RouterContext },
): Promise<Readable> {
  return placedStream(deps, ({ send, place, begin, signal, onProgress }) => {
    begin();
    // Sent at once: a client that began at the head and is cut off before its first event would else begin at a newer
    // head.
    if (cursor !== null) place(cursor);
    return deps.http.logFeed.follow({
      ...wanted,
      after,
      signal,
      onProgress,
      onEvent: (event) => send(serverEvent(event)),
    });
  });
}

/** Where the events of a stream in the log's order are sent, and places that were reached without one. */
export interface PlacedSink extends EventSink {
  readonly onProgress: (cursor: string) => void;
}

/** A stream in the log's order. A beat sends the cursor reached since the last event, so that a client need not reread. */
export function placedStream(
  { http, ctx }: { readonly http: HttpContext; readonly ctx: RouterContext },
  tell: (sink: PlacedSink) => Promise<void>,
): Promise<Readable> {
  let passed: string | null = null;
  return eventStream({
    http,
    response: ctx.res,
    passed: () => passed,
    tell: ({ send, ...sink }) =>
      tell({
        ...sink,
        onProgress: (cursor) => (passed = cursor),
        send(event) {
          passed = null;
          return send(event);
        },
      }),
  });
}

function serverEvent({ runId, event, cursor }: FeedEvent): ServerEvent {
  const { seq, id, type, at, data, hash } = event;
  return { id: cursor, type, data: JSON.stringify({ run_id: runId, seq, id, type, at, data, hash }) };
}
