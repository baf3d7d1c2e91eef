/** Runs as they are kept: the history, and one of its records. */
import { RunUnknown } from '../../errors.js';
import { pageOf } from '../query.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';
import { historyRecord } from '../../api/serializers.js';

/** GET /api/runs/ and GET /api/runs/{run_id}. */
export function historyRoutes(http: HttpContext): readonly Route[] {
  return [listRoute(http), recordRoute(http)];
}

function listRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'history-query.json');
  return {
    method: 'GET',
    path: '/api/runs/',
    name: 'listHistory',
    summary: 'Lists runs, newest first',
    tag: 'history',
    query,
    success: { status: 200, description: 'A page of the history', schema: 'history-list.json', headers: ['Link'] },
    problems: [503],
    async handle(ctx) {
      const list = pageOf(ctx, query.read(ctx), (page) => http.queries.list(page));
      const { items, headers } = await http.inTime(list);
      return { status: 200, body: items.map(historyRecord), headers };
    },
  };
}

function recordRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}',
    name: 'getHistoryRecord',
    summary: 'Shows one run of the history',
    tag: 'history',
    success: { status: 200, description: 'The record', schema: 'history-record.json' },
    problems: [503],
    async handle(ctx) {
      const runId = runIdIn(ctx);
      const run = await http.inTime(http.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      return { status: 200, body: historyRecord(run) };
    },
  };
}
