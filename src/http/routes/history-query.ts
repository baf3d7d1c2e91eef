/** The filters, orders and cursors of the history, as its query names them. */
import { brokenRules } from '../../api/problems.js';
import type { FieldError, HistoryQuery } from '../../generated/schemas.js';
import type { RunFilter, RunListQuery, RunPlace, RunSort } from '../../projections/run-list.js';
import { placeOf } from '../../projections/run-list.js';
import type { RunSummary } from '../../projections/run-summary.js';
import type { HttpContext } from '../route.js';
import { fieldOf } from '../../system/untrusted.js';
import { NO_TIMESTAMP, timestampIn } from '../timestamp.js';

/** The parameters that filter. */
export type FilterQuery = Partial<Omit<HistoryQuery, 'limit' | 'offset' | 'sort' | 'cursor' | 'count'>>;

/** @throws {RequestRefused} 422 for an unreadable time */
export function filterIn(query: FilterQuery): RunFilter {
  const errors: FieldError[] = [];
  const time = (name: 'from' | 'to', ofDay: 'first' | 'last'): string | undefined => {
    const text = query[name];
    const value = text === undefined ? undefined : timestampIn(text, ofDay);
    if (value === null) errors.push({ loc: ['query', name], ...NO_TIMESTAMP });
    return value ?? undefined;
  };
  const [from, to] = [time('from', 'first'), time('to', 'last')];
  if (errors.length > 0) throw brokenRules(errors);
  const { status, outcome, blueprint_id: blueprintId, actor, parent, min_score: minScore, max_score: maxScore } = query;
  const { parent_run: parentRun } = query;
  const withChildren = isTrue(query.children);
  const isBuiltIn = query.built_in === undefined ? undefined : (true as const);
  const isTrial = query.trial === undefined ? undefined : isTrue(query.trial);
  // Search forms send empty fields.
  const q = query.q?.trim() === '' ? undefined : query.q;
  return {
    status,
    outcome,
    blueprintId,
    isBuiltIn,
    isTrial,
    actor,
    parent,
    parentRun,
    withChildren,
    from,
    to,
    minScore,
    maxScore,
    q,
  };
}

export function isTrue(text: string | undefined): boolean {
  return text === '1' || text === 'true';
}

/** Runs of the list that are read at a time. */
const PAGE = 200;

export type RunsQuery = Required<Pick<RunListQuery, 'filter' | 'sort'>>;

/** All runs of the list that pass a filter, read page by page. */
export async function* runsIn({ queries }: Pick<HttpContext, 'queries'>, query: RunsQuery): AsyncGenerator<RunSummary> {
  for (let after: RunPlace | undefined; ;) {
    const page: readonly RunSummary[] = await queries.list({
      ...query,
      limit: PAGE,
      offset: 0,
      ...(after && { after }),
    });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = placeOf(last, query.sort);
  }
}

/** The place of a cursor. @throws {RequestRefused} 422 if it is no cursor of this order */
export function placeAt(cursor: string, sort: RunSort): RunPlace {
  const place = placeIn(cursor, sort);
  if (place !== null) return place;
  const msg = 'Input should be the cursor of a page in the same order';
  throw brokenRules([{ loc: ['query', 'cursor'], msg, type: 'cursor' }]);
}

/** The place after a run in the list, as an opaque text. */
export function cursorOf({ value, createdAt, id }: RunPlace, sort: RunSort): string {
  return Buffer.from(JSON.stringify([sort, value, createdAt, id])).toString('base64url');
}

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
  return typeof value === 'number' && !sort.endsWith('created_at');
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
