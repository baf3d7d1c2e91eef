/** Fields of the editor: each edit counts at once, and what is typed in one go is taken back in one go. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import type { Approvals } from '../../../generated/schemas.js';
import { Button, Check, Field } from '../../ui/controls.js';
import type { Change, Draft } from './draft.js';
import { changed } from './draft.js';
import type { Editor } from './store.js';

export interface TextFieldProps {
  readonly editor: Editor;
  readonly label: string;
  readonly value: string;
  readonly onEdit: (text: string) => void;
  /** Lines; default: one, which cannot be broken. */
  readonly rows?: number;
  readonly hint?: ComponentChildren;
  readonly fault?: string | null;
  readonly placeholder?: string | undefined;
  readonly isMono?: boolean;
  /** Texts that are proposed. */
  readonly proposals?: readonly string[];
  readonly element?: RefObject<HTMLInputElement | null>;
}

export function TextField({ editor, label, value, onEdit, rows = 1, hint, fault = null, ...more }: TextFieldProps) {
  const { placeholder, isMono = false, proposals = [], element } = more;
  const listening = {
    class: `input${isMono ? ' mono' : ''}`,
    readOnly: !editor.mayEdit,
    onInput({ currentTarget: { value: text } }: { readonly currentTarget: { readonly value: string } }): void {
      onEdit(text);
      // A word, or a pasted piece, is what is taken back.
      if (/\s$/.test(text)) editor.seal();
    },
    onBlur: () => editor.seal(),
  };
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(control) =>
        rows > 1 ? (
          <textarea {...control} {...listening} {...{ rows, value, placeholder }} />
        ) : (
          <>
            <input
              {...control}
              {...listening}
              {...{ value, placeholder }}
              ref={element ?? null}
              autocomplete="off"
              list={proposals.length === 0 ? undefined : `${control.id}-list`}
            />
            {proposals.length > 0 && (
              <datalist id={`${control.id}-list`}>
                {proposals.map((each) => (
                  <option key={each} value={each} />
                ))}
              </datalist>
            )}
          </>
        )
      }
    </Field>
  );
}

interface ParsedFieldProps<T> extends Omit<TextFieldProps, 'value' | 'onEdit' | 'rows'> {
  readonly value: T;
  readonly onEdit: (value: T) => void;
  /** Null: the text says nothing that can be used. */
  readonly parse: (text: string) => { readonly value: T } | null;
  readonly format: (value: T) => string;
  /** What is told of a text that cannot be used. */
  readonly wanted: string;
}

/** A value written as text: the text stays as it is typed for as long as it says what the value is. */
function ParsedField<T>({ value, onEdit, parse, format, wanted, fault = null, ...field }: ParsedFieldProps<T>) {
  const typed = useSignal<string | null>(null);
  const read = typed.value === null ? null : parse(typed.value);
  const isUnread = typed.value !== null && read === null;
  const isSame = read !== null && format(read.value) === format(value);
  return (
    <TextField
      {...field}
      value={typed.value !== null && (isUnread || isSame) ? typed.value : format(value)}
      fault={isUnread ? wanted : fault}
      onEdit={(text) => {
        typed.value = text;
        const next = parse(text);
        if (next !== null) onEdit(next.value);
      }}
    />
  );
}

type PlainProps<T> = Omit<ParsedFieldProps<T>, 'parse' | 'format' | 'wanted'>;

/** A number; empty: it is left to the service. */
export function NumberField(props: PlainProps<number | undefined>) {
  return (
    <ParsedField
      {...props}
      wanted="A number is wanted"
      format={(value) => (value === undefined ? '' : String(value))}
      parse={(text) => {
        const value = text.trim() === '' ? undefined : Number(text);
        return value === undefined || Number.isFinite(value) ? { value } : null;
      }}
    />
  );
}

/** Names with commas between them; empty: there are none. */
function NamesField(props: PlainProps<readonly string[]>) {
  return (
    <ParsedField
      {...props}
      wanted=""
      format={(names) => names.join(', ')}
      parse={(text) => ({
        value: text
          .split(',')
          .map((name) => name.trim())
          .filter((name) => name !== ''),
      })}
    />
  );
}

export interface ApprovalsFieldsProps {
  readonly editor: Editor;
  /** What is said when there is no rule. */
  readonly label: string;
  readonly value: Approvals | undefined;
  readonly onEdit: (value: Approvals | undefined, name?: string) => void;
}

const MINUTE_MS = 60_000;

/** Who decides pauses of God Mode, how many of them, and until when. */
export function ApprovalsFields({ editor, label, value, onEdit }: ApprovalsFieldsProps) {
  const { by = [], not_by_starter: isNotStarter = false, quorum, deadline } = value ?? {};
  const then = deadline?.then;
  const set = (change: Change<Approvals>, name?: string): void => onEdit(changed(value ?? {}, change), name);
  return (
    <details class="more" open={value !== undefined}>
      <summary>Who approves</summary>
      <Check
        {...{ label, disabled: !editor.mayEdit }}
        checked={value !== undefined}
        onChange={(checked) => onEdit(checked ? {} : undefined)}
      />
      {value !== undefined && (
        <>
          <NamesField
            {...{ editor, value: by }}
            label="Approvers"
            hint="Names of keys, or scopes such as scope:admin; empty: whoever may approve"
            onEdit={(names) => set({ by: names.length === 0 ? undefined : [...names] }, 'by')}
          />
          <Check
            {...{ label: 'Not whoever started the run', disabled: !editor.mayEdit }}
            checked={isNotStarter}
            onChange={(checked) => set({ not_by_starter: checked ? true : undefined })}
          />
          <NumberField
            {...{ editor, value: quorum }}
            label="How many must agree"
            placeholder="1"
            onEdit={(count) => set({ quorum: count }, 'quorum')}
          />
          <NumberField
            {...{ editor, value: deadline === undefined ? undefined : deadline.after_ms / MINUTE_MS }}
            label="Deadline in minutes"
            placeholder="none"
            onEdit={(minutes) => {
              const after = minutes === undefined ? undefined : Math.round(minutes * MINUTE_MS);
              set(
                { deadline: after === undefined ? undefined : { after_ms: after, then: then ?? 'reject' } },
                'deadline',
              );
            }}
          />
          {deadline !== undefined && typeof then === 'string' && (
            <Check
              {...{ label: 'Approved, rather than rejected, when it passes', disabled: !editor.mayEdit }}
              checked={then === 'approve'}
              onChange={(checked) => set({ deadline: { ...deadline, then: checked ? 'approve' : 'reject' } })}
            />
          )}
          {typeof then === 'object' && (
            <p class="small muted break">When it passes, {then.escalate.join(', ')} decide.</p>
          )}
        </>
      )}
    </details>
  );
}

export interface DeleteButtonProps {
  readonly editor: Editor;
  readonly what: string;
  /** The draft without it. */
  readonly to: Draft;
}

export function DeleteButton({ editor, what, to }: DeleteButtonProps) {
  if (!editor.mayEdit) return null;
  function remove(): void {
    editor.select(null);
    editor.edit(to);
  }
  return (
    <div class="row">
      <Button tone="danger" slim onClick={remove}>
        Delete this {what}
      </Button>
    </div>
  );
}
