/** The history: runs as a list, and single records. */
import { historyRecord } from '../../api/serializers/runs.js';
import type { HistoryRecord } from '../../generated/schemas.js';
import { excerptsOf } from '../../projections/excerpts.js';
import type { RunFilter } from '../../projections/run-list.js';
import { placeOf } from '../../projections/run-list.js';
import type { RunSummary } from '../../projections/run-summary.js';
import { RunUnknown } from '../../run/errors.js';
import { runStream } from '../../run/events.js';
import { bodyOf } from '../body.js';
import { outcomeUnknown, runIdIn } from '../route.js';
import { cursorLink, pageOf, queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { cursorOf, filterIn, isTrue, placeAt } from './history-query.js';
import { exportRoute } from './run-export.js';

/** GET /api/runs/, GET /api/runs/counts, GET /api/runs/export, and GET and DELETE /api/runs/{run_id}. */
export function historyRoutes(http: HttpContext): readonly Route[] {
  return [listRoute(http), countsRoute(http), exportRoute(http), recordRoute(http), eraseRoute(http)];
}

function listRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'history-query.json');
  return {
    method: 'GET',
    path: '/api/runs/',
    access: 'read',
    name: 'listHistory',
    summary: 'Lists and searches runs, newest first by default',
    description: 'All filters may be combined. `Link` points to the next page.',
    tag: 'history',
    query,
    success: {
      status: 200,
      description: 'A page of the history',
      schema: 'history-list.json',
      headers: ['Link', 'Total-Count'],
    },
    async handle(ctx) {
      const parameters = query.read(ctx);
      const { limit, offset, sort, cursor } = parameters;
      const filter = filterIn(parameters);
      const listed = { limit, offset, sort, filter, ...(cursor !== undefined && { after: placeAt(cursor, sort) }) };
      const linkAfter = (last: RunSummary): Readonly<Record<'Link', string>> =>
        cursorLink(ctx, limit, cursorOf(placeOf(last, sort), sort));
      const page = pageOf(ctx, listed, (each) => http.queries.list(each), linkAfter);
      const counted = isTrue(parameters.count) ? http.queries.count(filter) : null;
      const [{ items, headers }, count] = await http.withinDeadline(Promise.all([page, counted]));
      const total = count === null ? {} : { 'Total-Count': String(count) };
      return { status: 200, body: items.map((run) => recordWith(run, filter)), headers: { ...headers, ...total } };
    },
  };
}

/** The record of a run in a list, with the places of the words that the filter searches. */
function recordWith(run: RunSummary, { q }: RunFilter): HistoryRecord {
  if (q === undefined) return historyRecord(run);
  const excerpts = excerptsOf(run, q).map(({ of, parts }) => ({ of, parts: [...parts] }));
  return { ...historyRecord(run), excerpts };
}

function countsRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'run-counts-query.json');
  return {
    method: 'GET',
    path: '/api/runs/counts',
    isAlsoId: true,
    access: 'read',
    name: 'countRuns',
    summary: 'Counts runs by status and by outcome',
    description: 'With the filters of the list, which all may be combined.',
    tag: 'history',
    query,
    success: { status: 200, description: 'The numbers', schema: 'run-counts.json' },
    async handle(ctx) {
      const counted = await http.withinDeadline(http.queries.counts(filterIn(query.read(ctx))));
      const { pending, running, paused, completed, failed: unsuccessful, rejected, cancelled } = counted;
      const failed = unsuccessful + rejected + cancelled;
      const outcomes = { completed, failed: unsuccessful, rejected, cancelled };
      const all = pending + running + paused + completed + failed;
      return { status: 200, body: { all, pending, running, paused, completed, failed, outcomes } };
    },
  };
}

function eraseRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'erase-request.json', { isRequired: false });
  return {
    method: 'DELETE',
    path: '/api/runs/{run_id}',
    access: 'admin',
    name: 'eraseRun',
    summary: 'Erases a run that has ended',
    description:
      'First the ledger gets a leaf with the time, the key and the reason, then the events of the run are removed. Afterwards ' +
      'every read of the run is 410; lists, searches and counts do not hold it; the overview keeps its cost, tokens and ' +
      'outcome. The runs that its councils have started are erased with it; forks of it stay whole. 409 for a run that has not ' +
      'ended, and for one that such a run has started.',
    tag: 'history',
    body,
    success: { status: 204, description: 'It is erased, or was before', schema: null },
    problems: [409],
    async handle(ctx, { actor }) {
      const { reason = null } = await body.read(ctx);
      const runId = runIdIn(ctx);
      await http.withinDeadline(http.eraseRun(runId, { actor, reason }), outcomeUnknown(runStream(runId)));
      http.log.info({ runId, actor }, 'run erased');
      return { status: 204, body: null };
    },
  };
}

function recordRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}',
    access: 'read',
    name: 'getHistoryRecord',
    summary: 'Returns the record of a run in the history',
    tag: 'history',
    success: { status: 200, description: 'The record', schema: 'history-record.json' },
    async handle(ctx) {
      const runId = runIdIn(ctx);
      const run = await http.withinDeadline(http.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      return { status: 200, body: { ...historyRecord(run), final_output: run.finalOutput ?? null } };
    },
  };
}
