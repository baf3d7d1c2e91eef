/** The inbox: the open pauses, as a list and as a stream of changes. */
import type { InboxChange, InboxFilter } from '../../projections/inbox.js';
import { approval, approvalGone } from '../../api/approval.js';
import { brokenRules } from '../../api/problems.js';
import type { Caller } from '../../keys/caller.js';
import { whenClosed } from '../answer.js';
import { crowded, permitsFor, withPermit } from '../concurrency.js';
import type { ServerEvent } from '../event-stream.js';
import { EVENT_STREAM_HEADERS, LAST_EVENT_ID } from '../event-stream.js';
import { LAST_EVENT_ID_PARAMETER, placedStream, placeIn } from './feed.js';
import { momentIn, NO_MOMENT } from '../moment.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';

/** Streams open at once, each with a subscription to the log; more are refused with 503. */
const MAX_STREAMS = 100;
/** Lists made at a time: each reads the records of the runs on it. */
const LISTS_AT_A_TIME = 4;
/** Most pauses that a stream begins with. */
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
    success: { status: 200, description: 'What waits', schema: 'approval-list.json' },
    problems: [503],
    async handle(ctx, caller) {
      const { limit, since = null, ...rest } = query.read(ctx);
      const asked = { ...filterOf(rest, caller), since: since === null ? null : momentOf(since), limit };
      const pauses = await withPermit(permits, http, () => http.inbox.list(asked, caller));
      return { status: 200, body: pauses.map(approval) };
    },
  };
}

function filterOf(
  { mine = 0, blueprint = null }: { readonly mine?: number; readonly blueprint?: string | null },
  { actor }: Caller,
): InboxFilter {
  // Without keys one caller cannot be distinguished from another.
  return { isMine: mine === 1 && actor !== null, blueprintId: blueprint };
}

/** As the log writes it. @throws {RequestRefused} 422 */
function momentOf(text: string): string {
  const moment = momentIn(text, 'first');
  if (moment !== null) return moment;
  throw brokenRules([{ loc: ['query', 'since'], ...NO_MOMENT }]);
}

function streamRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'approvals-stream-query.json');
  let open = 0;
  return {
    method: 'GET',
    path: '/api/approvals/stream',
    access: 'read',
    name: 'streamApprovals',
    summary: 'Streams the comings and goings of pauses that wait for a decision',
    description:
      'Without a cursor it begins with all that waits. `waiting`: a pause has come, gained a vote, or others are asked; ' +
      '`gone`: it was decided, or its run has ended, or under `mine=1` others decide now. It never ends; a client that was cut off goes on with Last-Event-ID.',
    tag: 'god mode',
    query,
    header: LAST_EVENT_ID_PARAMETER,
    success: {
      status: 200,
      description: 'Server-sent events: `id` is the place after the event, `event` is `waiting` or `gone`',
      schema: 'approval-change.json',
      mediaType: 'text/event-stream',
    },
    problems: [409, 503],
    async handle(ctx, caller) {
      const { from = null, ...rest } = query.read(ctx);
      const isFirst = from === null && ctx.get(LAST_EVENT_ID) === '';
      const { after, cursor } = await placeIn(ctx, http, from ?? 'head');
      if (open >= MAX_STREAMS) throw crowded();
      open += 1;
      whenClosed(ctx.res, () => (open -= 1));
      const filter = filterOf(rest, caller);
      const body = await placedStream({ http, ctx }, async ({ send, place, begin, onProgress, signal }) => {
        const first = isFirst ? http.inbox.waiting({ ...filter, since: null, limit: MAX_AT_FIRST }, caller) : [];
        // The first pauses have no cursor of their own: a client that is cut off between them gets them all again.
        for await (const pause of first) await send(serverEvent({ kind: 'waiting', pause }, null));
        begin();
        if (cursor !== null) place(cursor);
        const onChange = (change: InboxChange, cursor: string): Promise<void> => send(serverEvent(change, cursor));
        await http.inbox.follow({ ...filter, after, onChange, onProgress, signal }, caller);
      });
      return { status: 200, headers: EVENT_STREAM_HEADERS, body };
    },
  };
}

function serverEvent(change: InboxChange, id: string | null): ServerEvent {
  const data = change.kind === 'waiting' ? approval(change.pause) : approvalGone(change.pause);
  return { id, type: change.kind, data: JSON.stringify(data) };
}
