/**
 * Finds the runs of a list by their facets and their full text, in SQL. Each statement names the index that it reads:
 * SQLite has no statistics of these tables, and would sort all completed runs to show the best fifty. Runs inside the
 * views worker.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { allOf, condition, conditionsOf, partsOf } from './run-order.js';
import type { RunFilter, RunListQuery } from '../run-list.js';
import type { IndexedCondition, Part, Value } from './run-order.js';
import { folded, wordsOf } from '../../embeddings/words.js';
import { fieldOf } from '../../system/untrusted.js';

/** The search counts the runs of a condition up to this number. Sorting fewer takes at most 25 ms of processor time. */
const MAX_COUNTED = 20_000;

/**
 * Size of the first span that is compared with the words of a query, for each requested run, and the factor by which
 * spans grow.
 */
const FIRST_SPAN = 4;
const SPAN_GROWTH = 8;

/** Smallest number of characters before a `*`. Too many words begin with fewer. */
const MIN_BEGINNING = 3;

/** Reads the runs with the words in the order of their keys. */
const BY_WORDS = 'NOT INDEXED';

interface Counted extends IndexedCondition {
  /** Number of runs that meet the condition, at most `MAX_COUNTED`. */
  readonly runs: number;
}

interface WordSelection {
  readonly conditions: readonly Counted[];
  readonly match: string;
}

interface Window {
  readonly limit: number;
  readonly offset: number;
}

export class RunSearch {
  readonly #database: DatabaseSyncInstance;

  constructor(database: DatabaseSyncInstance) {
    this.#database = database;
  }

  /** Keys of the runs, in order. */
  keys(query: RunListQuery): readonly number[] {
    const { filter = {}, limit, offset } = query;
    const match = matchIn(filter);
    if (match === undefined) return [];
    const conditions = this.#conditions(filter, match);
    if (conditions.some(({ runs }) => runs === 0)) return [];
    const size = { wanted: limit + offset, total: this.#total() };
    const parts = partsOf(query).map((part) => ({ ...part, hint: hintFor(part, conditions, size) }));
    const words = conditions.find(({ hint }) => hint === BY_WORDS);
    return match !== null && words?.runs === MAX_COUNTED
      ? this.#keysInSpans(parts, { conditions, match }, { limit, offset })
      : this.#keysInParts(parts, conditions, { limit, offset });
  }

  /** Number of matching runs. */
  count({ isTrial, ...filter }: RunFilter): number {
    if (isTrial === undefined) return this.#counted(filter);
    const trials = this.#counted({ ...filter, isTrial: true });
    // Both numbers come from indexes, but no index holds the runs that are no trials.
    return isTrial ? trials : this.#counted(filter) - trials;
  }

  #counted(filter: RunFilter): number {
    const match = matchIn(filter);
    if (match === undefined) return 0;
    const conditions = this.#conditions(filter, match);
    const [fewest] = conditions.toSorted((one, other) => one.runs - other.runs);
    if (fewest === undefined) return this.#total();
    if (match !== null && conditions.length === 1) {
      return this.#number('SELECT count(*) AS found FROM words WHERE words MATCH ?', [match]);
    }
    const { sql, values } = allOf(conditions);
    return this.#number(`SELECT count(*) AS found FROM facets ${fewest.hint} WHERE ${sql}`, values);
  }

  #keysInParts(parts: readonly Part[], conditions: readonly Counted[], { limit, offset }: Window): readonly number[] {
    if (parts.length === 0) return [];
    const values: Value[] = [];
    const pages = parts.map(({ hint, where, order }) => {
      const all = allOf([...conditions, ...where]);
      values.push(...all.values, limit + offset);
      return `SELECT * FROM (SELECT key FROM facets ${hint} WHERE ${all.sql} ORDER BY ${order} LIMIT ?)`;
    });
    return keysIn(this.#rows(`${pages.join(' UNION ALL ')} LIMIT ? OFFSET ?`, [...values, limit, offset]));
  }

  /** As `#keysInParts`, for words that many runs contain, because a list of all these runs would take too long. */
  #keysInSpans(parts: readonly Part[], selection: WordSelection, { limit, offset }: Window): readonly number[] {
    let keys: readonly number[] = [];
    for (const part of parts) keys = [...keys, ...this.#firstKeys(part, selection, limit + offset - keys.length)];
    return keys.slice(offset);
  }

  /**
   * Compares the first runs of a part (a span) with the words, and a longer span while too few runs contain the
   * words. In each order runs of about the same time are neighbours, so their keys are close together, and FTS5 reads
   * only those.
   */
  #firstKeys({ hint, where, columns, order }: Part, { conditions, match }: WordSelection, wanted: number) {
    const { sql, values } = allOf([...conditions.filter((each) => each.hint !== BY_WORDS), ...where]);
    const page = `
      WITH span AS MATERIALIZED (
        SELECT key, ${columns} FROM facets ${hint} WHERE ${sql} ORDER BY ${order} LIMIT ?
      )
      SELECT key, (SELECT count(*) FROM span) AS compared FROM span WHERE key IN (
        SELECT rowid FROM words
        WHERE words MATCH ? AND rowid BETWEEN (SELECT min(key) FROM span) AND (SELECT max(key) FROM span)
      )
      ORDER BY ${order} LIMIT ?`;
    const most = Math.min(this.#total(), ...conditions.map(({ runs }) => (runs < MAX_COUNTED ? runs : Infinity)));
    for (let span = FIRST_SPAN * wanted; ; span *= SPAN_GROWTH) {
      const rows = this.#rows(page, [...values, span, match, wanted]);
      const isWhole = span >= most || Number(fieldOf(rows[0], 'compared')) < span;
      if (isWhole || rows.length === wanted) return keysIn(rows);
    }
  }

  #conditions(filter: RunFilter, match: string | null): readonly Counted[] {
    const conditions: Counted[] = conditionsOf(filter).map((each) => {
      const found = `SELECT 1 FROM facets ${each.hint} WHERE ${each.sql} LIMIT ${MAX_COUNTED}`;
      return { ...each, runs: this.#number(`SELECT count(*) AS found FROM (${found})`, each.values) };
    });
    if (match === null) return conditions;
    const found = `SELECT 1 FROM words WHERE words MATCH ? LIMIT ${MAX_COUNTED}`;
    const runs = this.#number(`SELECT count(*) AS found FROM (${found})`, [match]);
    const words = condition('key IN (SELECT rowid FROM words WHERE words MATCH ?)', match);
    return [...conditions, { ...words, hint: BY_WORDS, isByTime: false, runs }];
  }

  /** Number of all runs: the largest key, because keys are consecutive and no run is ever deleted. */
  #total(): number {
    return this.#number('SELECT max(key) AS found FROM facets', []);
  }

  #number(sql: string, values: readonly Value[]): number {
    return Number(fieldOf(this.#database.prepare(sql).get(...values), 'found'));
  }

  #rows(sql: string, values: readonly Value[]): readonly unknown[] {
    return this.#database.prepare(sql).all(...values);
  }
}

function keysIn(rows: readonly unknown[]): readonly number[] {
  return rows.map((row) => Number(fieldOf(row, 'key')));
}

/**
 * The index with which SQLite reads the fewest runs. It reads an index in the order of the page until the page is full;
 * with any other index it reads and sorts all runs that meet the condition.
 */
function hintFor(
  part: Part,
  conditions: readonly Counted[],
  { wanted, total }: { readonly wanted: number; readonly total: number },
): string {
  const isInOrder = ({ hint, isByTime }: Counted): boolean => (part.isByTime ? isByTime : hint === part.hint);
  const share = conditions.reduce((product, { runs }) => (product * runs) / total, 1);
  let fewest = { hint: part.hint, runs: wanted / share };
  for (const each of conditions) {
    const { hint, runs } = each;
    const sorted = runs < MAX_COUNTED ? runs : Infinity;
    const read = isInOrder(each) ? Math.min(sorted, (wanted / share) * (runs / total)) : sorted;
    if (read < fewest.runs) fewest = { hint, runs: read };
  }
  return fewest.hint;
}

/** The FTS5 query for the words of a filter, or null if it has no `q`, or undefined if its `q` contains no word. */
function matchIn({ q }: RunFilter): string | null | undefined {
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
