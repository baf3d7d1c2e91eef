/** The inbox: open pauses as a list and as a stream of changes. */
import { neededBudget } from '../../run/frontier/start.js';
import type { Approval } from '../../generated/schemas.js';
import type { InboxChange, InboxFilter, WaitingPause } from '../../projections/inbox.js';
import { approval, approvalGone } from '../../api/serializers/approvals.js';
import { brokenRules } from '../../api/problems.js';
import type { Caller } from '../../keys/caller.js';
import { permitsFor, streamPlaces, withPermit } from '../concurrency.js';
import type { EventSink } from '../event-stream.js';
import {
  EVENT_STREAM_HEADERS,
  LAST_EVENT_ID,
  encodeEvent,
  eventStream,
  lastEventIdParameter,
} from '../event-stream.js';
import { startIn } from './feed.js';
import { timestampIn, NO_TIMESTAMP } from '../timestamp.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';

/** Streams open at once, each with a subscription to the log; one key holds at most half. Further ones get 503. */
const MAX_STREAMS = 100;
/** Lists at a time: each reads the records of its runs. */
const LISTS_AT_A_TIME = 4;
/** Most pauses that a stream sends at its start. */
const MAX_AT_FIRST = 1_000;

/** GET /api/approvals and GET /api/approvals/stream. */
export function approvalRoutes(http: HttpContext): readonly Route[] {
  return [listRoute(http), streamRoute(http)];
}

function listRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'approvals-query.json');
  const permits = permitsFor(LISTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/approvals',
    access: 'read',
    name: 'listApprovals',
    summary: 'Lists the pauses that wait for a decision, longest first',
    tag: 'god mode',
    query,
    success: { status: 200, description: 'The open pauses', schema: 'approval-list.json' },
    async handle(ctx, caller) {
      const { limit, since = null, ...rest } = query.read(ctx);
      const wanted = { ...filterOf(rest, caller), since: since === null ? null : timestampOf(since), limit };
      const pauses = await withPermit(permits, { http, caller }, () => http.inbox.list(wanted, caller));
      return { status: 200, body: pauses.map((pause) => shownPause(http, pause)) };
    },
  };
}

function filterOf(
  { mine = 0, blueprint = null }: { readonly mine?: number; readonly blueprint?: string | null },
  { actor }: Caller,
): InboxFilter {
  // Without keys the service cannot tell callers apart.
  return { isMine: mine === 1 && actor !== null, blueprintId: blueprint };
}

/** @throws {RequestRefused} 422 */
function timestampOf(text: string): string {
  const timestamp = timestampIn(text, 'first');
  if (timestamp !== null) return timestamp;
  throw brokenRules([{ loc: ['query', 'since'], ...NO_TIMESTAMP }]);
}

function streamRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'approvals-stream-query.json');
  const takePlace = streamPlaces(MAX_STREAMS);
  return {
    method: 'GET',
    path: '/api/approvals/stream',
    access: 'read',
    name: 'streamApprovals',
    summary: 'Streams changes to the pauses that wait for a decision',
    description:
      'Without a cursor the stream starts with every open pause. `waiting`: a pause has opened, gained a vote, or was ' +
      'escalated to other approvers. `gone`: it was decided, its run has ended, or with `mine=1` other approvers decide ' +
      'it now. The stream never ends; a client that was cut off resumes with Last-Event-ID.',
    tag: 'god mode',
    query,
    header: lastEventIdParameter({ type: 'string' }),
    success: {
      status: 200,
      description: 'Server-sent events: `id` is the cursor after the event, `event` is `waiting` or `gone`',
      schema: 'approval-change.json',
      mediaType: 'text/event-stream',
    },
    problems: [409],
    async handle(ctx, caller) {
      const { from = null, ...rest } = query.read(ctx);
      const isFirst = from === null && ctx.get(LAST_EVENT_ID) === '';
      const start = await startIn(ctx, http, from ?? 'head');
      takePlace(ctx.res, caller);
      const wanted = { start, isFirst, filter: filterOf(rest, caller), caller };
      const deliver = (sink: EventSink): Promise<void> => deliverInbox(http, sink, wanted);
      const body = await eventStream({ http, response: ctx.res, caller, deliver });
      return { status: 200, headers: EVENT_STREAM_HEADERS, body };
    },
  };
}

interface WantedChanges {
  readonly start: Awaited<ReturnType<typeof startIn>>;
  /** Whether the client has no cursor yet: then it gets all open pauses first. */
  readonly isFirst: boolean;
  readonly filter: InboxFilter;
  readonly caller: Caller;
}

async function deliverInbox(
  http: HttpContext,
  sink: EventSink,
  { start: { after, cursor }, isFirst, filter, caller }: WantedChanges,
): Promise<void> {
  const first = isFirst ? http.inbox.waiting({ ...filter, since: null, limit: MAX_AT_FIRST }, caller) : [];
  // The first pauses have no cursor. A client that loses its connection between them gets all of them again.
  for await (const pause of first) await sink.send(encodedChange(http, { kind: 'waiting', pause }, null));
  sink.begin();
  if (cursor !== null) sink.sendCursor(cursor);
  const onChange = (change: InboxChange, id: string): Promise<void> => sink.send(encodedChange(http, change, id));
  const onProgress = (id: string): void => sink.passed(id);
  await http.inbox.follow({ ...filter, after, onChange, onProgress, signal: sink.signal }, caller);
}

/** An open pause as the inbox shows it. */
export function shownPause({ registry }: HttpContext, pause: WaitingPause): Approval {
  return approval(pause, neededBudget(pause.run, registry.decisionContext()));
}

function encodedChange(http: HttpContext, change: InboxChange, id: string | null): Buffer {
  const data = change.kind === 'waiting' ? shownPause(http, change.pause) : approvalGone(change.pause);
  return encodeEvent(id, change.kind, data);
}
