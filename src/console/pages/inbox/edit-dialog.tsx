/** The edit of a paused run's state: its fields, and beside them what it changes, before it is sent. */
import { Button, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { TextDiff } from '../../ui/text-diff.js';
import { changesIn } from './edit.js';
import { StateFields } from './state-fields.js';
import type { InboxStore } from './store.js';

/** Open while an edit is. */
export function EditDialog({ store }: { readonly store: InboxStore }) {
  const { value: edit } = store.edit;
  if (edit === null) return null;
  const { shown, typed, comment, faults } = edit;
  const changes = changesIn(shown, typed);
  const become = store.becameOfEdited.value;
  const isBusy = store.isSending.value;
  const foot = (
    <>
      <Button onClick={() => store.closeEdit()}>Close</Button>
      <Button
        tone="primary"
        disabled={isBusy || become !== null || changes.length === 0}
        onClick={() => void store.sendEdit()}
      >
        Send the edit
      </Button>
    </>
  );
  return (
    <Dialog title="Edit, then go on" broad onClose={() => store.closeEdit()} foot={foot}>
      {become !== null && (
        <p class="notice wait" role="alert">
          Too late: {become} What you typed is still here to be copied.
        </p>
      )}
      {faults[''] !== undefined && (
        <p class="notice bad" role="alert">
          {faults['']}
        </p>
      )}
      <div class="edit">
        <div class="stack">
          <StateFields edit={typed} faults={faults} onType={(change) => store.type(change)} />
          <TextBox label="Comment" fault={faults.comment} value={comment} onType={(text) => store.type({}, text)} />
        </div>
        <section class="stack" aria-label="What changes">
          <h3>What changes</h3>
          {changes.length === 0 && <p class="muted">Nothing yet.</p>}
          {changes.map(({ label, before, after }) => (
            <div key={label}>
              <h4 class="small muted">{label}</h4>
              <TextDiff before={before} after={after} />
            </div>
          ))}
        </section>
      </div>
    </Dialog>
  );
}
