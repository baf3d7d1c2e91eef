/** One run: its graph, its drafts, and every moment of it. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { NotFoundError, ServerError } from '../../../client/errors.js';
import { council } from '../../shell/council.js';
import { pageUrl, path, query, setQuery } from '../../shell/router.js';
import { onRefused } from '../../shell/session.js';
import { Empty, Failure, Loading } from '../../ui/states.js';
import { useResource } from '../../ui/resource.js';
import { now } from '../../ui/time.js';
import { ForkTree } from './fork-tree.js';
import { RunHead } from './head.js';
import { PausePanel } from './pause.js';
import { verdict } from './seal.js';
import { RunStore } from './store.js';
import { RunView } from './view.js';

export function RunPage() {
  const id = path.value[1] ?? '';
  const store = useMemo(() => storeOf(id), [id]);
  const round = useSignal(0);
  useEffect(() => store.start(), [store, round.value]);
  const { value: fault } = store.fault;
  useEffect(() => onRefused(fault), [fault]);
  const faulty = fault === null ? null : <Faulty store={store} onRetry={() => (round.value += 1)} />;
  return (
    <main id="page" class="wide run">
      {store.head.value < 0 ? (
        <NothingYet fault={fault}>{faulty}</NothingYet>
      ) : (
        <>
          <RunHead store={store} />
          {faulty}
          <PausePanel store={store} />
          <RunView store={store} />
          <ForkTree store={store} />
        </>
      )}
    </main>
  );
}

function storeOf(id: string): RunStore {
  const run = council.run(id);
  return new RunStore({
    source: {
      ...{ id, isLive: true },
      events: (from, signal) => run.events({ from, signal }),
      tokens: (signal) => run.tokens({ signal }),
      verify: (signal) => run.verify({ signal }),
      prompt: (step, signal) => run.prompt(step, { signal }),
    },
    place: { query, setQuery },
    clock: now,
    frame: (show) => void window.requestAnimationFrame(show),
  });
}

function NothingYet({ fault, children }: { readonly fault: unknown; readonly children: ComponentChildren }) {
  if (fault instanceof NotFoundError) {
    return (
      <>
        <h1>There is no such run</h1>
        <Empty title="Nothing is recorded under this id">
          <a href={pageUrl([])}>To the runs</a>
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

/** Why its events do not come; of a damaged record, what the service finds wrong with it. */
function Faulty({ store, onRetry }: { readonly store: RunStore; readonly onRetry: () => void }) {
  const { value: fault } = store.fault;
  return (
    <>
      <Failure error={fault} onRetry={onRetry} />
      {fault instanceof ServerError && <Damage id={store.source.id} />}
    </>
  );
}

function Damage({ id }: { readonly id: string }) {
  const { state } = useResource(`verify ${id}`, (signal) => council.run(id).verify({ signal }));
  if (state.value.status !== 'ready') return null;
  return <p class="notice">The service says: {verdict(state.value.value)}</p>;
}
