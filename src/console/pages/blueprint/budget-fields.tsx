/** The budget of a blueprint: that of each run that names none. */
import type { Budget } from '../../../generated/schemas.js';
import { ON_EXCEEDED, isOnExceeded } from '../../record/budget.js';
import { Select } from '../../ui/controls.js';
import type { Change } from './draft.js';
import { changed } from './draft.js';
import { NumberField } from './fields.js';
import type { Editor } from './store.js';

export interface BudgetFieldsProps {
  readonly editor: Editor;
  readonly value: Budget | undefined;
  readonly onEdit: (value: Budget | undefined, name: string) => void;
}

export function BudgetFields({ editor, value, onEdit }: BudgetFieldsProps) {
  const { usd, tokens, on_exceeded: onExceeded = 'pause' } = value ?? {};
  function set(change: Change<Budget>): void {
    const next = changed(value ?? {}, change);
    // A budget has a limit.
    onEdit(next.usd === undefined && next.tokens === undefined ? undefined : next, 'budget');
  }
  return (
    <details class="more" open={value !== undefined}>
      <summary>Budget of each run</summary>
      <NumberField
        editor={editor}
        value={usd}
        label="At most, in US dollars"
        placeholder="no limit"
        onEdit={(dollars) => set({ usd: dollars })}
      />
      <NumberField
        editor={editor}
        value={tokens}
        label="At most, in tokens"
        placeholder="no limit"
        onEdit={(count) => set({ tokens: count })}
      />
      {value !== undefined && (
        <Select
          label="When the next call would pass it"
          value={onExceeded}
          disabled={!editor.mayEdit}
          options={ON_EXCEEDED}
          onChange={(end) => {
            if (isOnExceeded(end)) set({ on_exceeded: end });
          }}
        />
      )}
    </details>
  );
}
