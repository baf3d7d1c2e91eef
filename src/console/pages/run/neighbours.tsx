/** Links to the runs beside a run in the list from which the user opened it. */
import type { HistoryRecord } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { pageUrl, query } from '../../shell/router.js';
import { Icon } from '../../ui/icon.js';
import { useResource } from '../../ui/resource.js';
import { filtersIn } from '../runs/filters.js';
import type { ListedRuns } from '../runs/run-list.js';

type Started = Pick<HistoryRecord, 'id' | 'created_at'>;

/** The runs on either side, or null. */
type Sides<T = HistoryRecord | null> = readonly [before: T, after: T];

/** Runs that are read on each side in an order by time, because several may have started at the same time. */
const READ = 10;

/** Runs per page, and the most runs that are read to find the run in another order. */
const [PAGE, MOST_READ] = [100, 1_000];

/** `list` in the URL holds the filters and the order of the list. Default: all runs, newest first. */
export function Neighbours({ id, createdAt }: { readonly id: string; readonly createdAt: string }) {
  const list = query.value.get('list') ?? '';
  const filters = filtersIn(new URLSearchParams(list));
  const { state } = useResource(`neighbours ${id} ${list}`, (signal) =>
    sidesOf({ id, created_at: createdAt }, { ...filters, signal }),
  );
  const { value: found } = state;
  if (found.status !== 'ready') return null;
  const [before, after] = found.value;
  const [back, on] = namesIn(filters.sort);
  const urlOf = (run: Started): string => pageUrl(['runs', run.id], { list });
  return (
    <nav class="row neighbours" aria-label="Other runs">
      {before !== null && (
        <a href={urlOf(before)} title={before.input_topic}>
          <Icon name="newer" /> {back}
          <span class="when-wide"> run</span>
        </a>
      )}
      {after !== null && (
        <a href={urlOf(after)} title={after.input_topic}>
          {on}
          <span class="when-wide"> run</span> <Icon name="older" />
        </a>
      )}
    </nav>
  );
}

function namesIn(sort: ListedRuns['sort'] = '-created_at'): Sides<string> {
  if (sort === '-created_at') return ['Newer', 'Older'];
  return sort === 'created_at' ? ['Older', 'Newer'] : ['Previous', 'Next'];
}

type Listed = ListedRuns & { readonly signal: AbortSignal };

async function sidesOf(run: Started, list: Listed): Promise<Sides> {
  const { sort = '-created_at' } = list;
  if (sort !== 'created_at' && sort !== '-created_at') return await sidesInOrder(run, list);
  const [newer, older] = await Promise.all([
    firstPage({ ...list, from: run.created_at ?? undefined, sort: 'created_at' }),
    firstPage({ ...list, to: run.created_at ?? undefined, sort: '-created_at' }),
  ]);
  const all = [...newer, ...older];
  const isFirst = (one: Started, other: Started): boolean => comesFirst(one, other, sort);
  const before = all.filter((each) => isFirst(each, run)).sort((a, b) => (isFirst(a, b) ? 1 : -1));
  const after = all.filter((each) => isFirst(run, each)).sort((a, b) => (isFirst(a, b) ? -1 : 1));
  return [before[0] ?? null, after[0] ?? null];
}

/** Whether a run comes before another one in an order by time. The service sorts runs of the same time by id. */
function comesFirst(one: Started, other: Started, sort: 'created_at' | '-created_at'): boolean {
  const [a, b] = [one.created_at ?? '', other.created_at ?? ''];
  if (a === b) return one.id < other.id;
  return sort === 'created_at' ? a < b : a > b;
}

async function firstPage(list: Listed): Promise<readonly HistoryRecord[]> {
  const page = await council.runs
    .list({ ...list, limit: READ })
    .pages()
    [Symbol.asyncIterator]()
    .next();
  return page.done === true ? [] : page.value;
}

/** Reads the list from its beginning until the run is found. */
async function sidesInOrder({ id }: Started, list: Listed): Promise<Sides> {
  let [before, isFound, read]: [HistoryRecord | null, boolean, number] = [null, false, 0];
  for await (const run of council.runs.list({ ...list, limit: PAGE })) {
    if (isFound) return [before, run];
    isFound = run.id === id;
    if (!isFound) before = run;
    read += 1;
    if (read === MOST_READ) break;
  }
  return [isFound ? before : null, null];
}
