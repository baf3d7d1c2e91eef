/**
 * Finds the runs of a list by their facets. Each way of asking walks an index that has its rows in the order that is
 * wanted, so that a page costs what it holds, however many runs there are. Runs inside the views worker.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import {
  NearlySorted,
  NEWEST,
  allOf,
  condition,
  conditionsOf,
  equalitiesOf,
  hasScores,
  isByValue,
  partsOf,
} from './run-order.js';
import type { FacetTable } from './run-facets.js';
import type { RunFilter, RunListQuery } from '../run-list.js';
import type { Condition, Equality, Part, Value } from './run-order.js';
import { folded, wordsOf } from '../../embeddings/words.js';
import { fieldOf } from '../../system/untrusted.js';

/** Up to this many matching runs are all read and sorted, rather than found by walking an index. */
const FEW = 2_000;
/** As `FEW`, for runs with the words of the query: testing words costs more than testing a column. */
const FEW_WITH_WORDS = 10_000;
/** Most different scores within bounds that are walked one by one; with more, runs are walked and compared. */
const MAX_SCORES = 50;

/** Fewest characters before a `*` that count: too many words begin with less. */
const MIN_BEGINNING = 3;

/** Rows with words, joined to their facets. */
const WITH_WORDS = 'words CROSS JOIN facets f ON f.key = words.rowid';

/** One part of the order, with the query that it answers. */
interface PartQuery extends Part {
  readonly query: RunListQuery;
  readonly filter: RunFilter;
  /** The words of the query, as FTS5 takes them; null: the query has none. */
  readonly match: string | null;
}

interface Window {
  readonly limit: number;
  readonly offset: number;
}

export class RunSearch {
  readonly #database: DatabaseSyncInstance;
  readonly #disorderMs: () => number;

  constructor(database: DatabaseSyncInstance, { disorderMs }: Pick<FacetTable, 'disorderMs'>) {
    this.#database = database;
    this.#disorderMs = disorderMs;
  }

  /** Keys of the runs, in order. */
  keys(query: RunListQuery): readonly number[] {
    const { filter = {}, limit } = query;
    const match = matchIn(filter);
    if (match === undefined) return [];
    const found: number[] = [];
    let { offset } = query;
    for (const part of partsOf(query)) {
      const where = [...conditionsOf(filter), ...part.where];
      const page = this.#page({ ...part, where, query, filter, match }, { limit: limit - found.length, offset });
      found.push(...page);
      if (found.length >= limit) break;
      // The next part begins where this one ends.
      if (offset > 0) offset = page.length > 0 ? 0 : offset - this.#countOf(where, match);
    }
    return found;
  }

  /** How many there are. */
  count(filter: RunFilter): number {
    const match = matchIn(filter);
    return match === undefined ? 0 : this.#countOf(conditionsOf(filter), match);
  }

  #page(part: PartQuery, window: Window): readonly number[] {
    const few = this.#few(part);
    if (few !== undefined) return this.#walked({ ...part, index: few.index }, window);
    return part.match === null ? this.#plainPage(part, window) : this.#pageWithWords(part, part.match, window);
  }

  /** A condition that few runs meet, if no single index answers the query. */
  #few({ filter, query: { sort = '-created_at' }, match }: PartQuery): Equality | undefined {
    const equal = equalitiesOf(filter);
    const isMore = match !== null || isByValue(sort) || hasScores(filter) || equal.length > 1;
    return isMore ? equal.find((each) => this.#isFew('facets f', each, FEW)) : undefined;
  }

  #plainPage(part: PartQuery, window: Window): readonly number[] {
    const { filter, query } = part;
    const [equal] = equalitiesOf(filter);
    if (isByValue(query.sort ?? '-created_at')) return this.#walked(part, window);
    if (hasScores(filter)) return this.#withScores(part, window);
    if (equal !== undefined) return this.#walked({ ...part, index: equal.index }, window);
    return part.where.length === 0 ? this.#everything(part, window) : this.#walked(part, window);
  }

  #pageWithWords(part: PartQuery, match: string, window: Window): readonly number[] {
    if (!isByValue(part.query.sort ?? '-created_at')) return this.#withWords(part, match, window);
    return this.#isFew('words', matches(match), FEW_WITH_WORDS)
      ? this.#sortedWithWords(part, match, window)
      : this.#walked(part, window);
  }

  /** The rows of an index that fit, in its order; where an order is not the index's, they are sorted. */
  #walked({ index, where, order, match }: Omit<PartQuery, 'query' | 'filter'>, { limit, offset }: Window) {
    const { sql, values } = allOf(match === null ? where : [...where, holds(match)]);
    const page = `SELECT f.key FROM facets f INDEXED BY ${index} WHERE ${sql} ORDER BY ${order} LIMIT ? OFFSET ?`;
    return keysIn(this.#rows(page, [...values, limit, offset]));
  }

  /** Of all runs: SQLite reads the rows that are passed over too, so a page in the far half is read from the other end. */
  #everything(part: PartQuery, { limit, offset }: Window): readonly number[] {
    const count = this.#countOf([], null);
    if (offset <= count / 2) return this.#walked(part, { limit, offset });
    const taken = Math.max(0, Math.min(limit, count - offset));
    const order = part.order === NEWEST ? 'f.created_at, f.id DESC' : 'f.created_at DESC, f.id DESC';
    return [...this.#walked({ ...part, order }, { limit: taken, offset: count - offset - taken })].reverse();
  }

  /** By the time of the start, with scores within bounds: those of each score are in this order, and are merged. */
  #withScores(part: PartQuery, { limit, offset }: Window): readonly number[] {
    const scores = this.#scoresWithin(part.filter);
    if (scores.length === 0) return [];
    if (scores.length > MAX_SCORES) return this.#walked(part, { limit, offset });
    const { sql, values } = allOf(part.where);
    const ofScore = `SELECT f.key, f.created_at, f.id FROM facets f INDEXED BY facets_score WHERE f.score = ? AND ${sql}`;
    const merged = scores.map(() => ofScore).join(' UNION ALL ');
    const order = part.order === NEWEST ? '2 DESC, 3' : '2, 3';
    const given = [...scores.flatMap((score) => [score, ...values]), limit, offset];
    return keysIn(this.#rows(`${merged} ORDER BY ${order} LIMIT ? OFFSET ?`, given));
  }

  /** The different scores that runs have within bounds, at most one more than are walked. */
  #scoresWithin({ minScore = 0, maxScore = 10 }: RunFilter): readonly number[] {
    const next = 'SELECT min(score) FROM facets WHERE score';
    const sql = `
      WITH RECURSIVE scores (score) AS (
        SELECT (${next} >= ? AND score <= ?)
        UNION ALL
        SELECT (${next} > scores.score AND score <= ?) FROM scores WHERE scores.score IS NOT NULL
      )
      SELECT score FROM scores WHERE score IS NOT NULL LIMIT ${MAX_SCORES + 1}`;
    return this.#rows(sql, [minScore, maxScore, maxScore]).map((row) => Number(fieldOf(row, 'score')));
  }

  /** By the time of the start, with words. The full text has them in the order of keys, which is nearly this one. */
  #withWords({ query, where }: PartQuery, match: string, { limit, offset }: Window): readonly number[] {
    const isNewestFirst = query.sort !== 'created_at';
    const { sql, values } = allOf([matches(match), ...this.#keysWithin(query), ...where]);
    const order = isNewestFirst ? 'words.rowid DESC' : 'words.rowid';
    const statement = this.#database.prepare(
      `SELECT f.key, f.created_at, f.id FROM ${WITH_WORDS} WHERE ${sql} ORDER BY ${order}`,
    );
    const page = new NearlySorted(offset + limit, { isNewestFirst, disorderMs: this.#disorderMs() });
    for (const row of statement.iterate(...values)) if (!page.take(row)) break;
    return page.keys().slice(offset);
  }

  /** Bounds of keys that follow from bounds of the time of the start. */
  #keysWithin({ filter = {}, sort, after }: RunListQuery): readonly Condition[] {
    const isNewestFirst = sort !== 'created_at';
    const latest = [filter.to, isNewestFirst ? after?.createdAt : undefined].filter(isGiven).sort()[0];
    const earliest = [filter.from, isNewestFirst ? undefined : after?.createdAt].filter(isGiven).sort().at(-1);
    return [
      ...this.#keyBound('words.rowid <= ?', '> ? ORDER BY created_at', shifted(latest, this.#disorderMs())),
      ...this.#keyBound('words.rowid >= ?', '< ? ORDER BY created_at DESC', shifted(earliest, -this.#disorderMs())),
    ];
  }

  /** A bound at the run next to a time; none where there is no such run. */
  #keyBound(bound: string, next: string, time: string | null): readonly Condition[] {
    if (time === null) return [];
    const from = 'facets INDEXED BY facets_newest';
    const [key] = keysIn(this.#rows(`SELECT key FROM ${from} WHERE created_at ${next} LIMIT 1`, [time]));
    return key === undefined ? [] : [condition(bound, key)];
  }

  /** With words that few runs have, in any order. */
  #sortedWithWords({ where, order }: PartQuery, match: string, { limit, offset }: Window): readonly number[] {
    const { sql, values } = allOf([matches(match), ...where]);
    const page = `SELECT f.key FROM ${WITH_WORDS} WHERE ${sql} ORDER BY ${order} LIMIT ? OFFSET ?`;
    return keysIn(this.#rows(page, [...values, limit, offset]));
  }

  #countOf(where: readonly Condition[], match: string | null): number {
    // Keys are given out one after the other, and no run is ever taken out.
    if (match === null && where.length === 0) return this.#number('SELECT max(key) AS found FROM facets', []);
    const { sql, values } = allOf(match === null ? where : [matches(match), ...where]);
    const joined = where.length === 0 ? 'words' : WITH_WORDS;
    return this.#number(`SELECT count(*) AS found FROM ${match === null ? 'facets f' : joined} WHERE ${sql}`, values);
  }

  #isFew(from: string, { sql, values }: Condition, few: number): boolean {
    const found = `SELECT 1 FROM ${from} WHERE ${sql} LIMIT ${few + 1}`;
    return this.#number(`SELECT count(*) AS found FROM (${found})`, values) <= few;
  }

  #number(sql: string, values: readonly Value[]): number {
    return Number(fieldOf(this.#rows(sql, values)[0], 'found'));
  }

  #rows(sql: string, values: readonly Value[]): readonly unknown[] {
    return this.#database.prepare(sql).all(...values);
  }
}

/** The words of the query; null: it has none. Undefined: nothing can be found, since its text holds no word. */
function matchIn({ q }: RunFilter): string | null | undefined {
  return q === undefined ? null : (matchOf(q) ?? undefined);
}

/**
 * The query of FTS5 for texts with all of the words, of which one with `*` behind is a beginning; null: it holds no word.
 * It consists of words alone, so that nothing in the text is syntax of a query.
 */
function matchOf(text: string): string | null {
  const terms = folded(text)
    .split(/\s+/u)
    .flatMap((piece) => {
      const words = wordsOf(piece);
      const last = words.at(-1);
      const isBeginning = piece.endsWith('*') && last !== undefined && last.length >= MIN_BEGINNING;
      return words.map((word) => (isBeginning && word === last ? `"${word}"*` : `"${word}"`));
    });
  return terms.length === 0 ? null : [...new Set(terms)].join(' AND ');
}

function matches(match: string): Condition {
  return condition('words MATCH ?', match);
}

function holds(match: string): Condition {
  return condition('EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND words.rowid = f.key)', match);
}

/** A time so much later; null: there is none, or it has another form, in a year of more than four digits. */
function shifted(time: string | undefined, ms: number): string | null {
  if (time === undefined) return null;
  const moved = new Date(Date.parse(time) + ms).toISOString();
  return moved.length === time.length ? moved : null;
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined;
}

function keysIn(rows: readonly unknown[]): readonly number[] {
  return rows.map((row) => Number(fieldOf(row, 'key')));
}
