/** A dialog over the page: the browser's own, which keeps the focus and closes with Escape. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Away } from './states.js';

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
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={`dialog${broad ? ' broad' : ''}`} aria-labelledby={id} onClose={onClose}>
      <Away />
      <div class="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
        {foot !== undefined && <div class="dialog-foot">{foot}</div>}
      </div>
    </dialog>
  );
}
