/** The button that forks a run at the event shown, and its dialog, which loads with the first fork. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { may } from '../../shell/session.js';
import { Later, chunk } from '../../ui/chunks.js';
import { Button } from '../../ui/controls.js';
import { Icon } from '../../ui/icon.js';
import type { ForkDialogProps } from './fork-dialog.js';
import type { RunStore } from './store.js';

const dialog = chunk(() => import('./fork-dialog.js'));

interface ForkButtonProps {
  readonly store: RunStore;
  /** Its text. Default: `Fork here`. */
  readonly children?: ComponentChildren;
}

/** The button that opens the dialog, for keys that may start runs. */
export function ForkButton({ store, children = 'Fork here' }: ForkButtonProps) {
  const at = useSignal<number | null>(null);
  const { value: shown } = store.shown;
  if (!may('run') || shown < 0) return null;
  // A run cannot continue from its end, so the fork starts at the event before.
  const isEnd = store.isOver.value && shown === store.head.value;
  return (
    <>
      <Button slim onClick={() => (at.value = isEnd ? shown - 1 : shown)}>
        <Icon name="fork" /> {children}
      </Button>
      {at.value !== null && <Dialog store={store} at={at.value} onClose={() => (at.value = null)} />}
    </>
  );
}

function Dialog(props: ForkDialogProps) {
  return <Later of={dialog}>{({ ForkDialog }) => <ForkDialog {...props} />}</Later>;
}
