/** The history: runs as a list, and single records. */
import { brokenRules } from '../../api/problems.js';
import { historyRecord } from '../../api/serializers/runs.js';
import type { FieldError, HistoryQuery } from '../../generated/schemas.js';
import type { RunFilter, RunListQuery, RunPlace, RunSort } from '../../projections/run-list.js';
import { placeOf } from '../../projections/run-list.js';
import type { RunSummary } from '../../projections/run-summary.js';
import { RunUnknown } from '../../run/errors.js';
import { fieldOf } from '../../system/untrusted.js';
import { cursorLink, pageOf, queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';
import { NO_TIMESTAMP, timestampIn } from '../timestamp.js';

/** GET /api/runs/ and GET /api/runs/{run_id}. */
export function historyRoutes(http: HttpContext): readonly Route[] {
  return [listRoute(http), recordRoute(http)];
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
      const listed = runListQuery(parameters);
      const linkAfter = (last: RunSummary): Readonly<Record<'Link', string>> =>
        cursorLink(ctx, listed.limit, cursorOf(placeOf(last, listed.sort), listed.sort));
      const page = pageOf(ctx, listed, (each) => http.queries.list(each), linkAfter);
      const isCounted = parameters.count === '1' || parameters.count === 'true';
      const counted = isCounted ? http.queries.count(listed.filter) : null;
      const [{ items, headers }, count] = await http.withinDeadline(Promise.all([page, counted]));
      const total = count === null ? {} : { 'Total-Count': String(count) };
      return { status: 200, body: items.map(historyRecord), headers: { ...headers, ...total } };
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
      return { status: 200, body: historyRecord(run) };
    },
  };
}

/** The requested page. @throws {RequestRefused} 422 for an unreadable time or cursor */
function runListQuery(query: HistoryQuery): RunListQuery & { readonly filter: RunFilter; readonly sort: RunSort } {
  const { limit, offset, sort } = query;
  const errors: FieldError[] = [];
  const read = <T>(name: 'from' | 'to' | 'cursor', reader: (text: string) => T | null): T | undefined => {
    const text = query[name];
    const value = text === undefined ? undefined : reader(text);
    if (value === null) errors.push({ loc: ['query', name], ...UNREADABLE[name] });
    return value ?? undefined;
  };
  const from = read('from', (text) => timestampIn(text, 'first'));
  const to = read('to', (text) => timestampIn(text, 'last'));
  const after = read('cursor', (text) => placeIn(text, sort));
  if (errors.length > 0) throw brokenRules(errors);
  const { status, blueprint_id: blueprintId, actor, parent, min_score: minScore, max_score: maxScore } = query;
  // Search forms send empty fields.
  const q = query.q?.trim() === '' ? undefined : query.q;
  const filter = { status, blueprintId, actor, parent, from, to, minScore, maxScore, q };
  return { limit, offset, filter, sort, ...(after !== undefined && { after }) };
}

const UNREADABLE = {
  from: NO_TIMESTAMP,
  to: NO_TIMESTAMP,
  cursor: { msg: 'Input should be the cursor of a page in the same order', type: 'cursor' },
};

/** The place after a run in the list, as an opaque text. */
function cursorOf({ value, createdAt, id }: RunPlace, sort: RunSort): string {
  return Buffer.from(JSON.stringify([sort, value, createdAt, id])).toString('base64url');
}

/** The place of a cursor, or null if it is no cursor of this order. */
function placeIn(cursor: string, sort: RunSort): RunPlace | null {
  const place: unknown = jsonIn(Buffer.from(cursor, 'base64url').toString());
  const [ofSort, value, createdAt, id] = [0, 1, 2, 3].map((at) => fieldOf(place, String(at)));
  if (ofSort !== sort || typeof createdAt !== 'string' || typeof id !== 'string') return null;
  if (timestampIn(createdAt, 'first') !== createdAt) return null;
  return isValue(value, sort) ? { value, createdAt, id } : null;
}

function isValue(value: unknown, sort: RunSort): value is RunPlace['value'] {
  if (value === null) return true;
  if (sort === 'waiting') return typeof value === 'string';
  return typeof value === 'number' && (sort === 'score' || sort === '-score');
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
