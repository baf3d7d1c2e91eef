/** What the user types about pauses: a comment on each, and the new limits of one for the budget. */
import { signal } from '@preact/signals';
import type { Approval } from '../../../generated/schemas.js';
import type { TypedLimits } from '../../record/budget.js';
import { NO_LIMITS, suggestedLimits } from '../../record/budget.js';

/** Number of pauses whose texts are kept. */
const MAX_REMEMBERED = 200;

interface TypedAbout {
  readonly key: string;
  readonly pause: Approval;
}

export class Typed {
  readonly #comments = signal<ReadonlyMap<string, string>>(new Map());
  readonly #limits = signal<ReadonlyMap<string, TypedLimits>>(new Map());

  commentOn(key: string): string {
    return this.#comments.value.get(key) ?? '';
  }

  comment(key: string, text: string): void {
    this.#comments.value = new Map([...this.#comments.value, [key, text] as const].slice(-MAX_REMEMBERED));
  }

  /** The new limits of a pause for the budget, as typed or suggested. */
  limitsOf({ key, pause: { budget } }: TypedAbout): TypedLimits {
    return this.#limits.value.get(key) ?? (budget === undefined ? NO_LIMITS : suggestedLimits(budget));
  }

  changeLimits(about: TypedAbout, change: Partial<TypedLimits>): void {
    const typed = { ...this.limitsOf(about), ...change };
    this.#limits.value = new Map([...this.#limits.value, [about.key, typed] as const].slice(-MAX_REMEMBERED));
  }
}
