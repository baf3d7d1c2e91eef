/** The head of a run's page: its status and usage now, and its actions. */
import { useSignal } from '@preact/signals';
import { budgetText } from '../../../run/cost-text.js';
import { usageText } from '../../record/usage-text.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import type { Fact } from '../../ui/controls.js';
import { Button, Facts, Status } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';
import { lengthText } from '../../record/durations.js';
import { Ago, Since } from '../../ui/time.js';
import { ForkButton } from './fork.js';
import { sharedFile } from './share.js';
import type { RunStore, RunSummary } from './store.js';
import { RunEnd } from './view.js';

export function RunHead({ store }: { readonly store: RunStore }) {
  const { value: summary } = store.summary;
  if (summary === null) return null;
  const { topic, now, parent } = summary;
  return (
    <div class="page-head">
      <div class="stack">
        <div class="row">
          <Status status={now.status} error={now.error} />
          <span class="muted small">{summary.council ?? 'Built-in council'}</span>
          {summary.isGodMode && <span class="muted small">God Mode</span>}
        </div>
        <h1 class="clamp" title={topic}>
          {topic}
        </h1>
        <Facts facts={factsOf(summary)} look="run-facts small" />
        <RunEnd store={store} />
      </div>
      <div class="row">
        {parent !== null && (
          <a class="button slim" href={pageUrl(['compare'], { a: parent.runId, b: store.source.id })}>
            Compare with parent
          </a>
        )}
        <ForkButton store={store} />
        <ShareButton store={store} />
        {may('run') && !store.isOver.value && <Cancel id={store.source.id} />}
      </div>
    </div>
  );
}

function factsOf({ now, actor, createdAt, endedAt }: RunSummary): readonly Fact[] {
  return [
    ['Score', now.score ?? '–'],
    ['Drafts', now.iteration],
    ['Usage', usageText(now.usage)],
    ...(now.budget === null ? [] : [['Budget', budgetText(now.budget)] as const]),
    [
      'Started',
      <>
        <Ago at={createdAt} />
        {actor !== null && ` by ${actor}`}
      </>,
    ],
    endedAt === null
      ? ['Running for', <Since at={createdAt} />]
      : ['Duration', lengthText(Date.parse(endedAt) - Date.parse(createdAt))],
  ];
}

/** Downloads the run as one HTML file. */
function ShareButton({ store }: { readonly store: RunStore }) {
  const isBusy = useSignal(false);
  async function share(): Promise<void> {
    isBusy.value = true;
    try {
      const { id } = store.source;
      const file = await sharedFile({ id, sharedAt: new Date().toISOString(), events: store.record.events });
      download(`run-${id}.html`, new Blob([file], { type: 'text/html' }));
    } catch (error) {
      toastError(error);
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <Button
      slim
      disabled={isBusy.value || store.head.value < 0}
      title="Download an HTML file that shows this run without the service"
      onClick={() => void share()}
    >
      Share
    </Button>
  );
}

function download(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
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
      <Button slim tone="danger" onClick={() => (isAsked.value = true)}>
        Cancel the run
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
