/** Tabs and the panel of the selected one. */
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

export interface TabsProps<T extends string> {
  /** Accessible name of the tab row. */
  readonly label: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly text: string; readonly count?: number }[];
  readonly onChange: (value: T) => void;
  /** Content of the selected tab. */
  readonly children: ComponentChildren;
}

/** Arrow keys, Home and End move between tabs. */
export function Tabs<T extends string>({ label, value, options, onChange, children }: TabsProps<T>) {
  const id = useId();
  const row = useRef<HTMLDivElement>(null);
  const chosen = options.findIndex((option) => option.value === value);
  function onKeyDown(event: KeyboardEvent): void {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const index = step(chosen, options.length);
    const next = options[index];
    if (next === undefined) return;
    onChange(next.value);
    row.current?.querySelectorAll<HTMLElement>('[role=tab]').item(index).focus();
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={row} onKeyDown={onKeyDown}>
        {options.map((option) => (
          <button
            key={option.value}
            type="button"
            role="tab"
            id={`${id}-${option.value}`}
            aria-selected={option.value === value}
            aria-controls={`${id}-panel`}
            tabIndex={option.value === value ? 0 : -1}
            onClick={() => onChange(option.value)}
          >
            {option.text}
            {option.count !== undefined && option.count > 0 && <span class="count">{option.count}</span>}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${value}`}>
        {children}
      </div>
    </>
  );
}

const STEPS: Readonly<Record<string, (chosen: number, count: number) => number>> = {
  ArrowRight: (chosen, count) => (chosen + 1) % count,
  ArrowLeft: (chosen, count) => (chosen + count - 1) % count,
  Home: () => 0,
  End: (_chosen, count) => count - 1,
};
