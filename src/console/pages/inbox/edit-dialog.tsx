/** The dialog that edits the state of a paused run, with a preview of the changes. */
import { Button, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { TextDiff } from '../../ui/text-diff.js';
import { changesIn } from './edit.js';
import { StateFields } from './state-fields.js';
import type { InboxStore } from './store.js';

export function EditDialog({ store }: { readonly store: InboxStore }) {
  const { value: edit } = store.edit;
  if (edit === null) return null;
  const { shown, typed, comment, faults } = edit;
  const changes = changesIn(shown, typed);
  const outcome = store.editedOutcome.value;
  const isBusy = store.isSending.value;
  const foot = (
    <>
      <Button onClick={() => store.closeEdit()}>Close</Button>
      <Button
        tone="primary"
        disabled={isBusy || outcome !== null || changes.length === 0}
        onClick={() => void store.sendEdit()}
      >
        Send edit
      </Button>
    </>
  );
  return (
    <Dialog title="Edit and continue" broad onClose={() => store.closeEdit()} foot={foot}>
      {outcome !== null && (
        <p class="notice wait" role="alert">
          Too late: {outcome} You can still copy your text.
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
        <section class="stack" aria-label="Changes">
          <h3>Changes</h3>
          {changes.length === 0 && <p class="muted">No changes yet.</p>}
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
