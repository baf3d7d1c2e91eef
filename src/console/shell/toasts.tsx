/** Short messages about what was just done, or could not be. */
import { signal } from '@preact/signals';
import { UnauthorizedError } from '../../client/errors.js';
import { Button } from '../ui/controls.js';
import { tellError } from '../ui/states.js';
import { onRefused } from './session.js';

type Tone = 'good' | 'bad' | 'wait' | 'plain';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: Tone;
}

const SHOWN_MS = 6_000;

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Shows a message; those that tell of a fault stay until they are taken away. */
export function toast(text: string, tone: Tone = 'plain'): void {
  lastId += 1;
  const id = lastId;
  toasts.value = [...toasts.value, { id, text, tone }].slice(-4);
  if (tone !== 'bad') window.setTimeout(() => dismiss(id), SHOWN_MS);
}

/** Shows why something failed, in plain words; where a session has ended, the form that asks for a key says so. */
export function toastError(error: unknown): void {
  if (error instanceof UnauthorizedError) return onRefused(error);
  toast(tellError(error), 'bad');
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** Where they stand; assistive technology reads them out. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone }) => (
        <div key={id} class={`toast ${tone}`}>
          <span class="grow break">{text}</span>
          <Button tone="plain" slim label="Dismiss the message" onClick={() => dismiss(id)}>
            ✕
          </Button>
        </div>
      ))}
    </div>
  );
}
