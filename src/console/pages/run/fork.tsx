/** Going on from the moment that is looked at in another way: what is changed there, its price, and its start. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { ForkRequest } from '../../../generated/schemas.js';
import { countOf } from '../../record/counts.js';
import { usageWords } from '../../record/words.js';
import { council } from '../../shell/council.js';
import { navigateFromHere, pageUrl } from '../../shell/router.js';
import { may, onRefused } from '../../shell/session.js';
import { toast } from '../../shell/toasts.js';
import { Button, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { useResource } from '../../ui/resource.js';
import { tellError } from '../../ui/states.js';
import { unreadable } from '../inbox/edit.js';
import { StateFields } from '../inbox/state-fields.js';
import type { ForkDraft } from './fork-draft.js';
import { changesOf, draftOf } from './fork-draft.js';
import type { RunStore } from './store.js';

/** A button that opens the dialog; no button for keys that may not start runs. */
export function ForkButton({ store }: { readonly store: RunStore }) {
  const at = useSignal<number | null>(null);
  const { value: shown } = store.shown;
  if (!may('run') || shown < 0) return null;
  // Nothing goes on from a run's end: what can be done otherwise is what came before it.
  const isEnd = store.isOver.value && shown === store.head.value;
  return (
    <>
      <Button slim onClick={() => (at.value = isEnd ? shown - 1 : shown)}>
        Fork here
      </Button>
      {at.value !== null && <ForkDialog store={store} at={at.value} onClose={() => (at.value = null)} />}
    </>
  );
}

interface ForkDialogProps {
  readonly store: RunStore;
  /** The event it goes on from. */
  readonly at: number;
  readonly onClose: () => void;
}

function ForkDialog({ store, at, onClose }: ForkDialogProps) {
  const original = useMemo(() => draftOf(store.record, at), [store, at]);
  const draft = useSignal(original);
  const isBusy = useSignal(false);
  const fault = useSignal<string | null>(null);
  const changes = changesOf(original, draft.value);
  const isReadable = Object.keys(unreadable(draft.value)).length === 0;
  const change = (fields: Partial<ForkDraft>): void => void (draft.value = { ...draft.value, ...fields });

  async function start(): Promise<void> {
    isBusy.value = true;
    fault.value = null;
    const go = navigateFromHere();
    try {
      const fork = await council.run(store.source.id).fork({ at, changes });
      onClose();
      toast(`Forked at event ${at}.`, 'good');
      go(pageUrl(['runs', fork.id]));
    } catch (error) {
      onRefused(error);
      fault.value = tellError(error);
    } finally {
      isBusy.value = false;
    }
  }

  return (
    <Dialog
      broad
      title={`Fork at event ${at}`}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" disabled={isBusy.value || !isReadable} onClick={() => void start()}>
            Start the fork
          </Button>
        </>
      }
    >
      <p class="muted">A new run goes on from this moment, with what is changed here. This one stays as it is.</p>
      {isReadable && <Price {...{ store, at, changes }} />}
      <ForkFields draft={draft.value} change={change} />
      {fault.value !== null && (
        <p class="notice bad break" role="alert">
          {fault.value}
        </p>
      )}
    </Dialog>
  );
}

interface FieldsProps {
  readonly draft: ForkDraft;
  readonly change: (fields: Partial<ForkDraft>) => void;
}

function ForkFields({ draft, change }: FieldsProps) {
  return (
    <>
      <StateFields edit={draft} faults={unreadable(draft)} onType={change} />
      <NodeFields {...{ draft, change }} />
      <TextBox
        label="Most steps"
        hint="After them the run fails."
        inputMode="numeric"
        value={draft.bound}
        look="numeric"
        onType={(value) => change({ bound: value })}
      />
    </>
  );
}

function NodeFields({ draft: { nodes }, change }: FieldsProps) {
  return (
    <fieldset class="fork-group">
      <legend>Nodes</legend>
      {nodes.map((node, index) => {
        const put = (fields: Partial<typeof node>): void =>
          change({ nodes: nodes.with(index, { ...node, ...fields }) });
        return (
          <details key={node.id}>
            <summary>{node.label}</summary>
            <div class="stack">
              <TextBox
                label={`Prompt of ${node.label}`}
                rows={4}
                value={node.systemPrompt}
                onType={(value) => put({ systemPrompt: value })}
              />
              <TextBox
                label={`Model of ${node.label}`}
                hint={node.model === '' ? 'The one of the service.' : undefined}
                value={node.model}
                look="mono"
                onType={(value) => put({ model: value })}
              />
            </div>
          </details>
        );
      })}
    </fieldset>
  );
}

interface PriceProps {
  readonly store: RunStore;
  readonly at: number;
  readonly changes: ForkRequest['changes'];
}

/** What it costs, by a dry run; or why it cannot be. */
function Price({ store, at, changes }: PriceProps) {
  const { state } = useResource(JSON.stringify([store.source.id, at, changes]), async (signal) => {
    await pause(300, signal);
    return await council.run(store.source.id).fork({ at, changes }, { dryRun: true, signal });
  });
  const { value: found } = state;
  const spent = store.record.momentAt(at)?.usage;
  return (
    <section class="fork-price card sunken" aria-label="Price" aria-live="polite">
      {found.status === 'loading' && <p class="muted">Working out the price…</p>}
      {found.status === 'failed' && <p class="fault">{tellError(found.error)}</p>}
      {found.status === 'ready' && (
        <p>
          <strong>{countOf(found.value.reused_results, 'result')} taken over</strong>, at least{' '}
          <strong>{countOf(found.value.new_calls_at_least, 'new call')}</strong>
          {found.value.next_nodes.length === 0
            ? '. It ends at once.'
            : `. It goes on with ${found.value.next_nodes.join(', ')}.`}
        </p>
      )}
      {spent !== undefined && <p class="small muted">Spent so far: {usageWords(spent)}</p>}
    </section>
  );
}

/** Resolves after a while, or at once when nobody waits any more. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      window.clearTimeout(timer);
      resolve();
    });
  });
}
