/** The edit of a paused run's state: its fields, and beside them what it changes, before it is sent. */
import { Button, Select, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { TextDiff } from '../../ui/text-diff.js';
import type { Edit, Faults } from './edit.js';
import { changesIn, draftLabel } from './edit.js';
import type { InboxStore, OpenEdit } from './store.js';

/** Open while an edit is. */
export function EditDialog({ store }: { readonly store: InboxStore }) {
  const { value: edit } = store.edit;
  if (edit === null) return null;
  const { shown, typed, faults } = edit;
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
        <Fields edit={edit} onType={(change) => store.type(change)} />
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

function Fields({
  edit: { typed, faults },
  onType,
}: {
  readonly edit: OpenEdit;
  readonly onType: (change: Partial<Edit>) => void;
}) {
  const { drafts } = typed;
  return (
    <div class="edit-fields">
      {drafts.map(({ node, text }, index) => (
        <TextBox
          key={node}
          label={draftLabel(node)}
          fault={faults[node === null ? 'current_draft' : `branches ${node}`]}
          rows={drafts.length > 1 ? 6 : 10}
          value={text}
          onType={(typedText) => onType({ drafts: drafts.with(index, { node, text: typedText }) })}
        />
      ))}
      <TextBox
        label="Topic"
        fault={faults.input_topic}
        rows={2}
        value={typed.topic}
        onType={(topic) => onType({ topic })}
      />
      <div class="numbers">
        <TextBox label="Score" fault={faults.critic_score} value={typed.score} onType={(score) => onType({ score })} />
        <TextBox
          label="Iteration"
          fault={faults.iteration_count}
          value={typed.iterations}
          onType={(iterations) => onType({ iterations })}
        />
        <Select
          label="Route"
          fault={faults.route_decision ?? null}
          value={typed.route}
          options={[
            ['', 'none'],
            ['approve', 'approve'],
            ['rework', 'rework'],
          ]}
          onChange={(route) => onType({ route })}
        />
      </div>
      <Feedback feedback={typed.feedback} faults={faults} onType={(feedback) => onType({ feedback })} />
      <TextBox label="Comment" fault={faults.comment} value={typed.comment} onType={(comment) => onType({ comment })} />
    </div>
  );
}

/** One field for each word of a critic, oldest first. */
function Feedback({
  feedback,
  faults,
  onType,
}: {
  readonly feedback: readonly string[];
  readonly faults: Faults;
  readonly onType: (feedback: readonly string[]) => void;
}) {
  return (
    <div class="stack">
      {feedback.map((text, index) => (
        <div key={index} class="feedback-field">
          <TextBox
            label={`Feedback ${index + 1}`}
            fault={faults[`feedback ${index}`]}
            rows={2}
            value={text}
            onType={(typed) => onType(feedback.with(index, typed))}
          />
          <Button
            slim
            tone="plain"
            label={`Remove feedback ${index + 1}`}
            onClick={() => onType(feedback.toSpliced(index, 1))}
          >
            ✕
          </Button>
        </div>
      ))}
      <div class="row">
        <Button slim onClick={() => onType([...feedback, ''])}>
          Add feedback
        </Button>
      </div>
    </div>
  );
}
