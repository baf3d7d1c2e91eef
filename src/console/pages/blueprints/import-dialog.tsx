/** Imports a blueprint from a file: shows what was read before it opens in the editor. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { navigate, pageUrl } from '../../shell/router.js';
import { toast } from '../../shell/toasts.js';
import { Button } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import type { Draft } from '../blueprint/draft.js';
import type { Imported } from '../blueprint/import.js';
import { importBlueprint } from '../blueprint/import.js';
import { countOf, excerpt } from '../../record/counts.js';

let opened: Draft | null = null;

/** The imported draft for the editor, once, or null if there is none. */
export function takeImported(): Draft | null {
  const draft = opened;
  opened = null;
  return draft;
}

/** Makes a draft the content of the editor at its next opening. */
export function openInEditor(draft: Draft): void {
  opened = draft;
}

export function ImportButton() {
  const input = useRef<HTMLInputElement>(null);
  const found = useSignal<Imported | null>(null);
  async function read(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    try {
      found.value = importBlueprint(await file.text(), file.name.replace(/\.[^.]*$/, ''));
    } catch (error) {
      toast(`“${file.name}” is not a council: ${error instanceof Error ? error.message : String(error)}`, 'bad');
    }
  }
  return (
    <>
      <input
        ref={input}
        class="unseen"
        type="file"
        accept=".json,application/json"
        aria-label="File to import"
        tabIndex={-1}
        onChange={({ currentTarget }) => {
          void read(currentTarget.files?.[0]);
          currentTarget.value = '';
        }}
      />
      <Button onClick={() => input.current?.click()}>Import a file</Button>
      {found.value !== null && <Preview imported={found.value} onClose={() => (found.value = null)} />}
    </>
  );
}

function Preview({
  imported: { draft, notes },
  onClose,
}: {
  readonly imported: Imported;
  readonly onClose: () => void;
}) {
  function open(): void {
    opened = draft;
    navigate(pageUrl(['blueprints', 'new']));
  }
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button tone="primary" onClick={open}>
        Open in editor
      </Button>
    </>
  );
  return (
    <Dialog title={`Import “${draft.name}”`} broad onClose={onClose} foot={foot}>
      <p class="muted">
        The file contains {countOf(draft.nodes.length, 'member')} and {countOf(draft.edges.length, 'edge')}. Save the
        council in the editor to keep it.
      </p>
      {notes.length > 0 && (
        <ul class="notice wait break import-notes marked" aria-label="Conversions">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <ul class="import-parts marked stack close" aria-label="Members">
        {draft.nodes.map(({ id, label = id, type, model, systemPrompt = '', tools }, at) => (
          <li key={at}>
            <strong class="break">{label}</strong>
            <span class="muted small break">
              {[type, model, tools?.webSearch === true && 'web search', tools?.pdfReader === true && 'PDF reader']
                .filter(Boolean)
                .join(', ')}
            </span>
            <p class="small break">{systemPrompt === '' ? 'No prompt' : excerpt(systemPrompt, 160)}</p>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
