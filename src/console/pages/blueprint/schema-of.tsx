/** The field of a JSON Schema in the editor, with a sample of what it gives. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { JsonSchema } from '../../record/matter.js';
import { schemaIn } from '../../record/matter.js';
import { sampleText } from '../../record/schema-sample.js';
import { SchemaField } from '../../ui/schema-field.js';
import type { Editor } from './store.js';

interface SchemaOfProps {
  readonly editor: Editor;
  readonly label: string;
  readonly hint: string;
  /** The place of the field in the blueprint, by which the service names its faults. */
  readonly path: string;
  readonly value: JsonSchema | undefined;
  readonly onEdit: (schema: JsonSchema | undefined) => void;
}

/** The typed text stays while it is no schema or means the current one. */
export function SchemaOf({ editor, label, hint, path, value, onEdit }: SchemaOfProps) {
  const typed = useSignal<string | null>(null);
  const current = value === undefined ? '' : JSON.stringify(value, null, 2);
  return (
    <>
      <SchemaField
        label={label}
        hint={hint}
        value={typed.value !== null && isKept(typed.value, value) ? typed.value : current}
        fault={editor.faultAt(path)}
        readOnly={!editor.mayEdit}
        onType={(text) => {
          typed.value = text;
          const read = schemaIn(text);
          if ('schema' in read) onEdit(read.schema ?? undefined);
        }}
        onBlur={() => editor.endEdit()}
      />
      {value !== undefined && <Sample schema={value} />}
    </>
  );
}

function isKept(text: string, value: JsonSchema | undefined): boolean {
  const read = schemaIn(text);
  return 'fault' in read || JSON.stringify(read.schema) === JSON.stringify(value ?? null);
}

function Sample({ schema }: { readonly schema: JsonSchema }) {
  const text = useMemo(() => sampleText(schema), [schema]);
  return (
    <details class="more">
      <summary>Sample of the output</summary>
      <pre class="raw" role="group" aria-label="Sample of the output" tabIndex={0}>
        {text}
      </pre>
      <p class="small muted">Made by fixed rules, which know no patterns.</p>
    </details>
  );
}
