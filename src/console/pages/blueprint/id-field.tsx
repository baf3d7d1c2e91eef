/** The id of a node or member. */
import { useSignal } from '@preact/signals';
import type { TextBoxProps } from '../../ui/controls.js';
import { TextBox } from '../../ui/controls.js';
import type { Editor } from './store.js';

export interface IdFieldProps extends Pick<TextBoxProps, 'label' | 'hint' | 'fault'> {
  readonly editor: Editor;
  readonly value: string;
  /** Why it cannot be the id, or null. */
  readonly faultOf: (id: string) => string | null;
  readonly onEdit: (id: string) => void;
}

/**
 * Changes the id only when the user leaves the field, because the beginning of an id could be another member's id. An
 * unusable id stays in the field with its fault, and Escape restores the old one.
 */
export function IdField({ editor, value, faultOf, onEdit, fault = null, ...box }: IdFieldProps) {
  const typed = useSignal<string | null>(null);
  const id = typed.value ?? value;
  const wrong = typed.value === null ? null : faultOf(id);
  function done(): void {
    if (wrong !== null) return;
    typed.value = null;
    if (id !== value) onEdit(id);
  }
  return (
    <TextBox
      {...box}
      fault={wrong === null ? fault : `${wrong} The id is still “${value}”.`}
      look="mono"
      value={id}
      maxLength={128}
      autocomplete="off"
      readOnly={!editor.mayEdit}
      onType={(text) => (typed.value = text)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') done();
        if (event.key === 'Escape') typed.value = null;
      }}
      onBlur={done}
    />
  );
}
