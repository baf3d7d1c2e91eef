/** The table of runs in the stored views, with their facets. In the views worker. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { DuePause } from '../../run/runs/deadlines.js';
import type { UnfinishedRun } from '../../run/state.js';
import { facetTable } from './run-facets.js';
import type { RunCounts, RunFilter, RunListQuery } from '../run-list.js';
import { ERASED, RunSearch } from './run-search.js';
import type { EndedRun, TotalsTable } from './run-totals.js';
import { totalsTable } from './run-totals.js';
import type { RunSummary } from '../run-summary.js';
import { asCorrupt, isRunSummary } from '../run-summary.js';
import { fieldOf } from '../../system/untrusted.js';
import { jsonOf, RowUnreadable, textOf } from './stored-row.js';

const PAUSED_AT_ONCE = 1_000;

/** The deadline of the pause of a run. */
const DEADLINE = `CASE WHEN json_valid(summary) THEN summary ->> 'deadlineAt' END`;

export const RUNS_SCHEMA = `
  CREATE TABLE runs (
    -- In the order of the runs' first events.
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL
  );
  CREATE INDEX runs_unfinished ON runs (key) WHERE status IN ('pending', 'running');
  CREATE INDEX runs_paused ON runs (key) WHERE status = 'paused';
  CREATE INDEX runs_erased ON runs (key) WHERE status = '${ERASED}';
  CREATE INDEX runs_due ON runs (${DEADLINE}) WHERE status = 'paused';
`;

/** A run and its key: its place in the order of first events, from 1. */
export interface KeyedRun {
  readonly key: number;
  readonly id: string;
}

export interface RunTable extends Pick<TotalsTable, 'overview'> {
  save(runs: readonly RunSummary[]): void;
  /**
   * Updates the facets and the totals of a stored run after its corruption is stored or removed.
   *
   * @param wasCorrupt whether it was corrupt before
   */
  refresh(id: string, wasCorrupt: boolean): void;
  /**
   * Removes a run but for its place in the totals.
   *
   * @param kept what the totals count, if they have not counted it: the views were rebuilt after the erasure
   */
  erase(id: string, kept: RunSummary | null): void;
  /**
   * Ids of runs whose retention has passed. Those that councils have started go with their parents.
   *
   * @param days of runs whose blueprint has no `retentionDays`, or null if these are kept
   * @param now ISO 8601
   */
  expired(days: number | null, now: string, max: number): readonly string[];
  /**
   * Runs with all that their councils have started, each before the one that has started it. Omits erased ones.
   *
   * @throws {RowUnreadable}
   */
  families(ids: readonly string[]): readonly RunSummary[];
  /** A run, or null if there is none or it is erased. @throws {RowUnreadable} */
  find(id: string): RunSummary | null;
  /** @throws {RowUnreadable} */
  list(query: RunListQuery): readonly RunSummary[];
  count(filter: RunFilter): number;
  counts(filter: RunFilter): RunCounts;
  unfinished(): readonly UnfinishedRun[];
  /** Paused runs after a key, in the order of keys, at most 1,000. */
  paused(after: number): readonly KeyedRun[];
  /** The earliest deadlines of pauses. */
  deadlines(max: number): readonly DuePause[];
}

export function runTable(database: DatabaseSyncInstance, isCorrupt: (id: string) => boolean): RunTable {
  const insert = database.prepare('INSERT INTO runs (id, created_at, status, summary) VALUES (?, ?, ?, ?)');
  const update = database.prepare('UPDATE runs SET created_at = ?, status = ?, summary = ? WHERE key = ?');
  const stored = database.prepare('SELECT key, status FROM runs WHERE id = ?');
  const columns = 'SELECT id, summary FROM runs';
  const byId = database.prepare(`${columns} WHERE id = ? AND status <> '${ERASED}'`);
  const forget = database.prepare(`UPDATE runs SET status = '${ERASED}', summary = '' WHERE key = ?`);
  const byKey = database.prepare(`${columns} WHERE key = ?`);
  const families = database.prepare(FAMILIES);
  const facets = facetTable(database);
  const search = new RunSearch(database);
  const totals = totalsTable(database);
  const find = (id: string): RunSummary | null => {
    const row: unknown = byId.get(id);
    return row === undefined ? null : storedRun(row);
  };
  /** Returns the key of the run. */
  const saveRow = (row: unknown, run: RunSummary): number => {
    const values = [run.createdAt, run.status, JSON.stringify(run)];
    if (row === undefined) return Number(insert.run(run.id, ...values).lastInsertRowid);
    const key = Number(fieldOf(row, 'key'));
    update.run(...values, key);
    return key;
  };
  const save = (runs: readonly RunSummary[], wasCorrupt = isCorrupt): void => {
    const ended: EndedRun[] = [];
    for (const run of runs) {
      const row: unknown = stored.get(run.id);
      if (textOf(row, 'status') === ERASED) continue;
      const before = hasEnded(textOf(row, 'status')) || wasCorrupt(run.id) ? find(run.id) : null;
      const counted = before !== null && wasCorrupt(run.id) ? asCorrupt(before) : before;
      const after = isCorrupt(run.id) ? asCorrupt(run) : run;
      if (counted !== null || hasEnded(after.status)) ended.push({ before: counted, after });
      facets.save(saveRow(row, run), after, run);
    }
    totals.replace(ended);
  };
  return {
    save: (runs) => save(runs),
    find,
    erase(id, kept) {
      const row: unknown = stored.get(id);
      const status = textOf(row, 'status');
      if (status === ERASED) return;
      const whole = find(id);
      const key = Number(fieldOf(row, 'key'));
      if (whole !== null) {
        facets.remove(key, whole);
        forget.run(key);
      }
      if (!hasEnded(status) && kept !== null) totals.replace([{ before: null, after: kept }]);
    },
    refresh(id, wasCorrupt) {
      const run = find(id);
      if (run !== null) save([run], () => wasCorrupt);
    },
    list: (query) => search.keys(query).map((key) => storedRun(byKey.get(key))),
    expired: (days, now, max) => expiredRuns(database, { days, now, max }),
    families: (ids) => families.all(JSON.stringify(ids)).map((row) => storedRun(row)),
    count: (filter) => search.count(filter),
    counts: (filter) => countsIn(search, filter),
    overview: (query) => totals.overview(query),
    ...unfinishedQueries(database),
  };
}

function countsIn(search: RunSearch, filter: RunFilter): RunCounts {
  const count = (part: RunFilter): number => search.count({ ...filter, ...part });
  return {
    pending: count({ status: 'pending' }),
    running: count({ status: 'running' }),
    paused: count({ status: 'paused' }),
    completed: count({ outcome: 'completed' }),
    failed: count({ outcome: 'failed' }),
    rejected: count({ outcome: 'rejected' }),
    cancelled: count({ outcome: 'cancelled' }),
  };
}

/** A run ended when it started, or later, so only runs are read that started before the shortest retention. */
function expiredRuns(
  database: DatabaseSyncInstance,
  { days, now, max }: { readonly days: number | null; readonly now: string; readonly max: number },
): readonly string[] {
  const own = new Map<string, number>();
  for (const row of database.prepare(OWN_RETENTION).all())
    own.set(textOf(row, 'id') ?? '', Number(fieldOf(row, 'days')));
  const least = Math.min(...own.values(), days ?? Number.POSITIVE_INFINITY);
  if (!Number.isFinite(least)) return [];
  const nowMs = Date.parse(now);
  const started = new Date(Math.max(0, nowMs - least * DAY_MS)).toISOString();
  return database
    .prepare(EXPIRED)
    .all(JSON.stringify(Object.fromEntries(own)), started, days, nowMs, max)
    .flatMap((row) => textOf(row, 'id') ?? []);
}

const DAY_MS = 86_400_000;
const OWN_RETENTION = `
  SELECT id, CASE WHEN json_valid(record) THEN record ->> 'retentionDays' END AS days FROM blueprints
  WHERE days IS NOT NULL`;
const EXPIRED = `
  SELECT f.id FROM facets f INDEXED BY facets_status LEFT JOIN json_each(?1) AS own ON own.key = f.blueprint_id
  WHERE f.created_at < ?2 AND f.status IN ('completed', 'failed') AND f.parent_run IS NULL
    AND unixepoch(f.created_at) * 1000 + f.duration < ?4 - coalesce(own.value, ?3) * ${DAY_MS}
  LIMIT ?5`;

/** Councils nest less deeply than the bound, which a corrupt row could otherwise exceed. */
const FAMILIES = `
  WITH RECURSIVE family (key, id, depth) AS (
    SELECT key, id, 0 FROM runs WHERE id IN (SELECT value FROM json_each(?)) AND status <> '${ERASED}'
    UNION ALL SELECT f.key, f.id, depth + 1 FROM family JOIN facets f ON f.parent_run = family.id WHERE depth < 100
  )
  SELECT runs.id, summary FROM family JOIN runs USING (key) GROUP BY key ORDER BY max(depth) DESC`;

function hasEnded(status: string | null): boolean {
  return status === 'completed' || status === 'failed';
}

function unfinishedQueries(database: DatabaseSyncInstance): Pick<RunTable, 'unfinished' | 'paused' | 'deadlines'> {
  const unfinished = database.prepare(
    `SELECT id, CASE WHEN json_valid(summary) THEN summary ->> 'owner' END AS owner,
       CASE WHEN json_valid(summary) THEN summary ->> 'seq' END AS seq
     FROM runs WHERE status IN ('pending', 'running') ORDER BY key`,
  );
  const paused = database.prepare(
    `SELECT key, id FROM runs WHERE status = 'paused' AND key > ? ORDER BY key LIMIT ${PAUSED_AT_ONCE}`,
  );
  const deadlines = database.prepare(
    `SELECT id, ${DEADLINE} AS deadline FROM runs
     WHERE status = 'paused' AND ${DEADLINE} IS NOT NULL ORDER BY ${DEADLINE} LIMIT ?`,
  );
  return {
    deadlines: (max) =>
      deadlines.all(max).flatMap((row) => {
        const [runId, deadline] = [textOf(row, 'id'), textOf(row, 'deadline')];
        return runId === null || deadline === null ? [] : [{ runId, deadline }];
      }),
    unfinished: () =>
      unfinished.all().flatMap((row) => {
        const runId = textOf(row, 'id');
        return runId === null ? [] : [{ runId, owner: textOf(row, 'owner'), ...seqOf(row) }];
      }),
    paused: (after) =>
      paused.all(after).flatMap((row) => {
        const id = textOf(row, 'id');
        return id === null ? [] : [{ key: Number(fieldOf(row, 'key')), id }];
      }),
  };
}

function seqOf(row: unknown): Pick<UnfinishedRun, 'seq'> {
  const seq = fieldOf(row, 'seq');
  return typeof seq === 'number' ? { seq } : {};
}

/** @throws {RowUnreadable} the row is missing or is not what this service wrote */
function storedRun(row: unknown): RunSummary {
  const id = textOf(row, 'id');
  const summary = jsonOf(row, 'summary', `run ${id}`);
  if (!isRunSummary(summary) || summary.id !== id) throw new RowUnreadable(`run ${id}`);
  return summary;
}
