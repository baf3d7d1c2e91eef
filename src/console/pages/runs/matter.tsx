/** What a run works on and gives, in the form that starts it: material, documents and the schema of its output. */
import { useComputed, useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { utf8Bytes } from '../../../graph/limits.js';
import { countOf } from '../../record/counts.js';
import type { MaterialFile } from '../../record/matter.js';
import { materialFault, materialOf, readMaterial, schemaIn, sizeOfMost, sizeText } from '../../record/matter.js';
import { Button, TextBox } from '../../ui/controls.js';
import { DocumentChoice } from '../../ui/document-choice.js';
import { useDroppedFiles } from '../../ui/dropped-files.js';
import { SchemaField } from '../../ui/schema-field.js';
import type { MatterFault } from './matter-fault.js';
import { matterFaultOf, textAt } from './matter-fault.js';
import type { Wanted } from './start-run.js';

export type Given = Pick<Wanted, 'material' | 'documents' | 'outputSchema'>;

export type Matter = ReturnType<typeof useMatter>;

/** The state of the fields. */
export function useMatter() {
  const pasted = useSignal('');
  const files = useSignal<readonly MaterialFile[]>([]);
  /** Why some of the last files were not added. */
  const refused = useSignal<readonly string[]>([]);
  const documents = useSignal<readonly string[]>([]);
  const schema = useSignal('');
  const isOpen = useSignal(false);
  const isTried = useSignal(false);
  const fault = useSignal<MatterFault | null>(null);
  /** Counts refused starts: the focus moves to the first faulty field. */
  const refusals = useSignal(0);
  const material = useComputed(() => materialOf(pasted.value, files.value));
  const bytes = useComputed(() => utf8Bytes(material.value));

  const add = useCallback((added: Iterable<File>): void => {
    isOpen.value = true;
    void Promise.all([...added].map(readMaterial)).then((read) => {
      files.value = [...files.value, ...read.flatMap((each) => ('text' in each ? [each] : []))];
      refused.value = read.flatMap((each) => ('fault' in each ? [each.fault] : []));
    });
  }, []);

  /** Sends what the fields hold, or opens them at what cannot be sent. @throws other errors of `start` */
  async function send(start: (given: Given) => Promise<void>): Promise<void> {
    const read = schemaIn(schema.value);
    const refuse = (): void => {
      isOpen.value = true;
      refusals.value += 1;
    };
    isTried.value = true;
    fault.value = null;
    if ('fault' in read || materialFault(bytes.value) !== null) return refuse();
    try {
      await start({
        ...(material.value !== '' && { material: material.value }),
        ...(documents.value.length > 0 && { documents: documents.value }),
        ...(read.schema !== null && { outputSchema: read.schema }),
      });
    } catch (error) {
      fault.value = matterFaultOf(error);
      if (fault.value === null) throw error;
      refuse();
    }
  }

  return { pasted, files, refused, documents, schema, isOpen, isTried, fault, refusals, bytes, add, send };
}

/** Closed until the user opens it or drops files; its head says what the fields hold. */
export function MatterFields({ of: matter }: { readonly of: Matter }) {
  const { isOpen, documents, schema, fault, refusals } = matter;
  const element = useRef<HTMLDetailsElement>(null);
  useDroppedFiles(matter.add);
  useEffect(() => {
    if (refusals.value > 0) element.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [refusals.value]);
  const held = heldIn(matter);
  return (
    <details
      ref={element}
      class="start-part"
      open={isOpen.value}
      onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}
    >
      <summary>
        Material, documents, exact output
        {held === '' ? <span class="muted"> (optional)</span> : <span class="held"> {held}</span>}
      </summary>
      {isOpen.value && (
        <div class="stack">
          <MaterialFields matter={matter} />
          <DocumentChoice
            chosen={documents.value}
            onChoose={(chosen) => (documents.value = chosen)}
            without="The PDF reader searches the documents of the council, or all."
            fault={textAt(fault.value, 'documents')}
          />
          <SchemaField
            label="JSON Schema of the output"
            hint="The run also gives its result as JSON that is valid by this schema."
            value={schema.value}
            onType={(text) => {
              schema.value = text;
              if (fault.value?.at === 'output_schema') fault.value = null;
            }}
            isTried={matter.isTried.value}
            fault={textAt(fault.value, 'output_schema')}
          />
        </div>
      )}
    </details>
  );
}

/** What the fields hold, in short. */
function heldIn({ bytes, files, documents, schema }: Matter): string {
  const parts = [
    bytes.value > 0 &&
      sizeText(bytes.value) + (files.value.length > 0 ? ` in ${countOf(files.value.length, 'file')}` : ''),
    documents.value.length > 0 && countOf(documents.value.length, 'document'),
    schema.value.trim() !== '' && 'output schema',
  ];
  return parts.filter((part) => part !== false).join(' · ');
}

function MaterialFields({ matter: { pasted, files, refused, bytes, fault, add } }: { readonly matter: Matter }) {
  const input = useRef<HTMLInputElement>(null);
  const refusal = materialFault(bytes.value) ?? textAt(fault.value, 'material');
  return (
    <div class="stack close">
      <TextBox
        label="Material"
        hint={<span class="numeric">{sizeOfMost(bytes.value)}</span>}
        rows={5}
        placeholder="The text that the council works on: a contract, a paper, a change to a program…"
        value={pasted.value}
        fault={refusal}
        spellcheck={false}
        onType={(text) => {
          pasted.value = text;
          fault.value = null;
        }}
      />
      <div class="row">
        <Button slim onClick={() => input.current?.click()}>
          Add text files
        </Button>
        <span class="small muted by-mouse">or drop them anywhere on this page</span>
        <input
          ref={input}
          hidden
          type="file"
          multiple
          aria-label="Text files"
          onChange={({ currentTarget }) => {
            add(currentTarget.files ?? []);
            // So that the user can choose the same file again.
            currentTarget.value = '';
          }}
        />
      </div>
      {files.value.length > 0 && (
        <ul class="choices" aria-label="Files of the material">
          {files.value.map(({ name, text }, at) => (
            <li key={`${at} ${name}`}>
              <span class="break">{name}</span>
              <span class="small muted numeric">{sizeText(utf8Bytes(text))}</span>
              <Button
                slim
                tone="plain"
                label={`Remove ${name}`}
                onClick={() => (files.value = files.value.toSpliced(at, 1))}
              >
                ✕
              </Button>
            </li>
          ))}
        </ul>
      )}
      {refused.value.length > 0 && (
        <ul class="fault" role="alert">
          {refused.value.map((text) => (
            <li key={text} class="break">
              {text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
