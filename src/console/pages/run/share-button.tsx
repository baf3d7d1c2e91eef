/** Hands the run over as one file. */
import { useSignal } from '@preact/signals';
import { toastError } from '../../shell/toasts.js';
import { Button } from '../../ui/controls.js';
import { saveAs } from './save-as.js';
import { sharedFile } from './share.js';
import type { RunStore } from './store.js';

export function ShareButton({ store }: { readonly store: RunStore }) {
  const isBusy = useSignal(false);
  async function share(): Promise<void> {
    isBusy.value = true;
    try {
      const { id } = store.source;
      const file = await sharedFile({ id, sharedAt: new Date().toISOString(), events: store.record.events });
      saveAs(`run-${id}.html`, new Blob([file], { type: 'text/html' }));
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
      title="One file that shows this run anywhere, and checks its own chain"
      onClick={() => void share()}
    >
      Share
    </Button>
  );
}
