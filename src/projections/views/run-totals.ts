/**
 * Totals of ended runs by the day of their start, for the overview: a query over the rows of a million runs would take
 * seconds. Kept in the transaction that stores a run. Runs that were tried in the editor do not count. In the views worker.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Outcome, OverviewQuery, OverviewRows } from '../overview.js';
import { bucketOf } from '../overview.js';
import type { RunSummary } from '../run-summary.js';
import { workedMsOf } from '../run-summary.js';
import { fieldOf } from '../../system/untrusted.js';
import { textOf } from './stored-row.js';

/**
 * `council` is the id of a blueprint, or empty for the built-in council. `bucket` is a range of durations. No table counts by
 * day, council and model at once: it could have as many rows as there are runs.
 */
export const TOTALS_SCHEMA = `
  CREATE TABLE daily_outcomes (
    day TEXT NOT NULL, outcome TEXT NOT NULL, runs INTEGER NOT NULL,
    PRIMARY KEY (day, outcome)
  ) WITHOUT ROWID;
  CREATE TABLE daily_durations (
    day TEXT NOT NULL, bucket INTEGER NOT NULL, runs INTEGER NOT NULL,
    PRIMARY KEY (day, bucket)
  ) WITHOUT ROWID;
  CREATE TABLE daily_councils (
    council TEXT NOT NULL, day TEXT NOT NULL,
    runs INTEGER NOT NULL, scored INTEGER NOT NULL, score REAL NOT NULL,
    calls INTEGER NOT NULL, unmetered INTEGER NOT NULL, unpriced INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cost REAL NOT NULL,
    PRIMARY KEY (council, day)
  ) WITHOUT ROWID;
  CREATE TABLE daily_models (
    day TEXT NOT NULL, model TEXT NOT NULL,
    calls INTEGER NOT NULL, unmetered INTEGER NOT NULL, unpriced INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cost REAL NOT NULL,
    PRIMARY KEY (day, model)
  ) WITHOUT ROWID;
`;

/**
 * A change of a run that had ended before it, or has ended after it. `before` is null if the totals did not count the run.
 * A corrupt run counts as failed.
 */
export interface EndedRun {
  readonly before: RunSummary | null;
  readonly after: RunSummary;
}

export interface TotalsTable {
  /** Subtracts from the totals what each run counted for before, and adds what it counts for now. */
  replace(runs: readonly EndedRun[]): void;
  overview(query: OverviewQuery): OverviewRows;
}

/** Councils of an overview: those with the most runs. */
const MOST_COUNCILS = 20;
/** Models of an overview: those with the most calls. */
const MOST_MODELS = 50;

export function totalsTable(database: DatabaseSyncInstance): TotalsTable {
  const outcomes = database.prepare(`INSERT INTO daily_outcomes VALUES (?, ?, ?) ${added(['runs'])}`);
  const durations = database.prepare(`INSERT INTO daily_durations VALUES (?, ?, ?) ${added(['runs'])}`);
  const councils = database.prepare(
    `INSERT INTO daily_councils VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ${added(['runs', 'scored', 'score', ...USED])}`,
  );
  const models = database.prepare(`INSERT INTO daily_models VALUES (?, ?, ?, ?, ?, ?, ?, ?) ${added(USED)}`);
  return {
    replace(runs) {
      const changes = changesBy(runs);
      for (const { key, amounts } of changes.outcomes) outcomes.run(...key, ...amounts);
      for (const { key, amounts } of changes.durations) durations.run(...key, ...amounts);
      for (const { key, amounts } of changes.councils) councils.run(...key, ...amounts);
      for (const { key, amounts } of changes.models) models.run(...key, ...amounts);
    },
    overview: (query) => overviewOf(database, query),
  };
}

/** The sums that runs add to each row. Separate statements for each run would take a third of the time of a write. */
function changesBy(runs: readonly EndedRun[]) {
  const changes = { outcomes: new Sums(), durations: new Sums(), councils: new Sums(), models: new Sums() };
  const add = (run: RunSummary, sign: 1 | -1): void => {
    const outcome = outcomeOf(run);
    // The cost of a run that a council has started is in that of its parent.
    if (outcome === null || run.isTrial || run.parentRun !== undefined) return;
    const day = run.createdAt.slice(0, 10);
    const used = run.usage?.byModel ?? [];
    changes.outcomes.add([day, outcome], [1], sign);
    const workedMs = workedMsOf(run);
    if (outcome === 'completed' && workedMs !== null) changes.durations.add([day, bucketOf(workedMs)], [1], sign);
    const score = run.criticScore === null ? [0, 0] : [1, run.criticScore];
    changes.councils.add([run.blueprintId ?? '', day], [1, ...score, ...sumsOf(used.map(amountsOf))], sign);
    for (const each of used) changes.models.add([day, each.model], amountsOf(each), sign);
  };
  for (const { before, after } of runs) {
    if (before !== null) add(before, -1);
    add(after, 1);
  }
  return changes;
}

type Key = readonly [string, string | number];

/** Amounts to add to rows, by the key of the row. */
class Sums {
  readonly #rows = new Map<string, { readonly key: Key; readonly amounts: number[] }>();

  add(key: Key, amounts: readonly number[], sign: 1 | -1): void {
    const id = key.join('\n');
    const row = this.#rows.get(id) ?? { key, amounts: amounts.map(() => 0) };
    for (const [at, amount] of amounts.entries()) row.amounts[at] = (row.amounts[at] ?? 0) + sign * amount;
    this.#rows.set(id, row);
  }

  [Symbol.iterator]() {
    return this.#rows.values();
  }
}

/** The columns of what calls have used. */
const USED = ['calls', 'unmetered', 'unpriced', 'input', 'output', 'cost'];

/** The rest of an insert that adds to the columns of an existing row. */
function added(columns: readonly string[]): string {
  return `ON CONFLICT DO UPDATE SET ${columns.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`;
}

function sumsOf(rows: readonly (readonly number[])[]): readonly number[] {
  return USED.map((_, at) => rows.reduce((sum, row) => sum + (row[at] ?? 0), 0));
}

/** In the order of the columns. */
function amountsOf(used: ModelUsage): readonly number[] {
  const { calls, toldCalls, pricedCalls, inputTokens, outputTokens, costUsd } = used;
  return [calls, calls - toldCalls, calls - pricedCalls, inputTokens ?? 0, outputTokens ?? 0, costUsd ?? 0];
}

type ModelUsage = NonNullable<RunSummary['usage']>['byModel'][number];

/** How a run ended, or null if it has not. */
export function outcomeOf({ status, failureKind }: RunSummary): Outcome | null {
  if (status === 'completed') return 'completed';
  if (status !== 'failed') return null;
  return failureKind === 'rejected' || failureKind === 'cancelled' ? failureKind : 'failed';
}

const USAGE = USED.map((name) => `sum(${name}) AS ${name}`).join(', ');
const IN_DAYS = 'day BETWEEN ? AND ?';

function overviewOf(database: DatabaseSyncInstance, { days, waitingSince }: OverviewQuery): OverviewRows {
  const rows = (sql: string): readonly unknown[] => database.prepare(sql).all(...days);
  const councils = rows(
    `SELECT council FROM daily_councils WHERE ${IN_DAYS}
     GROUP BY council ORDER BY sum(runs) DESC, council LIMIT ${MOST_COUNCILS}`,
  ).map((row) => text(row, 'council'));
  const ofCouncil = database.prepare(`SELECT * FROM daily_councils WHERE council = ? AND ${IN_DAYS} ORDER BY day`);
  const usedBy = database.prepare(`SELECT ? AS name, ${USAGE} FROM daily_councils WHERE council = ? AND ${IN_DAYS}`);
  return {
    councils,
    outcomes: rows(`SELECT day, outcome, runs FROM daily_outcomes WHERE ${IN_DAYS} AND runs > 0`).map((row) => ({
      day: text(row, 'day'),
      outcome: text(row, 'outcome') as Outcome,
      runs: number(row, 'runs'),
    })),
    durations: rows(`SELECT day, bucket, runs FROM daily_durations WHERE ${IN_DAYS} AND runs > 0`).map((row) => ({
      day: text(row, 'day'),
      bucket: number(row, 'bucket'),
      runs: number(row, 'runs'),
    })),
    scores: councils.flatMap((council) => ofCouncil.all(council, ...days).map((row) => scoreIn(row))),
    byCouncil: councils.map((council) => usageIn(usedBy.get(council, council, ...days))),
    byModel: rows(
      `SELECT model AS name, ${USAGE} FROM daily_models WHERE ${IN_DAYS}
       GROUP BY model ORDER BY sum(calls) DESC, model LIMIT ${MOST_MODELS}`,
    ).map(usageIn),
    byMonth: rows(
      `SELECT substr(day, 1, 7) AS name, ${USAGE} FROM daily_models WHERE ${IN_DAYS} GROUP BY substr(day, 1, 7)`,
    ).map(usageIn),
    waiting: waitingIn(database, waitingSince),
  };
}

function scoreIn(row: unknown): OverviewRows['scores'][number] {
  const [runs, scored, score] = [number(row, 'runs'), number(row, 'scored'), number(row, 'score')];
  return { council: text(row, 'council'), day: text(row, 'day'), runs, scored, score };
}

/** The waits by age: how many began before each of these times, and the first. */
function waitingIn(database: DatabaseSyncInstance, times: readonly string[]): OverviewRows['waiting'] {
  const waiting = 'FROM facets INDEXED BY facets_waiting WHERE waiting_since IS NOT NULL AND is_trial = 0';
  const before = database.prepare(`SELECT count(*) AS runs ${waiting} AND waiting_since < ?`);
  const all: unknown = database.prepare(`SELECT count(*) AS runs, min(waiting_since) AS first ${waiting}`).get();
  return {
    runs: number(all, 'runs'),
    first: textOf(all, 'first'),
    before: times.map((time) => number(before.get(time), 'runs')),
  };
}

function usageIn(row: unknown): OverviewRows['byModel'][number] {
  const [calls, unmetered, unpriced] = [number(row, 'calls'), number(row, 'unmetered'), number(row, 'unpriced')];
  const sums = { input: number(row, 'input'), output: number(row, 'output'), costUsd: number(row, 'cost') };
  return { name: text(row, 'name'), calls, unmetered, unpriced, ...sums };
}

function text(row: unknown, column: string): string {
  return textOf(row, column) ?? '';
}

function number(row: unknown, column: string): number {
  return Number(fieldOf(row, column) ?? 0);
}
