/** The dialog that edits the state of a paused run, with a preview of the changes. */
import { Button, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { TextDiff } from '../../ui/text-diff.js';
import { changesIn } from './edit.js';
import type { Editing } from './editing.js';
import { StateFields } from './state-fields.js';

export function EditDialog({ editing }: { readonly editing: Editing }) {
  const { value: edit } = editing.edit;
  if (edit === null) return null;
  const { shown, typed, comment, faults, labelOf } = edit;
  const changes = changesIn(shown, typed, labelOf);
  const outcome = editing.outcome.value;
  const foot = (
    <>
      <Button onClick={() => editing.close()}>Close</Button>
      <Button tone="primary" disabled={outcome !== null || changes.length === 0} onClick={() => void editing.send()}>
        Send edit
      </Button>
    </>
  );
  return (
    <Dialog title="Edit and continue" broad onClose={() => editing.close()} foot={foot}>
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
          <StateFields edit={typed} faults={faults} labelOf={labelOf} onType={(change) => editing.type(change)} />
          <TextBox label="Comment" fault={faults.comment} value={comment} onType={(text) => editing.type({}, text)} />
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
