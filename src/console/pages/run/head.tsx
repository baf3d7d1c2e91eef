/** The head of a run's page: its status and topic, and its actions. */
import { useSignal } from '@preact/signals';
import { pageUrl } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { Later, chunk } from '../../ui/chunks.js';
import { Button, Status } from '../../ui/controls.js';
import { Ago } from '../../ui/time.js';
import { ForkButton } from './fork.js';
import { Neighbours } from './neighbours.js';
import { ShareMenu } from './share-menu.js';
import type { RunStore } from './store.js';
import { RunEnd } from './view.js';

/** Loads with the first run that a council has started. */
const trail = chunk(() => import('./trail.js'));

export function RunHead({ store }: { readonly store: RunStore }) {
  const { value: summary } = store.summary;
  if (summary === null) return null;
  const { topic, now, parent, parentRun, council: name, isGodMode, createdAt, actor } = summary;
  const { id } = store.source;
  return (
    <>
      {parentRun !== null && <Later of={trail}>{({ Trail }) => <Trail of={parentRun} />}</Later>}
      <div class="run-head">
        <div class="row run-facts">
          <Status status={now.status} error={now.error} />
          <span class="muted small">
            {name ?? 'Built-in council'}
            {isGodMode && ' · God Mode'} · <Ago at={createdAt} />
            {actor !== null && ` by ${actor}`}
          </span>
        </div>
        <Neighbours id={id} createdAt={createdAt} />
        <h1 class="clamp" title={topic}>
          {topic}
        </h1>
        <div class="row run-actions">
          <ShareMenu store={store} />
          <ForkButton store={store} />
          {parent !== null && (
            <a class="button slim" href={pageUrl(['compare'], { a: parent.runId, b: id })}>
              Compare with parent
            </a>
          )}
          {may('run') && !store.isOver.value && parentRun === null && <Cancel id={id} />}
          {may('admin') && store.isOver.value && <Erase id={id} />}
        </div>
      </div>
      <RunEnd store={store}>
        <ForkButton store={store}>Fork at this point</ForkButton>
      </RunEnd>
    </>
  );
}

/** Loads with the first run that the user cancels or erases. */
const endings = chunk(() => import('./endings.js'));

function Erase({ id }: { readonly id: string }) {
  const [isAsked, reason] = [useSignal(false), useSignal('')];
  return (
    <>
      <Button slim tone="danger" label="Erase the run" onClick={() => (isAsked.value = true)}>
        Erase
      </Button>
      {isAsked.value && (
        <Later of={endings}>
          {({ EraseDialog }) => <EraseDialog id={id} reason={reason} onClose={() => (isAsked.value = false)} />}
        </Later>
      )}
    </>
  );
}

function Cancel({ id }: { readonly id: string }) {
  const isAsked = useSignal(false);
  return (
    <>
      <Button slim tone="danger" label="Cancel the run" onClick={() => (isAsked.value = true)}>
        <span>
          Cancel<span class="when-wide"> the run</span>
        </span>
      </Button>
      {isAsked.value && (
        <Later of={endings}>
          {({ CancelDialog }) => <CancelDialog id={id} onClose={() => (isAsked.value = false)} />}
        </Later>
      )}
    </>
  );
}
