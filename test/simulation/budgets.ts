/**
 * Checks a run's budget from its recorded events alone: no call is reserved that would pass the budget, and the recorded
 * usage passes it by no more than what the calls in flight together used above their reservations.
 */
import type { CallUsage, Reservation, RunBudget } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';

type Amount = { readonly tokens: number; readonly usd: number };
type Must = (holds: boolean, detail: string) => void;

const NONE: Amount = { tokens: 0, usd: 0 };
/** Sums of dollars differ in their last digits by the order of the additions. */
const ROUNDING: Amount = { tokens: 0, usd: 1e-9 };

export class Budgets {
  readonly #must: Must;
  /** Reservations of the calls in flight, by step. */
  readonly #open = new Map<number, Amount>();
  #budget: RunBudget | null = null;
  /** What counts: the usage of each call, or its reservation if the usage is unknown. */
  #counted = NONE;
  #recorded = NONE;
  /** What calls have used above their reservations since the last reservation. */
  #above = NONE;

  constructor(must: Must) {
    this.#must = must;
  }

  take({ type, data }: RunEvent): void {
    if (type === 'RunRequested') this.#budget = data.budget ?? null;
    if (this.#budget === null) return;
    switch (type) {
      case 'NodeStarted':
        this.#end(data.step, null);
        return this.#reserve(data.step, data.reserved);
      case 'CallReserved':
        this.#end(data.step, data);
        return this.#reserve(data.step, data.reserved);
      case 'NodeCompleted':
      case 'NodeFailed':
        return this.#end(data.step, data.lastCall ?? data);
      case 'GateDecided':
        this.#budget = { ...this.#budget, ...data.budget };
        return;
      case 'RunPaused':
        if (data.reason === 'budget') for (const step of this.#open.keys()) this.#end(step, null);
        return;
      case 'RunFailed':
        if (data.kind !== 'budget_exceeded') return;
        return this.#must(this.#budget.onExceeded !== 'pause', 'a budget that pauses the run fails it');
      default:
        return;
    }
  }

  #reserve(step: number, reserved: Reservation | undefined): void {
    this.#must(reserved !== undefined && reserved.usd !== null, `step ${step} reserves ${JSON.stringify(reserved)}`);
    if (reserved === undefined) return;
    this.#open.set(step, { tokens: reserved.tokens, usd: reserved.usd ?? 0 });
    this.#above = NONE;
    const all = [...this.#open.values()].reduce(plus, this.#counted);
    this.#mustFit(all, NONE, 'spent and reserved');
  }

  #end(step: number, call: Partial<CallUsage> | null): void {
    const reserved = this.#open.get(step);
    if (reserved === undefined) return;
    this.#open.delete(step);
    const { inputTokens = null, outputTokens = null } = call?.usage ?? {};
    const isKnown = inputTokens !== null && outputTokens !== null;
    const used = isKnown ? { tokens: inputTokens + outputTokens, usd: call?.costUsd ?? 0 } : NONE;
    this.#recorded = plus(this.#recorded, used);
    this.#counted = plus(this.#counted, isKnown ? used : reserved);
    this.#above = plus(this.#above, {
      tokens: Math.max(0, used.tokens - reserved.tokens),
      usd: Math.max(0, used.usd - reserved.usd),
    });
    this.#mustFit(this.#recorded, this.#above, 'recorded');
  }

  #mustFit(amount: Amount, above: Amount, what: string): void {
    for (const each of ['tokens', 'usd'] as const) {
      const limit = this.#budget?.[each] ?? null;
      const fits = limit === null || amount[each] <= limit + above[each] + ROUNDING[each];
      this.#must(fits, `${amount[each]} ${each} ${what} of ${limit}, ${above[each]} above reservations`);
    }
  }
}

function plus(one: Amount, other: Amount): Amount {
  return { tokens: one.tokens + other.tokens, usd: one.usd + other.usd };
}
