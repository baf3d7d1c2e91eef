/** Reads the query of a list of runs: filters and cursor. */
import type { FieldError, HistoryQuery } from '../generated/schemas.js';
import { brokenRules } from '../api/problems.js';
import { momentIn, NO_MOMENT } from './moment.js';
import { fieldOf } from '../system/untrusted.js';
import type { RunFilter, RunListQuery, RunPlace, RunSort } from '../projections/run-list.js';

/** Reads a requested page. @throws {RequestRefused} 422 for a time or a cursor that cannot be read */
export function runListQuery(
  query: HistoryQuery,
): RunListQuery & { readonly filter: RunFilter; readonly sort: RunSort } {
  const { limit, offset, sort } = query;
  const errors: FieldError[] = [];
  const read = <T>(name: 'from' | 'to' | 'cursor', reader: (text: string) => T | null): T | undefined => {
    const text = query[name];
    const value = text === undefined ? undefined : reader(text);
    if (value === null) errors.push({ loc: ['query', name], ...UNREADABLE[name] });
    return value ?? undefined;
  };
  const from = read('from', (text) => momentIn(text, 'first'));
  const to = read('to', (text) => momentIn(text, 'last'));
  const after = read('cursor', (text) => placeIn(text, sort));
  if (errors.length > 0) throw brokenRules(errors);
  const { status, blueprint_id: blueprintId, actor, parent, min_score: minScore, max_score: maxScore } = query;
  // An empty field of a search form is no filter.
  const q = query.q?.trim() === '' ? undefined : query.q;
  const filter = { status, blueprintId, actor, parent, from, to, minScore, maxScore, q };
  return { limit, offset, filter, sort, ...(after !== undefined && { after }) };
}

const UNREADABLE = {
  from: NO_MOMENT,
  to: NO_MOMENT,
  cursor: { msg: 'Input should be the cursor of a page in the same order', type: 'cursor' },
};

/** The place after a run in the list, as opaque text for clients. */
export function cursorOf({ value, createdAt, id }: RunPlace, sort: RunSort): string {
  return Buffer.from(JSON.stringify([sort, value, createdAt, id])).toString('base64url');
}

/** Null: it is no cursor of this order. */
function placeIn(cursor: string, sort: RunSort): RunPlace | null {
  const place: unknown = jsonIn(Buffer.from(cursor, 'base64url').toString());
  const [ofSort, value, createdAt, id] = [0, 1, 2, 3].map((at) => fieldOf(place, String(at)));
  if (ofSort !== sort || typeof createdAt !== 'string' || typeof id !== 'string') return null;
  if (momentIn(createdAt, 'first') !== createdAt) return null;
  return isValue(value, sort) ? { value, createdAt, id } : null;
}

function isValue(value: unknown, sort: RunSort): value is RunPlace['value'] {
  if (value === null) return true;
  if (sort === 'waiting') return typeof value === 'string';
  return typeof value === 'number' && (sort === 'score' || sort === '-score');
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
