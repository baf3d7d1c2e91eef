/** The list of runs. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { council } from '../../shell/council.js';
import { pageUrl, query, setQuery } from '../../shell/router.js';
import { may, lockIfUnauthorized, session } from '../../shell/session.js';
import { Later, chunk, useChunk } from '../../ui/chunks.js';
import { Button } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { Empty, Failure, WhenLoaded } from '../../ui/states.js';
import { ExportButton } from './export-button.js';
import { filtersIn, isNarrowed } from './filters.js';
import { FilterBar, Views } from './filter-bar.js';
import { RunList } from './run-list.js';
import { RunTable } from './run-table.js';
import type { Council } from './start-run.js';
import { usePageTitle } from '../../shell/title.js';

/** Loads with the first selected run. */
const selection = chunk(() => import('./selection.js'));
/** Loads with the first dialog that starts a run, and with an empty list. */
const starting = chunk(() => import('./start-form.js'));

export function RunsPage() {
  usePageTitle('Runs');
  const list = useMemo(
    () =>
      new RunList({
        council,
        onFrame: (act) => void window.requestAnimationFrame(act),
        after: (delayMs, act) => void window.setTimeout(act, delayMs),
        isPageVisible: () => !document.hidden,
        onFault: lockIfUnauthorized,
      }),
    [],
  );
  const councils = useCouncils();
  const feedNames = list.names.value;
  const names = useMemo(
    () => new Map([...feedNames, ...councils.map(({ id, name }): [string, string] => [id, name])]),
    [feedNames, councils],
  );
  const isStarting = query.value.has('start');
  const chosen = useSignal<readonly string[]>([]);
  const filters = JSON.stringify(filtersIn(query.value));
  useEffect(() => {
    void list.follow();
    return () => list.stop();
  }, [list]);
  useEffect(() => list.show(filtersIn(query.peek())), [list, filters]);

  const isFirst = list.total.value === 0 && list.state.value === 'end' && !isNarrowed(query.value);
  return (
    <main id="page" class="runs-page">
      <div class="page-head">
        <h1>
          Runs <Total list={list} />
        </h1>
        {!isFirst && <Actions />}
      </div>
      {isFirst ? (
        <NoRuns councils={councils} />
      ) : (
        <>
          <div class="stack">
            <Views counts={list.counts.value} />
            <FilterBar names={names} />
          </div>
          <Listed {...{ list, chosen, names }} />
        </>
      )}
      {chosen.value.length > 0 && (
        <Later of={selection}>{({ Selection }) => <Selection list={list} chosen={chosen} />}</Later>
      )}
      {isStarting && may('run') && !isFirst && <Starting councils={councils} />}
    </main>
  );
}

function Actions() {
  return (
    <div class="row">
      <ExportButton format="csv" />
      {may('run') && (
        <Button tone="primary" onClick={() => setQuery({ start: 1 })}>
          Start a run
        </Button>
      )}
    </div>
  );
}

/** The saved blueprints, for their names. */
function useCouncils(): readonly Council[] {
  const { state } = useResource('councils', async (signal) => {
    const found: Council[] = [];
    for await (const { id, name, god_mode = 'optional' } of council.blueprints.list({ signal }))
      found.push({ id, name, god_mode });
    return found;
  });
  return state.value.status === 'ready' ? state.value.value : [];
}

function Total({ list }: { readonly list: RunList }) {
  const total = list.total.value;
  return total === null || total === 0 ? null : <span class="total numeric">{total.toLocaleString('en')}</span>;
}

function Starting({ councils }: { readonly councils: readonly Council[] }) {
  const close = (): void => setQuery({ start: null });
  return (
    <WhenLoaded of={useChunk(starting)} what="the form">
      {({ StartDialog }) => <StartDialog councils={councils} onClose={close} />}
    </WhenLoaded>
  );
}

function NoRuns({ councils }: { readonly councils: readonly Council[] }) {
  const loaded = useChunk(starting);
  if (may('run')) {
    return (
      <WhenLoaded of={loaded} what="the form">
        {({ FirstRun }) => <FirstRun councils={councils} />}
      </WhenLoaded>
    );
  }
  return (
    <Empty title="No runs yet">
      <p>Runs that other users start appear here.</p>
    </Empty>
  );
}

function Listed({ list, names, chosen }: Pick<Parameters<typeof RunTable>[0], 'list' | 'names' | 'chosen'>) {
  const state = list.state.value;
  const newCount = list.newCount.value;
  const isOpen = session.value.status === 'in' && session.value.isOpen;
  const failure = typeof state === 'object' ? <Failure error={state.error} onRetry={() => list.reload()} /> : null;
  if (list.rows.value.length === 0 && failure !== null) return failure;
  if (state === 'end' && list.rows.value.length === 0) {
    return (
      <Empty title="No run matches the filters">
        <a href={pageUrl([])}>Show all runs</a>
      </Empty>
    );
  }
  return (
    <div class="listed">
      {list.feedFault.value !== null && (
        <Failure error={list.feedFault.value} onRetry={() => window.location.reload()} />
      )}
      {newCount > 0 && (
        <div class="new-runs" role="status">
          <Button
            slim
            onClick={() => {
              list.reload();
              window.scrollTo(0, 0);
            }}
          >
            ↑ {newCount >= 100 ? '100 or more' : newCount} new {newCount === 1 ? 'run' : 'runs'}
          </Button>
        </div>
      )}
      <RunTable list={list} names={names} chosen={chosen} hasActors={!isOpen} />
      {failure}
    </div>
  );
}
