/** Filters of the list of runs in the URL, and saved views. */
import type { HistoryQuery } from '../../../generated/schemas.js';
import { ownStored } from '../../shell/own-storage.js';
import type { ListedRuns } from './run-list.js';

export const STATUSES = ['pending', 'running', 'paused', 'completed', 'failed'] as const satisfies readonly NonNullable<
  HistoryQuery['status']
>[];

/** The outcomes of runs with the status `failed`, in the console's words. */
export const FAILURES = ['failed', 'rejected', 'cancelled'] as const satisfies readonly NonNullable<
  HistoryQuery['outcome']
>[];

/** Sort orders with their texts. */
export const SORTS = {
  '-created_at': 'Newest first',
  created_at: 'Oldest first',
  '-score': 'Best score first',
  score: 'Lowest score first',
  '-cost': 'Highest cost first',
  cost: 'Lowest cost first',
  '-duration': 'Longest run first',
  duration: 'Shortest run first',
  '-iterations': 'Most drafts first',
  iterations: 'Fewest drafts first',
  waiting: 'Longest wait first',
} as const satisfies Record<HistoryQuery['sort'], string>;

/** Query parameters, named as in the API. */
export const FILTERS = [
  'status',
  'outcome',
  'blueprint_id',
  'actor',
  'from',
  'to',
  'q',
  'min_score',
  'max_score',
  'parent',
  'parent_run',
  'children',
  'trial',
] as const;

/** The value of `blueprint_id` for the built-in council. */
export const BUILT_IN = 'council';

const LISTED: readonly string[] = [...FILTERS, 'sort'];

export type FilterName = (typeof FILTERS)[number] | 'sort';

/** The filters in a query, without invalid values. */
export function filtersIn(query: URLSearchParams): ListedRuns {
  const text = (name: FilterName): string | undefined => query.get(name)?.trim() || undefined;
  const score = (name: FilterName): number | undefined => {
    const value = Number(text(name) ?? NaN);
    return value >= 0 && value <= 10 ? value : undefined;
  };
  const time = (name: FilterName): string | undefined => {
    const value = text(name);
    return value !== undefined && /^\d{4}-\d\d-\d\d/.test(value) && !Number.isNaN(Date.parse(value))
      ? value
      : undefined;
  };
  const sort = text('sort');
  return {
    status: STATUSES.find((each) => each === query.get('status')),
    outcome: FAILURES.find((each) => each === query.get('outcome')),
    ...(text('blueprint_id') === BUILT_IN ? { builtIn: true } : { blueprint: text('blueprint_id') }),
    // Test runs, and runs that councils have started, are left out unless the user asks for them.
    trial: text('trial') === '1' ? undefined : false,
    children: text('children') === '1' ? true : undefined,
    actor: text('actor'),
    from: time('from'),
    to: time('to'),
    q: text('q'),
    minScore: score('min_score'),
    maxScore: score('max_score'),
    parent: text('parent'),
    parentRun: text('parent_run'),
    sort: sort !== undefined && isSort(sort) ? sort : undefined,
  };
}

/** The filters and the order of a query, as a query. */
export function listIn(query: URLSearchParams): string {
  const kept = [...query].filter(([name, value]) => LISTED.includes(name) && value !== '');
  return new URLSearchParams(kept).toString();
}

/** Whether a filter is set. */
export function isNarrowed(query: URLSearchParams): boolean {
  return FILTERS.some((name) => (query.get(name) ?? '') !== '');
}

function isSort(text: string): text is HistoryQuery['sort'] {
  return Object.hasOwn(SORTS, text);
}

/** A named query of the list. */
export interface View {
  readonly name: string;
  /** The query of the URL. */
  readonly search: string;
}

/** The built-in views. */
export const COMMON_VIEWS: readonly View[] = [
  { name: 'All', search: '' },
  { name: 'Waiting', search: 'status=paused&sort=waiting' },
  { name: 'Running', search: 'status=running' },
  { name: 'Completed', search: 'status=completed' },
  { name: 'Failed', search: 'outcome=failed' },
  { name: 'Rejected', search: 'outcome=rejected' },
  { name: 'Cancelled', search: 'outcome=cancelled' },
];

const KEPT_AS = 'council.views';
/** Largest number of saved views, and the longest name. */
const MAX_VIEWS = 30;
export const MAX_NAME = 40;

const viewsOfKey = ownStored(KEPT_AS, (stored): readonly View[] =>
  Array.isArray(stored) ? stored.filter(isView) : [],
);

/** The views that the user saved in this browser, oldest first. */
export const savedViews = viewsOfKey.value;

/** Saves a view; replaces one of the same name. */
export function saveView(view: View): void {
  setViews([...savedViews.value.filter(({ name }) => name !== view.name), view].slice(-MAX_VIEWS));
}

export function removeView(name: string): void {
  setViews(savedViews.value.filter((each) => each.name !== name));
}

/** Whether a query equals a view, in any order of parameters. */
export function isShown({ search }: View, query: URLSearchParams): boolean {
  const sorted = (parameters: URLSearchParams): string => [...parameters].map(String).sort().join('&');
  return sorted(new URLSearchParams(search)) === sorted(query);
}

function setViews(views: readonly View[]): void {
  viewsOfKey.set(views);
}

function isView(value: unknown): value is View {
  if (typeof value !== 'object' || value === null || !('name' in value) || !('search' in value)) return false;
  return typeof value.name === 'string' && typeof value.search === 'string';
}
