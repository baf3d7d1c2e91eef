/** The decisions on paused runs, for a compliance officer. */
import type { OversightRow } from '../../generated/schemas.js';
import { isUnreadable } from '../../run/errors.js';
import { brokenRules } from '../../api/problems.js';
import { permitsFor, withPermit } from '../concurrency.js';
import { attachment } from '../content-disposition.js';
import type { CsvCell } from '../csv.js';
import { CSV, csvLine } from '../csv.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { filterIn, runsIn } from './history-query.js';

/** Most decisions in one answer, all of which are in memory until they are in order. */
const MAX_ROWS = 100_000;

/** GET /api/oversight. */
export function oversightRoutes(http: HttpContext): readonly Route[] {
  const query = queryOf(http.schemas, 'oversight-query.json');
  const permits = permitsFor(1);
  return [
    {
      method: 'GET',
      path: '/api/oversight',
      access: 'audit',
      name: 'listDecisions',
      summary: 'Lists the decisions on paused runs: who decided what, on which draft, and when',
      description: `Read from the records of the runs. More than ${MAX_ROWS} decisions are 422: ask for a shorter time.`,
      tag: 'audit',
      query,
      success: {
        status: 200,
        description: 'The decisions in the order of their times',
        schema: 'oversight.json',
        alsoAs: { [CSV]: { description: 'With `format=csv`, the names of the columns in the first line (RFC 4180)' } },
        headers: ['Content-Disposition'],
      },
      async handle(ctx, caller) {
        const { format, ...bounds } = query.read(ctx);
        const { from = '', to } = filterIn(bounds);
        const rows = await withPermit(permits, { http, caller }, () => decided(http, from, to));
        if (format === 'json') return { status: 200, body: rows };
        const body = [Object.keys(COLUMNS), ...rows.map((row) => Object.values(COLUMNS).map((cell) => cell(row)))]
          .map(csvLine)
          .join('');
        return { status: 200, body, type: `${CSV}; charset=utf-8`, headers: attachment('oversight.csv') };
      },
    },
  ];
}

/** The decisions from a time to another, both inclusive, in the order of their times. */
async function decided(http: HttpContext, from: string, to: string | undefined): Promise<readonly OversightRow[]> {
  const rows: OversightRow[] = [];
  const query = { filter: { to, withChildren: true }, sort: 'created_at' } as const;
  for await (const { id, session, completedAt } of runsIn(http, query)) {
    // Only a run with a session of God Mode or its budget has paused; one that ended before `from` has decided nothing since.
    if (session === null || (completedAt !== null && completedAt < from)) continue;
    const found = await decisionsOf(http, id);
    rows.push(...found.filter(({ decided_at: at }) => at >= from && (to === undefined || at <= to)));
    if (rows.length > MAX_ROWS) throw tooMany();
  }
  return rows.sort((a, b) => compare(a.decided_at, b.decided_at) || compare(a.run_id, b.run_id) || a.seq - b.seq);
}

async function decisionsOf(http: HttpContext, runId: string): Promise<readonly OversightRow[]> {
  try {
    return await http.decisions(runId);
  } catch (error) {
    // The list shows a damaged run as failed, and `verify` says where it is damaged. Another may just have been erased.
    if (isUnreadable(error)) return [];
    throw error;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function tooMany(): Error {
  const msg = `More than ${MAX_ROWS} decisions: choose a shorter time`;
  return brokenRules([{ loc: ['query', 'from'], msg, type: 'too_many' }]);
}

/** The columns of the table by name. */
const COLUMNS: Readonly<Record<keyof OversightRow, (row: OversightRow) => CsvCell>> = {
  decided_at: (row) => row.decided_at,
  actor: ({ actor }) => actor,
  decided_by: (row) => row.decided_by,
  action: ({ action }) => action,
  comment: ({ comment }) => comment,
  run_id: (row) => row.run_id,
  seq: ({ seq }) => seq,
  input_topic: (row) => row.input_topic,
  blueprint_id: (row) => row.blueprint_id,
  council: ({ council }) => council,
  node: ({ node }) => node,
  paused_at: (row) => row.paused_at,
  opened_at: (row) => row.opened_at,
  waited_ms: (row) => row.waited_ms,
  draft_sha256: (row) => row.draft_sha256,
  draft_changed: (row) => row.draft_changed,
  quorum: ({ quorum }) => quorum,
  votes: ({ votes }) => votes.map(({ actor, action, at }) => `${actor ?? ''} ${action} ${at}`).join(', '),
};
