/** The head of a run's page: its status and topic, and its actions. */
import { useSignal } from '@preact/signals';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Button, Status } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';
import { Ago } from '../../ui/time.js';
import { ForkButton } from './fork.js';
import { Neighbours } from './neighbours.js';
import { ShareMenu } from './share-menu.js';
import type { RunStore } from './store.js';
import { RunEnd } from './view.js';

export function RunHead({ store }: { readonly store: RunStore }) {
  const { value: summary } = store.summary;
  if (summary === null) return null;
  const { topic, now, parent, council: name, isGodMode, createdAt, actor } = summary;
  const { id } = store.source;
  return (
    <>
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
          {may('run') && !store.isOver.value && <Cancel id={id} />}
        </div>
      </div>
      <RunEnd store={store} />
    </>
  );
}

function Cancel({ id }: { readonly id: string }) {
  const isAsked = useSignal(false);
  async function cancel(): Promise<void> {
    isAsked.value = false;
    await council.run(id).cancel();
    toast('Cancelled the run', 'good');
  }
  return (
    <>
      <Button slim tone="danger" label="Cancel the run" onClick={() => (isAsked.value = true)}>
        <span>
          Cancel<span class="when-wide"> the run</span>
        </span>
      </Button>
      {isAsked.value && (
        <Confirm
          title="Cancel this run?"
          verb="Cancel the run"
          keep="Keep running"
          onConfirm={() => void cancel().catch(toastError)}
          onClose={() => (isAsked.value = false)}
        >
          <p>The events remain, and you can fork the run.</p>
        </Confirm>
      )}
    </>
  );
}
