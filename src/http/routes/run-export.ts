/** Runs of the history as a table or as lines of JSON. */
import { historyRecord } from '../../api/serializers/runs.js';
import type { HistoryRecord, RunExportQuery } from '../../generated/schemas.js';
import { readBody } from '../chunked-body.js';
import { holdPermit, permitsFor } from '../concurrency.js';
import type { CsvCell } from '../csv.js';
import { CSV, csvLine } from '../csv.js';
import { attachment } from '../content-disposition.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { isRunId } from '../route.js';
import { NDJSON } from './audit.js';
import type { RunsQuery } from './history-query.js';
import { filterIn, runsIn } from './history-query.js';

/** Exports at a time; each holds a page of runs in memory. */
const EXPORTS_AT_A_TIME = 2;

/** GET /api/runs/export. */
export function exportRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'run-export-query.json');
  const permits = permitsFor(EXPORTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/runs/export',
    isAlsoId: true,
    access: 'read',
    name: 'exportRuns',
    summary: 'Exports runs of the history as a table or as lines of JSON',
    description:
      'The given runs, or all that pass the filters of the list. In the table, an apostrophe stands before each sign ' +
      'that begins a formula: `=`, `+`, `-` or `@` at the beginning of a text, a line or after a semicolon or tab.',
    tag: 'history',
    query,
    success: {
      status: 200,
      description: 'The table, with the names of its columns in the first line (RFC 4180)',
      schema: null,
      mediaType: CSV,
      alsoAs: { [NDJSON]: { description: 'With `format=ndjson`', each: 'history-record.json' } },
      headers: ['Content-Disposition'],
    },
    async handle(ctx, caller) {
      const parameters = query.read(ctx);
      const { format } = parameters;
      const records = recordsOf(http, parameters);
      await holdPermit(permits, { http, caller }, ctx.res);
      const texts = format === 'csv' ? tableOf(records) : linesOf(records);
      const body = await readBody(texts, { http, response: ctx.res });
      const type = format === 'csv' ? `${CSV}; charset=utf-8` : NDJSON;
      return { status: 200, body, type, headers: attachment(`runs.${format}`) };
    },
  };
}

/** @throws {RequestRefused} 422 */
function recordsOf(http: HttpContext, query: RunExportQuery): AsyncIterable<HistoryRecord> {
  const { ids, sort } = query;
  return ids === undefined ? filtered(http, { filter: filterIn(query), sort }) : selected(http, ids.split(','));
}

async function* selected(http: HttpContext, ids: readonly string[]): AsyncGenerator<HistoryRecord> {
  for (const id of new Set(ids)) {
    const run = isRunId(id) ? await http.queries.listed(id) : null;
    if (run !== null) yield historyRecord(run);
  }
}

async function* filtered(http: HttpContext, query: RunsQuery): AsyncGenerator<HistoryRecord> {
  for await (const run of runsIn(http, query)) yield historyRecord(run);
}

async function* linesOf(records: AsyncIterable<HistoryRecord>): AsyncGenerator<string> {
  for await (const record of records) yield `${JSON.stringify(record)}\n`;
}

/** The columns by name. */
const COLUMNS: Readonly<Record<string, (record: HistoryRecord) => CsvCell>> = {
  id: ({ id }) => id,
  blueprint_id: (record) => record.blueprint_id,
  input_topic: (record) => record.input_topic,
  status: ({ status }) => status,
  critic_score: (record) => record.critic_score,
  iteration_count: (record) => record.iteration_count,
  created_at: (record) => record.created_at,
  completed_at: (record) => record.completed_at,
  duration_ms: (record) => record.duration_ms,
  waited_ms: (record) => record.waited_ms,
  input_tokens: ({ usage }) => usage?.input_tokens ?? null,
  output_tokens: ({ usage }) => usage?.output_tokens ?? null,
  cost_usd: ({ usage }) => usage?.cost_usd ?? null,
  calls: ({ usage }) => usage?.calls ?? null,
  actor: ({ actor }) => actor,
  execution_mode: (record) => record.execution_mode,
  trial: ({ trial }) => trial,
  error: ({ error }) => error,
  parent_run: (record) => record.parent_run?.run_id ?? null,
  parent_run_title: (record) => record.parent_run?.title ?? null,
};

async function* tableOf(records: AsyncIterable<HistoryRecord>): AsyncGenerator<string> {
  yield csvLine(Object.keys(COLUMNS));
  for await (const record of records) yield csvLine(Object.values(COLUMNS).map((cell) => cell(record)));
}
