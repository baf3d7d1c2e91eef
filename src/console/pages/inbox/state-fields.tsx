/** The editable fields of a run's state. */
import { Button, Select, TextBox } from '../../ui/controls.js';
import type { Edit, Faults, LabelOf } from './edit.js';
import { draftLabel } from './edit.js';

export interface StateFieldsProps {
  readonly edit: Edit;
  readonly faults: Faults;
  readonly labelOf: LabelOf;
  readonly onType: (change: Partial<Edit>) => void;
}

export function StateFields({ edit, faults, labelOf, onType }: StateFieldsProps) {
  const { drafts } = edit;
  return (
    <>
      {drafts.map(({ node, text }, index) => (
        <TextBox
          key={node}
          label={draftLabel(node, labelOf)}
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
        value={edit.topic}
        onType={(topic) => onType({ topic })}
      />
      <div class="numbers">
        <TextBox label="Score" fault={faults.critic_score} value={edit.score} onType={(score) => onType({ score })} />
        <TextBox
          label="Iteration"
          fault={faults.iteration_count}
          value={edit.iterations}
          onType={(iterations) => onType({ iterations })}
        />
        <Select
          label="Route"
          fault={faults.route_decision ?? null}
          value={edit.route}
          options={[
            ['', 'none'],
            ['approve', 'approve'],
            ['rework', 'rework'],
          ]}
          onChange={(route) => onType({ route })}
        />
      </div>
      <Feedback feedback={edit.feedback} faults={faults} onType={(feedback) => onType({ feedback })} />
    </>
  );
}

/** One field per feedback, oldest first. */
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
