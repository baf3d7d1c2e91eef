/** The budget in the form that starts a run. */
import type { ReadonlySignal, Signal } from '@preact/signals';
import { useComputed, useSignal } from '@preact/signals';
import type { Budget } from '../../../generated/schemas.js';
import type { LimitFaults, OnExceeded, TypedLimits } from '../../record/budget.js';
import { NO_LIMITS, ON_EXCEEDED, isOnExceeded, limitsIn } from '../../record/budget.js';
import { LimitFields } from '../../ui/budget-fields.js';
import { Select } from '../../ui/controls.js';

export interface TypedBudget {
  readonly typed: Signal<TypedLimits>;
  readonly onExceeded: Signal<OnExceeded>;
  readonly faults: ReadonlySignal<LimitFaults>;
  /** The budget, or null if no limit is typed. */
  readonly budget: ReadonlySignal<Budget | null>;
}

/** The state of the fields. */
export function useBudget(): TypedBudget {
  const typed = useSignal(NO_LIMITS);
  const onExceeded = useSignal<OnExceeded>('pause');
  const faults = useComputed(() => limitsIn(typed.value).faults);
  const budget = useComputed(() => {
    const { limits } = limitsIn(typed.value);
    return Object.keys(limits).length === 0 ? null : { ...limits, on_exceeded: onExceeded.value };
  });
  return { typed, onExceeded, faults, budget };
}

const LABELS = { usd: 'At most, in US dollars', tokens: 'At most, in tokens' } as const;

/** @param areFaultsShown whether the user has tried to start the run */
export function BudgetFields({ of, areFaultsShown }: { readonly of: TypedBudget; readonly areFaultsShown: boolean }) {
  const { typed, onExceeded, faults, budget } = of;
  return (
    <details class="start-budget">
      <summary>Budget (optional)</summary>
      <div class="stack">
        <LimitFields
          labels={LABELS}
          typed={typed.value}
          faults={areFaultsShown ? faults.value : {}}
          onType={(change) => (typed.value = { ...typed.value, ...change })}
        />
        {budget.value !== null && (
          <Select
            label="When the next call would pass it"
            value={onExceeded.value}
            options={ON_EXCEEDED}
            onChange={(value) => {
              if (isOnExceeded(value)) onExceeded.value = value;
            }}
          />
        )}
        <p class="small muted">
          Before each call the service reserves the prompt and the longest answer: 8,192 tokens, unless the node sets
          another limit. A budget here replaces that of the council.
        </p>
      </div>
    </details>
  );
}
