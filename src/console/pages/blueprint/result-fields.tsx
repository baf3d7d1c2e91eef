/** How many answers of a panel, rank or jury are enough, and what becomes of them. */
import type { Aggregate, BlueprintNode } from '../../../generated/schemas.js';
import { Select } from '../../ui/controls.js';
import type { Change } from './draft.js';
import { NumberField } from './fields.js';
import type { ShownRole } from '../../record/page-words.js';
import { uses } from './members.js';
import type { Editor } from './store.js';

const AGGREGATES = {
  median: 'Median: the middle score',
  lowest: 'Lowest score',
  mean: 'Mean of all scores',
} as const satisfies Record<Aggregate, string>;

export interface MemberFieldsProps {
  readonly editor: Editor;
  readonly node: BlueprintNode;
  readonly at: number;
  readonly role: ShownRole;
  readonly set: (change: Change<BlueprintNode>, name?: string) => void;
}

export function ResultFields({ editor, node, at, role, set }: MemberFieldsProps) {
  const { quorum, graceMs, keep, aggregate = 'median' } = node;
  const shared = (field: string) => ({ editor, fault: editor.faultAt(`nodes[${at}].${field}`) });
  return (
    <>
      {uses(role, 'quorum') && (
        <NumberField
          {...shared('quorum')}
          label="Answers that are enough"
          placeholder="Those of all members"
          value={quorum}
          onEdit={(value) => set({ quorum: value }, 'quorum')}
        />
      )}
      {uses(role, 'graceMs') && (
        <NumberField
          {...shared('graceMs')}
          label="Seconds for the other members after that"
          placeholder="30"
          value={graceMs === undefined ? undefined : graceMs / 1_000}
          onEdit={(value) => set({ graceMs: value === undefined ? undefined : Math.round(value * 1_000) }, 'graceMs')}
        />
      )}
      {uses(role, 'keep') && (
        <NumberField
          {...shared('keep')}
          label="Best answers that stay"
          placeholder="All"
          value={keep}
          onEdit={(value) => set({ keep: value }, 'keep')}
        />
      )}
      {uses(role, 'aggregate') && (
        <Select
          label="Score of the jury"
          fault={editor.faultAt(`nodes[${at}].aggregate`)}
          disabled={!editor.mayEdit}
          value={aggregate}
          options={Object.entries(AGGREGATES)}
          onChange={(value) => isAggregate(value) && set({ aggregate: value })}
        />
      )}
    </>
  );
}

function isAggregate(text: string): text is Aggregate {
  return text in AGGREGATES;
}
