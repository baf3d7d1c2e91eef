/** Budgets of runs as texts, and as the user types them. */
import type { Budget, BudgetChange, BudgetStatus } from '../../generated/schemas.js';
import { budgetText, limitsText } from '../../run/cost-text.js';

/** Limits as typed: US dollars and tokens; an empty one is none. */
export interface TypedLimits {
  readonly usd: string;
  readonly tokens: string;
}

export type Limit = keyof TypedLimits;

/** What is wrong with typed limits. */
export type LimitFaults = Partial<Readonly<Record<Limit, string>>>;

export const NO_LIMITS: TypedLimits = { usd: '', tokens: '' };

/** Limits as the fields show them. */
export function typedLimits({ usd, tokens }: Readonly<Record<Limit, number | null>>): TypedLimits {
  return { usd: usd === null ? '' : String(usd), tokens: tokens === null ? '' : String(tokens) };
}

/** What is spent of the budget of a run that is paused for it, and what it needs. */
export function budgetPauseText(status: BudgetStatus): string {
  const { usd, tokens, needed_usd: neededUsd = null, needed_tokens: neededTokens = 0 } = status;
  const { spent_usd: spentUsd, spent_tokens: spentTokens } = status;
  const spent = `${budgetText({ usd, tokens, spentUsd, spentTokens })} spent.`;
  if (usd !== null && neededUsd === null) {
    return `${spent} A model of the next calls has no price, so the run cannot continue with a budget in dollars.`;
  }
  const needed = limitsText({ usd: usd && neededUsd, tokens: tokens && neededTokens });
  return `${spent} To continue, the run needs a total of at least ${needed}.`;
}

/** The limits of a paused run, each raised to twice what its next calls need, so that the run pauses less often. */
export function suggestedLimits(status: BudgetStatus): TypedLimits {
  const { usd, tokens, needed_usd: neededUsd = null, needed_tokens: neededTokens = null } = status;
  return { usd: suggested(usd, neededUsd), tokens: suggested(tokens, neededTokens) };
}

function suggested(limit: number | null, needed: number | null): string {
  if (limit === null) return '';
  return String(needed === null || 2 * needed <= limit ? limit : roundedUp(2 * needed));
}

/** Rounded up to two digits that count. */
function roundedUp(amount: number): number {
  const unit = 10 ** (Math.floor(Math.log10(amount)) - 1);
  // A quotient of binary fractions may lie just above a whole number.
  return Number((Math.ceil(Number((amount / unit).toPrecision(12))) * unit).toPrecision(2));
}

export interface ReadLimits {
  readonly limits: BudgetChange;
  readonly faults: LimitFaults;
}

/** The limits that the user typed. */
export function limitsIn({ usd, tokens }: TypedLimits): ReadLimits {
  const dollars = amountIn(usd.replace(DECIMAL_COMMA, '$1.$2'), /^\$?(\d{1,9}(?:\.\d{1,9})?)$/);
  const count = amountIn(tokens, /^(\d{1,15})$/);
  return {
    limits: { ...(dollars && { usd: dollars }), ...(count && { tokens: count }) },
    faults: {
      ...(dollars === 0 && { usd: AMBIGUOUS.test(usd) ? AMBIGUOUS_COMMA : 'Enter dollars above 0, such as 0.50.' }),
      ...(count === 0 && { tokens: 'Enter a whole number of tokens, such as 20000.' }),
    },
  };
}

/** The new limits that the user typed at a pause for the budget, which must be enough for the next calls. */
export function raisedLimits(typed: TypedLimits, status: BudgetStatus): ReadLimits {
  const { limits, faults } = limitsIn(typed);
  const { needed_usd: neededUsd = null, needed_tokens: neededTokens = null } = status;
  const isTooSmall = (limit: number | null, needed: number | null): boolean =>
    limit !== null && needed !== null && limit < needed;
  return {
    limits,
    faults: {
      ...(isTooSmall(limits.usd ?? status.usd, neededUsd) && { usd: `The run needs at least $${neededUsd}.` }),
      ...(isTooSmall(limits.tokens ?? status.tokens, neededTokens) && {
        tokens: `The run needs at least ${neededTokens} tokens.`,
      }),
      ...faults,
    },
  };
}

/** One comma before the decimals: not before three digits, which may be thousands, unless 0 stands before it. */
const DECIMAL_COMMA = /^(\s*\$?(?:0(?=,)|\d+(?!,\d{3}\s*$))),(\d+\s*)$/;
const AMBIGUOUS = /\d,\d{3}/;
const AMBIGUOUS_COMMA =
  'A comma before three digits may mean thousands or decimals. Enter 1000 for a thousand, 1.5 for one and a half.';

/** The amount in a text, null if the text is empty, or 0 if it holds no amount above 0. */
function amountIn(text: string, form: RegExp): number | null {
  return text.trim() === '' ? null : Number(form.exec(text.trim())?.[1] ?? 0);
}

export type OnExceeded = NonNullable<Budget['on_exceeded']>;

/** What happens at a budget, for the form that starts a run. */
export const ON_EXCEEDED: readonly (readonly [value: OnExceeded, text: string])[] = [
  ['pause', 'Pause and ask for a larger budget'],
  ['fail', 'Fail'],
  ['finish', 'Finish with the current draft'],
];

/** Whether a text is one of these. */
export function isOnExceeded(text: string): text is OnExceeded {
  return ON_EXCEEDED.some(([value]) => value === text);
}
