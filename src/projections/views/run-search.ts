/**
 * Finds the runs of a list by their facets and their full text, in SQL. Runs inside the views worker. SQLite has no
 * statistics of these tables, so a `+` before a column tells it that an index of that column excludes too few runs.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { RunFilter, RunListQuery, RunPlace, RunSort } from '../run-list.js';
import { elementAt } from '../../system/element.js';
import { folded, wordsOf } from '../../embeddings/words.js';
import { fieldOf } from '../../system/untrusted.js';

/** Number of runs at the beginning of a list that are searched for words first: a common word fills a page from them. */
const SPAN = 1_000;
/** Largest distance between keys of these runs, so that FTS5 reads few others. */
const SPAN_KEYS = 50_000;

/** The status of a row whose run is erased: it holds the id and the key. */
export const ERASED = 'erased';

/** Smallest number of characters before a `*`. Too many words begin with fewer. */
const MIN_BEGINNING = 3;

type Value = string | number;

/** Conditions that a run must meet, in SQL, with their values. */
type Conditions = readonly (readonly [sql: string, ...values: readonly Value[]])[];

/** The column that each order is by, its direction, and that of the time of the start. Runs without a value come last. */
const ORDERS: Readonly<Record<RunSort, readonly [column: string | null, value: 'ASC' | 'DESC', time: 'ASC' | 'DESC']>> =
  {
    '-created_at': [null, 'DESC', 'DESC'],
    created_at: [null, 'ASC', 'ASC'],
    '-score': ['score', 'DESC', 'DESC'],
    score: ['score', 'ASC', 'ASC'],
    '-cost': ['cost', 'DESC', 'DESC'],
    cost: ['cost', 'ASC', 'ASC'],
    '-duration': ['duration', 'DESC', 'DESC'],
    duration: ['duration', 'ASC', 'ASC'],
    '-iterations': ['iterations', 'DESC', 'DESC'],
    iterations: ['iterations', 'ASC', 'ASC'],
    waiting: ['waiting_since', 'ASC', 'DESC'],
  };

export class RunSearch {
  readonly #database: DatabaseSyncInstance;

  constructor(database: DatabaseSyncInstance) {
    this.#database = database;
  }

  /** Keys of the runs, in order. */
  keys(query: RunListQuery): readonly number[] {
    const { filter = {}, sort = '-created_at', after, limit, offset } = query;
    const match = matchOf(filter);
    if (match === undefined) return [];
    // 1. Look for common words among the first runs.
    if (match !== null) {
      const first = this.#keysInSpan(query, match);
      if (first.length === limit) return first;
    }
    // 2. Find and sort all runs.
    const pages = partsOf(sort, after).map(({ where, order }) => {
      const { sql, values } = allOf([...conditionsOf(filter, sort), ...wordsIn(match), ...where]);
      const page = `SELECT * FROM (SELECT key FROM ${tableOf(filter)} WHERE ${sql} ORDER BY ${order} LIMIT ?)`;
      return { page, values: [...values, limit + offset] };
    });
    const sql = `${pages.map(({ page }) => page).join(' UNION ALL ')} LIMIT ? OFFSET ?`;
    return this.#keys(sql, [...pages.flatMap(({ values }) => values), limit, offset]);
  }

  /** The page, or fewer keys if the first runs do not fill it. Runs of about the same time have neighbouring keys. */
  #keysInSpan({ filter = {}, sort = '-created_at', after, limit, offset }: RunListQuery, match: string) {
    const { where, order } = elementAt(partsOf(sort, after), 0);
    const { sql, values } = allOf([...conditionsOf(filter, sort), ...where]);
    const page = `
      WITH span AS MATERIALIZED (SELECT * FROM ${tableOf(filter)} WHERE ${sql} ORDER BY ${order} LIMIT ${SPAN})
      SELECT key FROM span WHERE key IN (
        SELECT rowid FROM words
        WHERE (SELECT max(key) - min(key) FROM span) <= ${SPAN_KEYS} AND words MATCH ?
          AND rowid BETWEEN (SELECT min(key) FROM span) AND (SELECT max(key) FROM span)
      )
      ORDER BY ${order} LIMIT ? OFFSET ?`;
    return this.#keys(page, [...values, match, limit, offset]);
  }

  /** Number of matching runs. */
  count(filter: RunFilter): number {
    const { isTrial, ...rest } = filter;
    // No index holds the runs that are no trials.
    if (isTrial === false) return this.count(rest) - this.count({ ...rest, isTrial: true });
    const match = matchOf(filter);
    if (match === undefined) return 0;
    const conditions = conditionsOf(filter, null);
    if (conditions.length > 0) {
      const { sql, values } = allOf([...conditions, ...wordsIn(match)]);
      return this.#number(`SELECT count(*) AS found FROM ${tableOf(filter)} WHERE ${sql}`, values);
    }
    if (match !== null) return this.#number('SELECT count(*) AS found FROM words WHERE words MATCH ?', [match]);
    // Keys are consecutive, because an erased run keeps its key.
    return this.#number(
      `SELECT max(key) - (SELECT count(*) FROM runs WHERE status = '${ERASED}') AS found FROM runs`,
      [],
    );
  }

  #keys(sql: string, values: readonly Value[]): readonly number[] {
    return this.#database
      .prepare(sql)
      .all(...values)
      .map((row) => Number(fieldOf(row, 'key')));
  }

  #number(sql: string, values: readonly Value[]): number {
    return Number(fieldOf(this.#database.prepare(sql).get(...values), 'found'));
  }
}

/** The parts of an order after a place: the runs with a value to sort by, then those without. */
function partsOf(
  sort: RunSort,
  after: RunPlace | undefined,
): readonly { readonly where: Conditions; readonly order: string }[] {
  const [column, value, time] = ORDERS[sort];
  const times = `created_at ${time}, id`;
  const past = time === 'DESC' ? '<' : '>';
  const later: Conditions =
    after === undefined
      ? []
      : [
          [`created_at ${past}= ?`, after.createdAt],
          [`created_at ${past} ? OR id > ?`, after.createdAt, after.id],
        ];
  if (column === null) return [{ where: later, order: times }];
  const without = { where: [[`${column} IS NULL`] as const, ...(after?.value === null ? later : [])], order: times };
  if (after?.value === null) return [without];
  const beyond = value === 'DESC' ? '<' : '>';
  const behind: Conditions =
    after === undefined
      ? []
      : [
          [`${column} ${beyond}= ?`, after.value],
          [
            `${column} ${beyond} ? OR created_at ${past} ? OR (created_at = ? AND id > ?)`,
            ...[after.value, after.createdAt, after.createdAt, after.id],
          ],
        ];
  return [{ where: [[`${column} IS NOT NULL`], ...behind], order: `${column} ${value}, ${times}` }, without];
}

/** The table of the runs, with the index of trials if only these are listed. */
function tableOf({ isTrial, parentRun, withChildren = false }: RunFilter): string {
  return isTrial === true && !withChildren && parentRun === undefined ? 'facets INDEXED BY facets_trial' : 'facets';
}

/** The conditions of a filter, except for the words. @param sort the order, or null for a count */
function conditionsOf(filter: RunFilter, sort: RunSort | null): Conditions {
  const { parent, blueprintId, actor, status, outcome, from, to, minScore, maxScore, isTrial, isBuiltIn, q } = filter;
  const isByTime = sort !== null && ORDERS[sort][0] === null;
  // Nearly all runs are completed, and most scores are within the bounds that callers give.
  const completed =
    q !== undefined || isBuiltIn === true || (sort !== null && !isByTime) ? '+status = ?' : 'status = ?';
  const score = isByTime ? '+score' : 'score';
  const all: readonly (readonly [string, Value | undefined])[] = [
    ['parent = ?', parent],
    ['blueprint_id = ?', blueprintId],
    ['actor = ?', actor],
    [status === 'completed' ? completed : 'status = ?', status],
    outcome === 'completed' ? [completed, outcome] : ['failure = ?', outcome],
    ['created_at >= ?', from],
    ['created_at <= ?', to],
    [`${score} >= ?`, minScore],
    [`${score} <= ?`, maxScore],
  ];
  return [
    ...ofChildren(filter),
    ...(isTrial === undefined ? [] : [[`is_trial = ${isTrial ? 1 : 0}`] as const]),
    ...(isBuiltIn === true ? [['blueprint_id IS NULL AND is_trial = 0'] as const] : []),
    ...all.flatMap(([sql, value]) => (value === undefined ? [] : [[sql, value] as const])),
  ];
}

/** Runs that councils have started are left out by default. */
function ofChildren({ parentRun, withChildren = false }: RunFilter): Conditions {
  if (parentRun !== undefined) return [['parent_run = ?', parentRun]];
  return withChildren ? [] : [['parent_run IS NULL']];
}

/** The condition that a run contains words. */
function wordsIn(match: string | null): Conditions {
  return match === null ? [] : [['key IN (SELECT rowid FROM words WHERE words MATCH ?)', match]];
}

function allOf(conditions: Conditions): { readonly sql: string; readonly values: readonly Value[] } {
  const sql = conditions.map(([each]) => `(${each})`).join(' AND ') || 'true';
  return { sql, values: conditions.flatMap(([, ...values]) => values) };
}

/** The FTS5 query for the words of a filter, or null if it has no `q`, or undefined if its `q` contains no word. */
function matchOf({ q }: RunFilter): string | null | undefined {
  if (q === undefined) return null;
  const terms = folded(q)
    .split(/\s+/u)
    .flatMap((piece) => {
      const words = wordsOf(piece);
      const last = words.at(-1);
      const isBeginning = piece.endsWith('*') && last !== undefined && last.length >= MIN_BEGINNING;
      return words.map((word) => (isBeginning && word === last ? `"${word}"*` : `"${word}"`));
    });
  return terms.length === 0 ? undefined : [...new Set(terms)].join(' AND ');
}
