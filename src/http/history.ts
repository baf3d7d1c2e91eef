/** Runs as they are kept: the history, one of its records, the events of a run. */
import { RunUnknown } from '../errors.js';
import { queryOf } from './query.js';
import type { Edge, Route } from './route.js';
import { runIdIn } from './route.js';
import { eventsPage, historyRecord } from './wire.js';

/** GET /api/runs/, GET /api/runs/{run_id} and GET /api/runs/{run_id}/events. */
export function historyRoutes(edge: Edge): readonly Route[] {
  return [listRoute(edge), recordRoute(edge), eventsRoute(edge)];
}

function listRoute(edge: Edge): Route {
  const query = queryOf(edge.schemas, 'history-query.json');
  return {
    method: 'GET',
    path: '/api/runs/',
    name: 'listHistory',
    summary: 'Lists runs, newest first',
    tag: 'history',
    query,
    success: { status: 200, description: 'A page of the history', schema: 'history-list.json' },
    async handle(ctx) {
      const page = query.read(ctx);
      const runs = await edge.inTime(edge.queries.list(page));
      return { status: 200, body: runs.map(historyRecord) };
    },
  };
}

function recordRoute(edge: Edge): Route {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}',
    name: 'getHistoryRecord',
    summary: 'Shows one run of the history',
    tag: 'history',
    success: { status: 200, description: 'The record', schema: 'history-record.json' },
    async handle(ctx) {
      const runId = runIdIn(ctx);
      const run = await edge.inTime(edge.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      return { status: 200, body: historyRecord(run) };
    },
  };
}

function eventsRoute(edge: Edge): Route {
  const query = queryOf(edge.schemas, 'events-query.json');
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/events',
    name: 'listRunEvents',
    summary: "Lists a run's events in order, as they are stored",
    tag: 'audit',
    query,
    success: { status: 200, description: "A page of the run's events", schema: 'run-events-page.json' },
    async handle(ctx) {
      const page = query.read(ctx);
      const runId = runIdIn(ctx);
      const events = await edge.inTime(edge.queries.events(runId, page));
      if (events === null) throw new RunUnknown({ runId });
      return { status: 200, body: eventsPage(runId, events) };
    },
  };
}
