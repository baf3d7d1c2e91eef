/** The button that forks a run at the event shown, and its dialog, which loads with the first fork. */
import { useSignal } from '@preact/signals';
import { may } from '../../shell/session.js';
import { chunk, useChunk } from '../../ui/chunks.js';
import { Button } from '../../ui/controls.js';
import { Icon } from '../../ui/icon.js';
import type { ForkDialogProps } from './fork-dialog.js';
import type { RunStore } from './store.js';

const dialog = chunk(() => import('./fork-dialog.js'));

/** The button that opens the dialog, for keys that may start runs. */
export function ForkButton({ store }: { readonly store: RunStore }) {
  const at = useSignal<number | null>(null);
  const { value: shown } = store.shown;
  if (!may('run') || shown < 0) return null;
  // A run cannot continue from its end, so the fork starts at the event before.
  const isEnd = store.isOver.value && shown === store.head.value;
  return (
    <>
      <Button slim onClick={() => (at.value = isEnd ? shown - 1 : shown)}>
        <Icon name="fork" /> Fork here
      </Button>
      {at.value !== null && <Dialog store={store} at={at.value} onClose={() => (at.value = null)} />}
    </>
  );
}

function Dialog(props: ForkDialogProps) {
  const { value: loaded } = useChunk(dialog).state;
  return loaded.status === 'ready' ? <loaded.value.ForkDialog {...props} /> : null;
}
