/** A modal dialog: the browser's own, which keeps the focus and closes with Escape. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Button } from './controls.js';
import { ServiceDown } from './states.js';

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly broad?: boolean;
  readonly children: ComponentChildren;
  /** Its buttons. */
  readonly foot?: ComponentChildren;
}

/** Open while it is rendered. */
export function Dialog({ title, onClose, broad = false, children, foot }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    // Shows the beginning of a long text.
    const { activeElement: first } = document;
    if (first instanceof HTMLTextAreaElement) {
      first.setSelectionRange(0, 0);
      first.scrollTop = 0;
    }
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog${broad ? ' broad' : ''}`}
      aria-labelledby={id}
      onCancel={(event) => {
        // Closes at once: the browser's `close` event comes after the next key.
        if (!event.cancelable) return;
        event.preventDefault();
        onClose();
      }}
      onClose={onClose}
    >
      <ServiceDown />
      <div class="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
        {foot !== undefined && <div class="dialog-foot">{foot}</div>}
      </div>
    </dialog>
  );
}

export interface ConfirmProps extends Omit<DialogProps, 'broad' | 'foot'> {
  /** Texts of the two buttons: to confirm, and not to. */
  readonly verb: string;
  readonly keep: string;
  readonly isBusy?: boolean;
  readonly onConfirm: () => void;
}

/** Asks for confirmation. */
export function Confirm({ verb, keep, isBusy = false, onConfirm, ...dialog }: ConfirmProps) {
  const foot = (
    <>
      <Button onClick={dialog.onClose}>{keep}</Button>
      <Button tone="danger" disabled={isBusy} onClick={onConfirm}>
        {verb}
      </Button>
    </>
  );
  return <Dialog {...dialog} foot={foot} />;
}
