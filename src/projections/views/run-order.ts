/** The orders and conditions of a list of runs, as SQL on a row `f` of the facets. */
import type { RunFilter, RunListQuery, RunPlace, RunSort } from '../run-list.js';
import { fieldOf } from '../../system/untrusted.js';
import { textOf } from './stored-row.js';

export type Value = string | number;

/** A condition, with its values. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** One part of an order: the runs that have the value sorted by, or the runs without it. */
export interface Part {
  /** The index that holds these runs in order. */
  readonly index: string;
  /** SQL conditions: the run belongs to this part and comes after the cursor. */
  readonly where: readonly Condition[];
  readonly order: string;
}

export const NEWEST = 'f.created_at DESC, f.id';
const OLDEST = 'f.created_at, f.id';

type Times = typeof NEWEST | typeof OLDEST;

export function condition(sql: string, ...values: readonly Value[]): Condition {
  return { sql, values };
}

export function allOf(conditions: readonly Condition[]): Condition {
  if (conditions.length === 0) return condition('true');
  const sql = conditions.map((each) => `(${each.sql})`).join(' AND ');
  return condition(sql, ...conditions.flatMap(({ values }) => values));
}

/** Whether an order is by something else than the time of the start. */
export function isByValue(sort: RunSort): boolean {
  return sort !== '-created_at' && sort !== 'created_at';
}

/** The parts of an order, one after the other, without those before the place where the page begins. */
export function partsOf({ filter = {}, sort = '-created_at', after }: RunListQuery): readonly Part[] {
  const scored = { column: 'f.score', index: 'facets_score', none: hasScores(filter) ? null : 'facets_score' } as const;
  switch (sort) {
    case '-created_at':
      return [{ index: 'facets_newest', where: behind(after, NEWEST), order: NEWEST }];
    case 'created_at':
      return [{ index: 'facets_newest', where: behind(after, OLDEST), order: OLDEST }];
    case '-score':
      return partsByValue({ ...scored, direction: 'DESC', times: NEWEST }, after);
    case 'score':
      // Ties have the oldest first, so that one index serves both directions.
      return partsByValue({ ...scored, direction: 'ASC', times: OLDEST }, after);
    case 'waiting':
      return partsByValue(
        { column: 'f.waiting_since', index: 'facets_waiting', none: 'facets_newest', direction: 'ASC', times: NEWEST },
        after,
      );
    default:
      return sort satisfies never;
  }
}

interface ByValue {
  readonly column: 'f.score' | 'f.waiting_since';
  readonly direction: 'ASC' | 'DESC';
  /** The order of ties, and of runs without a value. */
  readonly times: Times;
  /** Index of the runs that have a value. */
  readonly index: string;
  /** Index of the runs without a value; null: the query excludes them. */
  readonly none: string | null;
}

function partsByValue(by: ByValue, after: RunPlace | undefined): readonly Part[] {
  const { column, times, index, none } = by;
  const isPast = after?.value === null;
  const where = [condition(`${column} IS NULL`), ...(isPast ? behind(after, times) : [])];
  const without: readonly Part[] = none === null ? [] : [{ index: none, where, order: times }];
  if (isPast) return without;
  const having = [condition(`${column} IS NOT NULL`), ...behindValue(after, by)];
  return [{ index, where: having, order: `${column} ${by.direction}, ${times}` }, ...without];
}

function behindValue(after: RunPlace | undefined, { column, direction, times }: ByValue): readonly Condition[] {
  if (after === undefined || after.value === null) return [];
  const { value } = after;
  const compare = direction === 'DESC' ? '<' : '>';
  const tie = allOf(behind(after, times));
  const sql = `${column} ${compare}= ? AND (${column} ${compare} ? OR ${tie.sql})`;
  return [condition(sql, value, value, ...tie.values)];
}

/** After a cursor, by the time of the start and the id. */
function behind(after: RunPlace | undefined, order: Times): readonly Condition[] {
  if (after === undefined) return [];
  const { createdAt, id } = after;
  const compare = order === NEWEST ? '<' : '>';
  const sql = `f.created_at ${compare}= ? AND (f.created_at ${compare} ? OR f.id > ?)`;
  return [condition(sql, createdAt, createdAt, id)];
}

/** The conditions of a filter on a row, except for the words. */
export function conditionsOf(filter: RunFilter): readonly Condition[] {
  const { from, to, minScore, maxScore } = filter;
  return [
    ...equalitiesOf(filter),
    ...ifGiven('f.created_at >= ?', from),
    ...ifGiven('f.created_at <= ?', to),
    ...ifGiven('f.score >= ?', minScore),
    ...ifGiven('f.score <= ?', maxScore),
  ];
}

/** The conditions that have an index each, which holds its rows by the time of their start. */
export function equalitiesOf({ status, blueprintId, actor, parent }: RunFilter): readonly Equality[] {
  return [
    ...ifGiven('f.parent = ?', parent).map((each) => ({ index: 'facets_parent', ...each })),
    ...ifGiven('f.blueprint_id = ?', blueprintId).map((each) => ({ index: 'facets_blueprint', ...each })),
    ...ifGiven('f.actor = ?', actor).map((each) => ({ index: 'facets_actor', ...each })),
    ...ifGiven('f.status = ?', status).map((each) => ({ index: 'facets_status', ...each })),
  ];
}

export interface Equality extends Condition {
  readonly index: string;
}

export function hasScores({ minScore, maxScore }: RunFilter): boolean {
  return minScore !== undefined || maxScore !== undefined;
}

function ifGiven(sql: string, value: Value | undefined): readonly Condition[] {
  return value === undefined ? [] : [condition(sql, value)];
}

interface Timed {
  readonly key: number;
  readonly createdAt: string;
  readonly id: string;
}

export interface NearlySortedOptions {
  readonly isNewestFirst: boolean;
  /** No row that comes later belongs before one by more than this, in milliseconds. */
  readonly disorderMs: number;
}

/** Takes the first rows, by the time of their start, of rows that arrive nearly but not quite in this order. */
export class NearlySorted {
  readonly #count: number;
  readonly #sign: 1 | -1;
  readonly #disorderMs: number;
  readonly #first: Timed[] = [];

  /** @param count how many are wanted */
  constructor(count: number, { isNewestFirst, disorderMs }: NearlySortedOptions) {
    this.#count = count;
    this.#sign = isNewestFirst ? -1 : 1;
    this.#disorderMs = disorderMs;
  }

  /** Takes the next row; false once no later one can be among the first. */
  take(row: unknown): boolean {
    const [createdAt, id] = [textOf(row, 'created_at'), textOf(row, 'id')];
    if (createdAt === null || id === null) return true;
    const timed = { key: Number(fieldOf(row, 'key')), createdAt, id };
    const last = this.#first.at(-1);
    if (last !== undefined && this.#first.length >= this.#count) {
      const behindMs = this.#sign * (Date.parse(createdAt) - Date.parse(last.createdAt));
      if (behindMs > this.#disorderMs) return false;
      if (!this.#isBefore(timed, last)) return true;
      this.#first.pop();
    }
    const place = this.#first.findLastIndex((each) => this.#isBefore(each, timed));
    this.#first.splice(place + 1, 0, timed);
    return true;
  }

  /** Keys of the first rows, in order. */
  keys(): readonly number[] {
    return this.#first.map(({ key }) => key);
  }

  #isBefore(one: Timed, other: Timed): boolean {
    if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt === (this.#sign === 1);
    return one.id < other.id;
  }
}
