/** The page of one run. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { NotFoundError, ServerError } from '../../../client/errors.js';
import { excerpt } from '../../record/counts.js';
import { withoutMarks } from '../../record/plain-draft.js';
import { council } from '../../shell/council.js';
import { pageUrl, path, query, setQuery } from '../../shell/router.js';
import { lockIfUnauthorized } from '../../shell/session.js';
import { Later, chunk } from '../../ui/chunks.js';
import { Empty, Failure, Loading } from '../../ui/states.js';
import { useResource } from '../../ui/resource.js';
import { now } from '../../ui/time.js';
import { RunHead } from './head.js';
import { PausePanel } from './pause.js';
import { verdict } from './hash-chain.js';
import { liveSource } from './live-source.js';
import { CitedInRun } from './sources.js';
import { RunStore } from './store.js';
import { RunView } from './view.js';
import { usePageTitle } from '../../shell/title.js';

export function RunPage() {
  const id = path.value[1] ?? '';
  const store = useMemo(() => storeOf(id), [id]);
  const round = useSignal(0);
  useEffect(() => store.start(), [store, round.value]);
  const { value: fault } = store.fault;
  useEffect(() => lockIfUnauthorized(fault), [fault]);
  const topic = store.summary.value?.topic;
  usePageTitle(...(topic === undefined ? [] : [excerpt(withoutMarks(topic), 60)]), 'Run');
  const faulty = fault === null ? null : <Faulty store={store} onRetry={() => (round.value += 1)} />;
  return (
    <main id="page" class="run">
      {store.head.value < 0 ? (
        <NothingYet fault={fault}>{faulty}</NothingYet>
      ) : (
        <>
          <RunHead store={store} />
          {faulty}
          <CitedInRun store={store}>
            <PausePanel store={store} />
          </CitedInRun>
          <RunView store={store}>
            <Later of={forkTree}>{({ ForkTree }) => <ForkTree store={store} />}</Later>
          </RunView>
        </>
      )}
    </main>
  );
}

/** Loads after the run, below everything else. */
const forkTree = chunk(() => import('./fork-tree.js'));

function storeOf(id: string): RunStore {
  return new RunStore({
    source: liveSource(id),
    place: { query, setQuery },
    clock: now,
    frame: (show) => void window.requestAnimationFrame(show),
  });
}

function NothingYet({ fault, children }: { readonly fault: unknown; readonly children: ComponentChildren }) {
  if (fault instanceof NotFoundError) {
    return (
      <>
        <h1>Run {fault.status === 410 ? 'erased' : 'not found'}</h1>
        <Empty title={fault.status === 410 ? fault.detail : 'No run has this id'}>
          <a href={pageUrl([])}>Show the runs</a>
        </Empty>
      </>
    );
  }
  return (
    <>
      <h1 class={fault === null ? 'unseen' : undefined}>Run</h1>
      {fault === null ? <Loading what="the run" lines={8} /> : children}
    </>
  );
}

/** Why the events cannot be loaded, and the service's verification if the record is corrupt. */
function Faulty({ store, onRetry }: { readonly store: RunStore; readonly onRetry: () => void }) {
  const { value: fault } = store.fault;
  return (
    <>
      <Failure error={fault} onRetry={onRetry} />
      {fault instanceof ServerError && <Corruption id={store.source.id} />}
    </>
  );
}

function Corruption({ id }: { readonly id: string }) {
  const { state } = useResource(`verify ${id}`, (signal) => council.run(id).verify({ signal }));
  if (state.value.status !== 'ready') return null;
  return <p class="notice">Checked by the service: {verdict(state.value.value)}</p>;
}
