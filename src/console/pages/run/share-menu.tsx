/** Gives a run to others: as one HTML file, as its draft, or as its events. */
import { useSignal } from '@preact/signals';
import { council } from '../../shell/council.js';
import { toastError } from '../../shell/toasts.js';
import { Icon } from '../../ui/icon.js';
import { Menu } from '../../ui/menu.js';
import { fileName, save } from './files.js';
import type { RunStore } from './store.js';

export function ShareMenu({ store }: { readonly store: RunStore }) {
  const isBusy = useSignal(false);
  const { id } = store.source;
  const topic = store.summary.value?.topic ?? '';
  const share = (make: () => Promise<void>) => (): void => {
    isBusy.value = true;
    make()
      .catch(toastError)
      .finally(() => (isBusy.value = false));
  };
  async function saveHtml(): Promise<void> {
    // Loads with the first share.
    const { sharedFile } = await import('./share.js');
    save(`run-${id}.html`, new Blob([await sharedFile(store)], { type: 'text/html' }));
  }
  async function saveDraft(): Promise<void> {
    const bytes = await council.run(id).draft();
    save(fileName(topic, 'md'), new Blob([new Uint8Array(bytes)], { type: 'text/markdown;charset=utf-8' }));
  }
  async function saveEvents(): Promise<void> {
    const lines: Uint8Array<ArrayBuffer>[] = [];
    for await (const bytes of council.run(id).export()) lines.push(new Uint8Array(bytes));
    save(`run-${id}.ndjson`, new Blob(lines, { type: 'application/x-ndjson' }));
  }
  const draft = {
    text: 'Draft (Markdown)',
    note: 'The text alone, without how it came about.',
    onClick: share(saveDraft),
  };
  return (
    <Menu
      disabled={isBusy.value || store.head.value < 0}
      actions={[
        {
          text: 'Record (HTML)',
          note: 'One file that shows the draft and every step, and verifies itself. Needs no service.',
          onClick: share(saveHtml),
        },
        ...(store.snapshot.value?.draft === null ? [] : [draft]),
        {
          text: 'Events (NDJSON)',
          note: 'Every recorded event with its hash, one per line, for programs.',
          onClick: share(saveEvents),
        },
      ]}
    >
      <Icon name="share" /> Share
    </Menu>
  );
}
