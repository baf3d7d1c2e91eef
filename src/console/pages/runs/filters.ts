/** Which runs are wanted, as the address says it; and addresses that somebody has given a name. */
import { signal } from '@preact/signals';
import type { HistoryQuery } from '../../../generated/schemas.js';
import { keep, keptList } from '../../shell/kept.js';
import type { ListedRuns } from './run-list.js';

export const STATUSES = ['pending', 'running', 'paused', 'completed', 'failed'] as const satisfies readonly NonNullable<
  HistoryQuery['status']
>[];

/** Orders by what they are called. */
export const SORTS = {
  '-created_at': 'Newest first',
  created_at: 'Oldest first',
  '-score': 'Best score first',
  score: 'Lowest score first',
  waiting: 'Longest wait first',
} as const satisfies Record<HistoryQuery['sort'], string>;

/** Parameters of the address, named as those of the API. */
export const FILTERS = [
  'status',
  'blueprint_id',
  'actor',
  'from',
  'to',
  'q',
  'min_score',
  'max_score',
  'parent',
] as const;

export type FilterName = (typeof FILTERS)[number] | 'sort';

/** What cannot be meant is left out: whatever stands in the address, a list is shown. */
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
    blueprint: text('blueprint_id'),
    actor: text('actor'),
    from: time('from'),
    to: time('to'),
    q: text('q'),
    minScore: score('min_score'),
    maxScore: score('max_score'),
    parent: text('parent'),
    sort: sort !== undefined && isSort(sort) ? sort : undefined,
  };
}

/** Whether any run is left out. */
export function isNarrowed(query: URLSearchParams): boolean {
  return FILTERS.some((name) => (query.get(name) ?? '') !== '');
}

function isSort(text: string): text is HistoryQuery['sort'] {
  return Object.hasOwn(SORTS, text);
}

/** A list that somebody comes back to. */
export interface View {
  readonly name: string;
  /** The address after its question mark. */
  readonly search: string;
}

/** Those that everybody has. */
export const COMMON_VIEWS: readonly View[] = [
  { name: 'All', search: '' },
  { name: 'Waiting', search: 'status=paused&sort=waiting' },
  { name: 'Running', search: 'status=running' },
  { name: 'Failed', search: 'status=failed' },
];

const KEPT_AS = 'council.views';
/** Most views that are kept, and the longest name. */
const MAX_VIEWS = 30;
export const MAX_NAME = 40;

/** Kept in this browser, oldest first. */
export const savedViews = signal(keptList(KEPT_AS, isView));

/** Keeps a view, in the place of another of its name. */
export function saveView(view: View): void {
  setViews([...savedViews.value.filter(({ name }) => name !== view.name), view].slice(-MAX_VIEWS));
}

export function removeView(name: string): void {
  setViews(savedViews.value.filter((each) => each.name !== name));
}

/** Whether an address shows a view, in whatever order it names the filters. */
export function isShown({ search }: View, query: URLSearchParams): boolean {
  const sorted = (parameters: URLSearchParams): string => [...parameters].map(String).sort().join('&');
  return sorted(new URLSearchParams(search)) === sorted(query);
}

function setViews(views: readonly View[]): void {
  savedViews.value = views;
  keep(KEPT_AS, views);
}

function isView(value: unknown): value is View {
  if (typeof value !== 'object' || value === null || !('name' in value) || !('search' in value)) return false;
  return typeof value.name === 'string' && typeof value.search === 'string';
}
