/** Links to the runs that were started just before and after a run. */
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { Icon } from '../../ui/icon.js';
import { useResource } from '../../ui/resource.js';

interface NeighboursProps {
  readonly id: string;
  readonly createdAt: string;
}

/** Runs that are read on each side, because several may have started at the same time. */
const READ = 3;

export function Neighbours({ id, createdAt }: NeighboursProps) {
  const { state } = useResource(`neighbours ${id}`, async (signal) => {
    const [newer, older] = await Promise.all([
      nextIn({ from: createdAt, sort: 'created_at' }, id, signal),
      nextIn({ to: createdAt, sort: '-created_at' }, id, signal),
    ]);
    return { newer, older };
  });
  const { value: found } = state;
  if (found.status !== 'ready') return null;
  const { newer, older } = found.value;
  return (
    <nav class="row neighbours" aria-label="Other runs">
      {newer !== null && (
        <a href={pageUrl(['runs', newer.id])} title={newer.input_topic}>
          <Icon name="newer" /> Newer run
        </a>
      )}
      {older !== null && (
        <a href={pageUrl(['runs', older.id])} title={older.input_topic}>
          Older run <Icon name="older" />
        </a>
      )}
    </nav>
  );
}

interface Range {
  readonly from?: string;
  readonly to?: string;
  readonly sort: 'created_at' | '-created_at';
}

/** The run after this one in a list, or null. */
async function nextIn(range: Range, id: string, signal: AbortSignal) {
  let isPast = false;
  let read = 0;
  for await (const run of council.runs.list({ ...range, limit: READ, signal })) {
    if (isPast) return run;
    isPast = run.id === id;
    read += 1;
    if (read === READ * READ) break;
  }
  return null;
}
