/** The fields of a budget, and what a pause for the budget needs. */
import type { BudgetStatus } from '../../generated/schemas.js';
import type { Limit, LimitFaults, TypedLimits } from '../record/budget.js';
import { budgetPauseText } from '../record/budget.js';
import { TextBox } from './controls.js';

export interface LimitFieldsProps {
  readonly typed: TypedLimits;
  readonly faults: LimitFaults;
  readonly onType: (change: Partial<TypedLimits>) => void;
  readonly labels: Readonly<Record<Limit, string>>;
  /** Default: both. */
  readonly shown?: readonly Limit[];
}

const LIMITS = ['usd', 'tokens'] as const;
const INPUT_MODES = { usd: 'decimal', tokens: 'numeric' } as const;

export function LimitFields({ typed, faults, onType, labels, shown = LIMITS }: LimitFieldsProps) {
  return (
    <div class="limits">
      {shown.map((limit) => (
        <TextBox
          key={limit}
          label={labels[limit]}
          inputMode={INPUT_MODES[limit]}
          autocomplete="off"
          fault={faults[limit] ?? null}
          value={typed[limit]}
          onType={(text) => onType({ [limit]: text })}
        />
      ))}
    </div>
  );
}

const NEW_TOTALS = { usd: 'New total in US dollars', tokens: 'New total in tokens' } as const;

export interface BudgetPauseProps extends Pick<LimitFieldsProps, 'typed' | 'faults' | 'onType'> {
  readonly status: BudgetStatus;
  /** Whether the user may decide, and sees the fields. */
  readonly mayDecide: boolean;
}

/** What is spent and needed at a pause for the budget, with a field for each new total. */
export function BudgetPause({ status, mayDecide, ...fields }: BudgetPauseProps) {
  const shown = LIMITS.filter((limit) => status[limit] !== null);
  return (
    <div class="stack">
      <p class="break">{budgetPauseText(status)}</p>
      {mayDecide && <LimitFields {...fields} shown={shown} labels={NEW_TOTALS} />}
    </div>
  );
}
