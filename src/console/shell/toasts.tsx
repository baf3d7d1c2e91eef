/** Short messages about the result of an action. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { UnauthorizedError } from '../../client/errors.js';
import { Button } from '../ui/controls.js';
import { errorText } from '../ui/states.js';
import { lockIfUnauthorized } from './session.js';

type Tone = 'good' | 'bad' | 'wait' | 'plain';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: Tone;
}

const SHOWN_MS = 6_000;

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Shows a message. It disappears after 6 s, except in the tone `bad`. */
export function toast(text: string, tone: Tone = 'plain'): void {
  lastId += 1;
  const id = lastId;
  toasts.value = [...toasts.value, { id, text, tone }].slice(-4);
  if (tone !== 'bad') window.setTimeout(() => dismiss(id), SHOWN_MS);
}

/** Shows why an action failed, or the sign-in form if the session has ended. @param what did not happen */
export function toastError(error: unknown, what?: string): void {
  if (error instanceof UnauthorizedError) lockIfUnauthorized(error);
  if (what !== undefined) toast(`${what}. ${errorText(error)}`, 'bad');
  else if (!(error instanceof UnauthorizedError)) toast(errorText(error), 'bad');
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

export function Toasts({ children }: { readonly children?: ComponentChildren }) {
  return (
    <div class="toasts" role="status" aria-live="polite" aria-atomic="false">
      {children}
      {toasts.value.map(({ id, text, tone }) => (
        <div key={id} class={`toast ${tone}`}>
          <span class="grow break">{text}</span>
          <Button tone="plain" slim label="Dismiss message" onClick={() => dismiss(id)}>
            ✕
          </Button>
        </div>
      ))}
    </div>
  );
}
