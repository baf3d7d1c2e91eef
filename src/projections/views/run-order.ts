/** The orders and conditions of a list of runs, as SQL on a row of the facets. */
import type { RunFilter, RunListQuery, RunPlace, RunSort } from '../run-list.js';

export type Value = string | number;

/** A condition, with its values. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** A condition that an index can answer. */
export interface IndexedCondition extends Condition {
  /** Tells SQLite which index to read: `INDEXED BY …`. */
  readonly hint: string;
  /** Whether the index orders the rows that meet the condition by the time of their start. */
  readonly isByTime: boolean;
}

/** One part of an order: the runs with a value to sort by, or the runs without one. */
export interface Part {
  /** The index that holds these runs in order, as in `IndexedCondition`. */
  readonly hint: string;
  /** Whether the order is by the time of the start. */
  readonly isByTime: boolean;
  /** The run belongs to this part and comes after the cursor. */
  readonly where: readonly Condition[];
  /** The columns that the order is by. */
  readonly columns: string;
  readonly order: string;
}

const CREATED = 'INDEXED BY facets_created';
const SCORE = 'INDEXED BY facets_score';
const WAITING = 'INDEXED BY facets_waiting';

const TIMES = 'created_at, id';
const NEWEST = 'created_at DESC, id';
const OLDEST = 'created_at, id';

export function condition(sql: string, ...values: readonly Value[]): Condition {
  return { sql, values };
}

export function allOf(conditions: readonly Condition[]): Condition {
  if (conditions.length === 0) return condition('true');
  const sql = conditions.map((each) => `(${each.sql})`).join(' AND ');
  return condition(sql, ...conditions.flatMap(({ values }) => values));
}

/** The parts of an order in sequence, without those before the beginning of the page. */
export function partsOf({ filter = {}, sort = '-created_at', after }: RunListQuery): readonly Part[] {
  return orderParts(filter, sort, after).map((part) => ({ ...part, where: [...part.where, ...unindexed(filter)] }));
}

function orderParts(filter: RunFilter, sort: RunSort, after: RunPlace | undefined): readonly Part[] {
  const hasScores = filter.minScore !== undefined || filter.maxScore !== undefined;
  switch (sort) {
    case '-created_at':
      return [{ hint: CREATED, isByTime: true, where: behind(after, NEWEST), columns: TIMES, order: NEWEST }];
    case 'created_at':
      return [{ hint: CREATED, isByTime: true, where: behind(after, OLDEST), columns: TIMES, order: OLDEST }];
    case 'waiting':
      return partsByValue(
        { column: 'waiting_since', hint: WAITING, noneHint: CREATED, direction: 'ASC', times: NEWEST },
        after,
      );
    default: {
      // Ties are sorted in the same direction, so that one index serves both directions.
      const [column, isDescending] = VALUES[sort];
      const hint = `INDEXED BY facets_${column}`;
      const noneHint = column === 'score' && hasScores ? null : hint;
      const times = isDescending ? NEWEST : OLDEST;
      return partsByValue({ column, hint, noneHint, direction: isDescending ? 'DESC' : 'ASC', times }, after);
    }
  }
}

/** The orders by a value: its column, and whether the largest comes first. */
const VALUES = {
  '-score': ['score', true],
  score: ['score', false],
  '-cost': ['cost', true],
  cost: ['cost', false],
  '-duration': ['duration', true],
  duration: ['duration', false],
  '-iterations': ['iterations', true],
  iterations: ['iterations', false],
} as const;

interface ByValue {
  readonly column: 'score' | 'cost' | 'duration' | 'iterations' | 'waiting_since';
  readonly direction: 'ASC' | 'DESC';
  /** The order of ties, and of runs without a value. */
  readonly times: typeof NEWEST | typeof OLDEST;
  /** Index of the runs that have a value. */
  readonly hint: string;
  /** Index of the runs without a value, or null if the query excludes them. */
  readonly noneHint: string | null;
}

function partsByValue(by: ByValue, after: RunPlace | undefined): readonly Part[] {
  const { column, direction, times, hint, noneHint } = by;
  const isPast = after?.value === null;
  const where = [condition(`${column} IS NULL`), ...(isPast ? behind(after, times) : [])];
  const without = noneHint === null ? [] : [{ hint: noneHint, isByTime: true, where, columns: TIMES, order: times }];
  if (isPast) return without;
  const having = [condition(`${column} IS NOT NULL`), ...behindValue(after, by)];
  const order = `${column} ${direction}, ${times}`;
  return [{ hint, isByTime: false, where: having, columns: `${column}, ${TIMES}`, order }, ...without];
}

function behindValue(after: RunPlace | undefined, { column, direction, times }: ByValue): readonly Condition[] {
  if (after === undefined || after.value === null) return [];
  const { value, createdAt } = after;
  const compare = direction === 'DESC' ? '<' : '>';
  const tie = allOf(behind(after, times));
  const sql = `${column} ${compare}= ? AND (${column} ${compare} ? OR ${tie.sql})`;
  const range = condition(sql, value, value, ...tie.values);
  // A range over both columns of the index skips the runs before the cursor that have its value.
  const isSameDirection = column !== 'waiting_since';
  return isSameDirection ? [condition(`(${column}, created_at) ${compare}= (?, ?)`, value, createdAt), range] : [range];
}

/** The condition that a run comes after a cursor by the time of the start and the id. */
function behind(after: RunPlace | undefined, order: ByValue['times']): readonly Condition[] {
  if (after === undefined) return [];
  const { createdAt, id } = after;
  const compare = order === NEWEST ? '<' : '>';
  const sql = `created_at ${compare}= ? AND (created_at ${compare} ? OR id > ?)`;
  return [condition(sql, createdAt, createdAt, id)];
}

/** The conditions of a filter on a row, except for the words. */
export function conditionsOf(filter: RunFilter): readonly IndexedCondition[] {
  const { parent, blueprintId, actor, status, outcome, from, to, minScore, maxScore, isTrial, isBuiltIn } = filter;
  return [
    ...(isTrial === true ? [marked('is_trial = 1', 'facets_trial')] : []),
    ...(isBuiltIn === true ? [marked('blueprint_id IS NULL AND is_trial = 0', 'facets_built_in')] : []),
    ...equal('parent', parent),
    ...equal('blueprint_id', blueprintId, 'facets_blueprint'),
    ...equal('actor', actor),
    ...equal('status', status),
    ...(outcome === 'completed' ? equal('status', outcome) : equal('failure', outcome)),
    ...within('created_at', { hint: CREATED, isByTime: true }, [from, to]),
    ...within('score', { hint: SCORE, isByTime: false }, [minScore, maxScore]),
  ];
}

/** A condition of an index that holds only the runs that meet it. */
function marked(sql: string, index: string): IndexedCondition {
  return { ...condition(sql), hint: `INDEXED BY ${index}`, isByTime: true };
}

/** The condition that nearly all runs meet, so that no index helps. */
function unindexed({ isTrial }: RunFilter): readonly Condition[] {
  return isTrial === false ? [condition('is_trial = 0')] : [];
}

function equal(column: string, value: string | undefined, index = `facets_${column}`): readonly IndexedCondition[] {
  if (value === undefined) return [];
  return [{ ...condition(`${column} = ?`, value), hint: `INDEXED BY ${index}`, isByTime: true }];
}

function within(
  column: string,
  index: Pick<IndexedCondition, 'hint' | 'isByTime'>,
  [low, high]: readonly [Value | undefined, Value | undefined],
): readonly IndexedCondition[] {
  const bounds = [
    ...(low === undefined ? [] : [condition(`${column} >= ?`, low)]),
    ...(high === undefined ? [] : [condition(`${column} <= ?`, high)]),
  ];
  return bounds.length === 0 ? [] : [{ ...allOf(bounds), ...index }];
}
