/** A field for a JSON Schema, with its faults in place. */
import { useSignal } from '@preact/signals';
import { schemaIn } from '../record/matter.js';
import type { TextBoxProps } from './controls.js';
import { TextBox } from './controls.js';

interface SchemaFieldProps extends Pick<TextBoxProps, 'label' | 'hint' | 'value' | 'onType' | 'onBlur' | 'readOnly'> {
  /** Why the service refuses the schema, or null. */
  readonly fault: string | null;
  /** Whether the user has tried to send it: then the field shows a fault before the user leaves it. */
  readonly isTried?: boolean;
}

const EXAMPLE = `{
  "type": "object",
  "properties": {"fair": {"type": "boolean"}},
  "required": ["fair"]
}`;

export function SchemaField({ fault, isTried = false, value, onBlur, ...field }: SchemaFieldProps) {
  const isLeft = useSignal(value !== '');
  const read = schemaIn(value);
  const own = 'fault' in read && (isLeft.value || isTried) ? read.fault : null;
  return (
    <TextBox
      {...field}
      value={value}
      fault={own ?? fault}
      rows={Math.min(14, Math.max(6, value.split('\n').length))}
      look="mono schema"
      placeholder={EXAMPLE}
      spellcheck={false}
      onBlur={() => {
        isLeft.value = true;
        onBlur?.();
      }}
    />
  );
}
