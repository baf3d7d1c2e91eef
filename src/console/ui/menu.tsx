/** A button that opens a list of actions, each with a note on what it does. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

export interface MenuAction {
  readonly text: string;
  readonly note: string;
  readonly onClick: () => void;
}

export interface MenuProps {
  readonly children: ComponentChildren;
  readonly actions: readonly MenuAction[];
  readonly disabled?: boolean;
}

/** Escape, a click beside it and another focus close it. */
export function Menu({ children, actions, disabled = false }: MenuProps) {
  const isOpen = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen.value) return undefined;
    const closeBeside = ({ target }: Event): void => {
      if (!(target instanceof Node) || root.current?.contains(target) !== true) isOpen.value = false;
    };
    const events = ['pointerdown', 'focusin'] as const;
    for (const event of events) document.addEventListener(event, closeBeside);
    return () => {
      for (const event of events) document.removeEventListener(event, closeBeside);
    };
  }, [isOpen.value]);
  function close(): void {
    isOpen.value = false;
    button.current?.focus();
  }
  return (
    <div class="menu" ref={root} onKeyDown={({ key }) => key === 'Escape' && isOpen.value && close()}>
      <button
        type="button"
        ref={button}
        class="button slim opens"
        aria-expanded={isOpen.value}
        disabled={disabled}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        {children}
      </button>
      {isOpen.value && (
        <ul class="menu-list">
          {actions.map(({ text, note, onClick }) => (
            <li key={text}>
              <button
                type="button"
                onClick={() => {
                  close();
                  onClick();
                }}
              >
                <strong>{text}</strong>
                <span class="small muted">{note}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
