/** Copies texts. Works without the network, so shared files use it too. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { Icon } from './icon.js';

/** A text for the clipboard, and the same as HTML for programs that take rich text. */
export interface Copied {
  readonly text: string;
  readonly html?: string;
}

export interface CopyButtonProps {
  /** What it copies, such as `Run id`: its accessible name. Default: the text of the button. */
  readonly name?: string;
  readonly of: () => Copied;
  /** The text of the button. Default: an icon. */
  readonly children?: ComponentChildren;
}

const SHOWN_MS = 2_000;

/** Says for 2 s that it has copied, or that it could not. */
export function CopyButton({ name, of, children }: CopyButtonProps) {
  const said = useSignal<string | null>(null);
  async function onClick(): Promise<void> {
    said.value = (await copy(of())) ? 'Copied' : 'Not copied';
    window.setTimeout(() => (said.value = null), SHOWN_MS);
  }
  return (
    <button
      type="button"
      class="button slim copy"
      aria-label={name && `${name}: copy`}
      title={name && `${name}: copy`}
      onClick={() => void onClick()}
    >
      {said.value ?? children ?? <Icon name="copy" />}
      <span class="unseen" role="status">
        {said.value}
      </span>
    </button>
  );
}

/** @returns whether the clipboard holds it */
async function copy({ text, html }: Copied): Promise<boolean> {
  // Browsers have a clipboard only over HTTPS or on localhost.
  if (!('clipboard' in navigator)) return copyByEvent({ text, html: html ?? null });
  try {
    if (html === undefined) await navigator.clipboard.writeText(text);
    else {
      const blob = (type: string, content: string): Blob => new Blob([content], { type });
      const item = { 'text/plain': blob('text/plain', text), 'text/html': blob('text/html', html) };
      await navigator.clipboard.write([new ClipboardItem(item)]);
    }
    return true;
  } catch {
    return copyByEvent({ text, html: html ?? null });
  }
}

/** Copies where a page has no clipboard. The call is deprecated, but every browser has it, and nothing else copies there. */
interface Copying {
  execCommand(command: 'copy'): boolean;
}

function copyByEvent({ text, html }: { readonly text: string; readonly html: string | null }): boolean {
  const fill = (event: ClipboardEvent): void => {
    event.preventDefault();
    event.clipboardData?.setData('text/plain', text);
    if (html !== null) event.clipboardData?.setData('text/html', html);
  };
  document.addEventListener('copy', fill);
  try {
    const page: Copying = document;
    return page.execCommand('copy');
  } finally {
    document.removeEventListener('copy', fill);
  }
}
