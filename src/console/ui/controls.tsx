/** Buttons, fields and badges, each with an accessible name. */
import type { ComponentChildren } from 'preact';
import { h } from 'preact';
import { useId } from 'preact/hooks';
import type { Outcome, RunStatus } from '../record/outcome.js';
import { outcomeOf } from '../record/outcome.js';
import { Icon } from './icon.js';

export interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onClick?: (event: MouseEvent) => void;
  readonly tone?: 'primary' | 'danger' | 'plain' | 'normal';
  readonly slim?: boolean;
  /** The accessible name of a button without text. */
  readonly label?: string;
  readonly type?: 'button' | 'submit';
  readonly disabled?: boolean;
  /** The state of a toggle button; absent for other buttons. */
  readonly pressed?: boolean;
  readonly title?: string | undefined;
  /** The keyboard shortcut, shown beside the text. */
  readonly shortcut?: string | undefined;
}

export function Button({ children, onClick, tone = 'normal', slim = false, type = 'button', ...more }: ButtonProps) {
  return (
    <button
      type={type}
      class={`button ${tone}${slim ? ' slim' : ''}`}
      onClick={onClick}
      aria-label={more.label}
      aria-pressed={more.pressed}
      disabled={more.disabled}
      title={more.title ?? more.label}
      aria-keyshortcuts={more.shortcut}
    >
      {children}
      {more.shortcut !== undefined && <kbd aria-hidden="true">{more.shortcut}</kbd>}
    </button>
  );
}

/** Attributes that connect a control with its label, hint and fault. */
export interface FieldControl {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': 'true' | undefined;
}

export interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly fault?: string | null | undefined;
  /** Whether only assistive technology gets the label. */
  readonly isLabelUnseen?: boolean | undefined;
  readonly children: (control: FieldControl) => ComponentChildren;
}

/** A control with its label: `<Field label="Topic">{(control) => <input {...control} class="input" />}</Field>`. */
export function Field({ label, hint, fault = null, isLabelUnseen = false, children }: FieldProps) {
  const id = useId();
  const described = [hint === undefined ? '' : `${id}-hint`, fault === null ? '' : `${id}-fault`].join(' ').trim();
  const control: FieldControl = {
    id,
    'aria-describedby': described === '' ? undefined : described,
    'aria-invalid': fault === null ? undefined : 'true',
  };
  return (
    <div class="field">
      <label class={isLabelUnseen ? 'unseen' : 'label'} for={id}>
        {label}
      </label>
      {children(control)}
      {hint !== undefined && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {fault !== null && (
        <span class="fault" id={`${id}-fault`} role="alert">
          {fault}
        </span>
      )}
    </div>
  );
}

export interface SelectProps extends Omit<FieldProps, 'children'> {
  readonly value: string | number;
  /** Values with their texts. */
  readonly options: readonly (readonly [value: string | number, text: string])[];
  readonly onChange: (value: string) => void;
  readonly disabled?: boolean;
}

export function Select({ value, options, onChange, disabled, ...field }: SelectProps) {
  return (
    <Field {...field}>
      {(control) => (
        <select
          {...control}
          value={value}
          disabled={disabled}
          class="input"
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {options.map(([each, text], at) => (
            <option key={at} value={each}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export interface TextBoxProps extends Omit<FieldProps, 'children'> {
  readonly value: string;
  readonly onType: (text: string) => void;
  /** Lines. Default: 1, a single-line field. */
  readonly rows?: number;
  /** More CSS classes, such as `mono`. */
  readonly look?: string;
  readonly type?: 'text' | 'search' | 'password' | 'date' | 'number';
  readonly inputMode?: 'decimal' | 'numeric';
  readonly placeholder?: string | undefined;
  readonly maxLength?: number;
  readonly min?: number;
  readonly max?: number;
  readonly step?: 'any';
  readonly autocomplete?: 'off' | 'current-password';
  /** The id of a `<datalist>` with suggestions. */
  readonly list?: string;
  readonly spellcheck?: boolean;
  readonly readOnly?: boolean;
  readonly onBlur?: () => void;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  /** Receives the element. */
  readonly element?: (element: HTMLInputElement | HTMLTextAreaElement | null) => void;
}

export function TextBox(props: TextBoxProps) {
  const { label, hint, fault, isLabelUnseen, onType, type = 'text', rows = 1, look = '', ...others } = props;
  const { element, ...more } = others;
  const box = {
    ...more,
    class: `input ${look}`,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) => onType(event.currentTarget.value),
    ...(element !== undefined && { ref: element }),
  };
  return (
    <Field {...{ label, hint, fault, isLabelUnseen }}>
      {(control) => {
        if (rows > 1) return <textarea {...control} {...box} rows={rows} />;
        // JSX would need a literal `type`.
        return h('input', { ...control, ...box, type });
      }}
    </Field>
  );
}

export interface CheckProps {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}

export function Check({ label, checked, onChange, disabled }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

export function Segments<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly text: string }[];
  readonly onChange: (value: T) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}

export type Tone = 'good' | 'bad' | 'wait' | 'busy' | 'plain';

export function Badge({
  tone = 'plain',
  flat = false,
  children,
}: {
  readonly tone?: Tone;
  readonly flat?: boolean;
  readonly children: ComponentChildren;
}) {
  return <span class={`badge ${tone}${flat ? ' flat' : ''}`}>{children}</span>;
}

const OUTCOME_TONES: Readonly<Record<Outcome, Tone>> = {
  pending: 'plain',
  running: 'busy',
  waiting: 'wait',
  completed: 'good',
  failed: 'bad',
  rejected: 'bad',
  cancelled: 'plain',
};

/** @param error of a failed run; tells a rejected or cancelled one from the others */
export function Status({ status, error = null }: { readonly status: RunStatus; readonly error?: string | null }) {
  const outcome = outcomeOf(status, error);
  return (
    <span class={`badge flat status ${OUTCOME_TONES[outcome]}`}>
      <Icon name={outcome} />
      {outcome}
    </span>
  );
}

/** A list of names and values. @param look CSS classes */
export function Facts({ facts, look = 'facts' }: { readonly facts: readonly Fact[]; readonly look?: string }) {
  return (
    <dl class={look}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt class="muted">{name}</dt>
          <dd class="break">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];
