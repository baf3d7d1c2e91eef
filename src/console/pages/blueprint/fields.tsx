/** Fields of the editor. Each change applies at once; undo removes what was typed in one go. */
import { useSignal } from '@preact/signals';
import type { Approvals } from '../../../generated/schemas.js';
import type { TextBoxProps } from '../../ui/controls.js';
import { Button, Check, Select, TextBox } from '../../ui/controls.js';
import type { Change, Draft } from './draft.js';
import { changed } from './draft.js';
import type { Editor } from './store.js';

export interface TextFieldProps extends Omit<TextBoxProps, 'onType'> {
  readonly editor: Editor;
  readonly onEdit: (text: string) => void;
}

export function TextField({ editor, onEdit, ...box }: TextFieldProps) {
  function onType(text: string): void {
    onEdit(text);
    // Undo removes a word or a pasted text.
    if (/\s$/.test(text)) editor.endEdit();
  }
  return (
    <TextBox {...box} onType={onType} autocomplete="off" readOnly={!editor.mayEdit} onBlur={() => editor.endEdit()} />
  );
}

interface ParsedFieldProps<T> extends Omit<TextFieldProps, 'value' | 'onEdit' | 'rows'> {
  readonly value: T;
  readonly onEdit: (value: T) => void;
  /** The value, or null if the text is invalid. */
  readonly parse: (text: string) => { readonly value: T } | null;
  readonly format: (value: T) => string;
  /** The error for an invalid text. */
  readonly wanted: string;
}

/** A value as text. The typed text stays while it is invalid or means the current value. */
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

/** A number, or empty for the service's default. */
export function NumberField(props: PlainProps<number | undefined>) {
  return (
    <ParsedField
      {...props}
      wanted="Enter a number"
      format={(value) => (value === undefined ? '' : String(value))}
      parse={(text) => {
        const value = text.trim() === '' ? undefined : Number(text);
        return value === undefined || Number.isFinite(value) ? { value } : null;
      }}
    />
  );
}

/** Names separated by commas. */
export function NamesField(props: PlainProps<readonly string[]>) {
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

  readonly label: string;
  readonly value: Approvals | undefined;
  readonly onEdit: (value: Approvals | undefined, name?: string) => void;
}

const MINUTE_MS = 60_000;

/** The approval rule: who decides pauses, how many must agree, and the deadline. */
export function ApprovalsFields({ editor, label, value, onEdit }: ApprovalsFieldsProps) {
  const { by = [], not_by_starter: isNotStarter = false, quorum, deadline } = value ?? {};
  const set = (change: Change<Approvals>, name?: string): void => onEdit(changed(value ?? {}, change), name);
  return (
    <details class="more" open={value !== undefined}>
      <summary>Who approves</summary>
      <Check
        label={label}
        disabled={!editor.mayEdit}
        checked={value !== undefined}
        onChange={(checked) => onEdit(checked ? {} : undefined)}
      />
      {value !== undefined && (
        <>
          <NamesField
            editor={editor}
            value={by}
            label="Approvers"
            hint="Names of keys, or scopes such as scope:admin. Empty: every key that may approve"
            onEdit={(names) => set({ by: names.length === 0 ? undefined : [...names] }, 'by')}
          />
          <Check
            label="Exclude the keys that started the run or one it was forked from"
            disabled={!editor.mayEdit}
            checked={isNotStarter}
            onChange={(checked) => set({ not_by_starter: checked ? true : undefined })}
          />
          <NumberField
            editor={editor}
            value={quorum}
            label="Number of approvals"
            placeholder="1"
            onEdit={(count) => set({ quorum: count }, 'quorum')}
          />
          <NumberField
            editor={editor}
            value={deadline === undefined ? undefined : deadline.after_ms / MINUTE_MS}
            label="Deadline in minutes"
            placeholder="none"
            onEdit={(minutes) => {
              const after = minutes === undefined ? undefined : Math.round(minutes * MINUTE_MS);
              set(
                { deadline: after === undefined ? undefined : { after_ms: after, then: deadline?.then ?? 'reject' } },
                'deadline',
              );
            }}
          />
          {deadline !== undefined && (
            <WhenItPasses
              editor={editor}
              then={deadline.then}
              onEdit={(next, name) => set({ deadline: { ...deadline, then: next } }, name)}
            />
          )}
        </>
      )}
    </details>
  );
}

type Then = NonNullable<Approvals['deadline']>['then'];

interface WhenItPassesProps {
  readonly editor: Editor;
  readonly then: Then;
  readonly onEdit: (then: Then, name?: string) => void;
}

const OUTCOMES = [
  ['reject', 'Reject the run'],
  ['approve', 'Approve the run'],
  ['escalate', 'Ask other approvers'],
] as const;

/** Approvers after the deadline, before the user enters names. */
const ESCALATION = ['scope:admin'];

/** What happens when the deadline passes. */
function WhenItPasses({ editor, then, onEdit }: WhenItPassesProps) {
  return (
    <>
      <Select
        label="When the deadline passes"
        value={typeof then === 'string' ? then : 'escalate'}
        disabled={!editor.mayEdit}
        options={OUTCOMES}
        onChange={(next) => onEdit(next === 'reject' || next === 'approve' ? next : { escalate: ESCALATION })}
      />
      {typeof then === 'object' && (
        <NamesField
          editor={editor}
          value={then.escalate}
          label="Approvers after the deadline"
          fault={then.escalate.length === 0 ? 'Enter at least one approver.' : null}
          onEdit={(names) => onEdit({ escalate: [...names] }, 'escalate')}
        />
      )}
    </>
  );
}

export interface DeleteButtonProps {
  readonly editor: Editor;
  readonly what: string;
  /** The draft without the part. */
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
