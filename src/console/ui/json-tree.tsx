/** A JSON value as a tree, whose closed parts render when the user opens them. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { countOf } from '../record/counts.js';
import { Button } from './controls.js';

/** Depth to which a tree is open at first, and the most entries of a part that is. */
const OPEN_DEPTH = 2;
const OPEN_ENTRIES = 20;
/** Entries shown at first, and added by “Show more”. */
const ENTRIES = 100;

export function JsonTree({ value, label }: { readonly value: unknown; readonly label: string }) {
  return (
    <div class="json-tree" role="group" aria-label={label}>
      <Value name={null} value={value} depth={0} />
    </div>
  );
}

interface ValueProps {
  /** Of a field, or the place in a list; null for the whole. */
  readonly name: string | number | null;
  readonly value: unknown;
  readonly depth: number;
}

function Value({ name, value, depth }: ValueProps) {
  if (typeof value === 'object' && value !== null) return <Parts {...{ name, depth }} of={value} />;
  return (
    <div class="json-leaf">
      <Name name={name} />
      <Leaf value={value} />
    </div>
  );
}

function Name({ name }: Pick<ValueProps, 'name'>) {
  if (name === null) return null;
  return (
    <>
      <span class="json-name">{typeof name === 'number' ? name + 1 : name}</span>{' '}
    </>
  );
}

function Leaf({ value }: { readonly value: unknown }) {
  if (typeof value === 'string') {
    return <span class="json-text">{value === '' ? <span class="muted">empty text</span> : value}</span>;
  }
  return <code class={`json-${value === null ? 'null' : typeof value}`}>{String(value)}</code>;
}

function Parts({ name, of, depth }: Omit<ValueProps, 'value'> & { readonly of: object }) {
  const isList = Array.isArray(of);
  const entries = Object.entries(of);
  const isOpen = useSignal(depth < OPEN_DEPTH && entries.length <= OPEN_ENTRIES);
  const shown = useSignal(ENTRIES);
  const count = isList ? countOf(entries.length, 'entry', 'entries') : countOf(entries.length, 'field');
  if (entries.length === 0) {
    return (
      <div class="json-leaf">
        <Name name={name} />
        <span class="muted small">{isList ? 'empty list' : 'no fields'}</span>
      </div>
    );
  }
  const parts: ComponentChildren = isOpen.value && (
    <ul>
      {entries.slice(0, shown.value).map(([key, value], at) => (
        <li key={key}>
          <Value name={isList ? at : key} value={value} depth={depth + 1} />
        </li>
      ))}
      {entries.length > shown.value && (
        <li>
          <Button slim onClick={() => (shown.value += ENTRIES)}>
            Show {Math.min(ENTRIES, entries.length - shown.value)} more
          </Button>
        </li>
      )}
    </ul>
  );
  return (
    <details open={isOpen.value} onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>
        <Name name={name} />
        <span class="muted small">{count}</span>
      </summary>
      {parts}
    </details>
  );
}
