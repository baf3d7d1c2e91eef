/** Takes the draft out: to the clipboard, as a file, or on paper. */
import { useSignal } from '@preact/signals';
import { draftHtml } from '../../record/draft-dom.js';
import { draftTree } from '../../../draft/draft-tree.js';
import { markdown, useChunk } from '../../ui/chunks.js';
import { CopyButton } from '../../ui/clipboard.js';
import { Icon } from '../../ui/icon.js';
import { Menu } from '../../ui/menu.js';
import { errorText } from '../../ui/states.js';
import { fileName, save } from './files.js';
import { draftsIn } from './draft.js';
import type { RunStore } from './store.js';

const TYPES = {
  md: 'text/markdown;charset=utf-8',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
} as const;

export function DraftActions({ store }: { readonly store: RunStore }) {
  const { value: loaded } = useChunk(markdown).state;
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const text = textIn(store);
  if (text === null) return null;
  // The service has the draft of the last event alone.
  const ask = store.at.value === null ? store.source.draft : undefined;
  async function download(format: keyof typeof TYPES): Promise<void> {
    fault.value = null;
    isBusy.value = true;
    try {
      const content = ask === undefined ? (text ?? '') : new Uint8Array(await ask(format));
      const name = fileName(store.summary.value?.topic ?? '', format);
      save(name, new Blob([content], { type: TYPES[format] }));
    } catch (error) {
      fault.value = errorText(error);
    } finally {
      isBusy.value = false;
    }
  }
  function print(): void {
    store.setTab('draft');
    // After the draft is rendered.
    window.requestAnimationFrame(() => window.print());
  }
  const html = (): { readonly html?: string } =>
    loaded.status === 'ready' ? { html: draftHtml(draftTree(loaded.value.tokensOf(text))) } : {};
  const word = {
    text: 'Word (.docx)',
    note: 'With headings, tables and footnotes',
    onClick: () => void download('docx'),
  };
  return (
    <div class="row draft-actions">
      {fault.value !== null && (
        <span class="small fault" role="alert">
          {fault.value}
        </span>
      )}
      <CopyButton of={() => ({ text, ...html() })}>
        <Icon name="copy" /> Copy
      </CopyButton>
      <Menu
        disabled={isBusy.value}
        actions={[
          { text: 'Markdown (.md)', note: 'The draft as it is recorded', onClick: () => void download('md') },
          ...(ask === undefined ? [] : [word]),
          { text: 'Print or PDF', note: 'The title and the draft alone', onClick: print },
        ]}
      >
        <Icon name="download" /> Download
      </Menu>
    </div>
  );
}

/** The draft shown, or null if there is none. Those of several branches stand below their labels. */
function textIn(store: RunStore): string | null {
  const { value: snapshot } = store.snapshot;
  const drafts = snapshot === null ? [] : draftsIn(snapshot);
  if (drafts.length === 0) return null;
  return drafts
    .map(({ node, draft }) => (node === null ? draft : `## ${store.labelOf(node)}\n\n${draft}`))
    .join('\n\n');
}
