/**
 * Checks a run's budget from its recorded events alone: no call is reserved that would pass the budget, and the recorded
 * usage passes it by no more than what the calls in flight together used above their reservations. Of the run's state it
 * checks that `spending` and `effort` hold the same amounts, and that a run which finishes at its budget loses no draft.
 */
import type { CallUsage, ChildEndedData, Reservation, RunBudget } from '../../src/generated/schemas.js';
import { reservationFor } from '../../src/run/budget/spending.js';
import { usageOf } from '../../src/run/effort.js';
import type { RunEvent } from '../../src/run/events.js';
import { isOpen } from '../../src/run/fork-snapshot.js';
import type { RunState } from '../../src/run/state.js';

type Amount = { readonly tokens: number; readonly usd: number };
type Must = (holds: boolean, detail: string) => void;

const NONE: Amount = { tokens: 0, usd: 0 };
/** Sums of dollars differ in their last digits by the order of the additions. */
const ROUNDING: Amount = { tokens: 0, usd: 1e-9 };

export class Budgets {
  readonly #must: Must;
  /** Reservations of the calls in flight, by step, and of the runs of councils, by step and index. */
  readonly #open = new Map<number | string, Amount>();
  /** The panel of each step that has one. */
  readonly #panels = new Map<number, number>();
  #budget: RunBudget | null = null;
  /** What counts: the usage of each call, or its reservation if the usage is unknown. */
  #counted = NONE;
  #recorded = NONE;
  #calls = 0;
  #knownCalls = 0;
  /** What calls have used above their reservations since the last reservation. */
  #above = NONE;

  constructor(must: Must) {
    this.#must = must;
  }

  /** @param run the states before and after the event; before the first event, null */
  take(event: RunEvent, run: { readonly before: RunState | null; readonly after: RunState }): void {
    if (event.type === 'RunRequested') this.#budget = event.data.budget ?? null;
    if (this.#budget === null) return;
    this.#apply(event);
    this.#mustAgree(run.after);
    const { before } = run;
    const isFinish = event.type === 'RunCompleted' && event.data.endedBy === 'budget';
    if (isFinish && before !== null) this.#mustHoldDrafts(before, event.data.finalDraft ?? '');
  }

  #apply({ type, data }: RunEvent): void {
    switch (type) {
      case 'NodeStarted':
        if (data.model === '') return;
        this.#end(data.step, null);
        if (data.panelStep !== undefined) this.#panels.set(data.step, data.panelStep);
        return this.#reserve(data.step, data.reserved);
      case 'CallReserved':
        this.#end(data.step, data);
        return this.#reserve(data.step, data.reserved);
      case 'ChildStarted':
        this.#calls -= 1;
        return this.#reserve(`${data.step}/${data.index}`, data.reserved);
      case 'ChildEnded':
        return this.#endChild(data);
      case 'NodeCompleted':
      case 'NodeFailed':
        return this.#end(data.step, data.lastCall ?? data);
      case 'PanelClosed':
        for (const step of this.#open.keys())
          if (this.#panels.get(Number(step)) === data.panelStep) this.#end(step, null);
        return;
      case 'GateDecided':
        this.#budget = this.#budget && { ...this.#budget, ...data.budget };
        return;
      case 'RunPaused':
        if (data.reason === 'budget') this.#endAll();
        return;
      case 'RunCompleted':
        return this.#endAll();
      case 'RunFailed':
        this.#endAll();
        if (data.kind !== 'budget_exceeded') return;
        return this.#must(this.#budget?.onExceeded !== 'pause', 'a budget that pauses the run fails it');
      default:
        return;
    }
  }

  #reserve(step: number | string, reserved: Reservation | undefined): void {
    this.#must(reserved !== undefined && reserved.usd !== null, `step ${step} reserves ${JSON.stringify(reserved)}`);
    if (reserved === undefined) return;
    this.#calls += 1;
    this.#open.set(step, { tokens: reserved.tokens, usd: reserved.usd ?? 0 });
    // A run of a council may start with nothing, because earlier calls have used more than they had reserved.
    if (reserved.tokens === 0 && reserved.usd === 0) return;
    this.#above = NONE;
    const all = [...this.#open.values()].reduce(plus, this.#counted);
    this.#mustFit(all, NONE, 'spent and reserved');
  }

  #endAll(): void {
    for (const step of this.#open.keys()) this.#end(step, null);
  }

  /** A run of a council has spent as much of its share as its own record says. */
  #endChild({ step, index, spent, usage }: ChildEndedData): void {
    const place = `${step}/${index}`;
    const share = this.#open.get(place);
    this.#open.delete(place);
    const counted = { tokens: spent?.tokens ?? Number.NaN, usd: spent?.usd ?? Number.NaN };
    const used = { tokens: (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0), usd: usage.costUsd ?? 0 };
    this.#calls += usage.calls;
    this.#knownCalls += usage.toldCalls;
    this.#recorded = plus(this.#recorded, used);
    this.#counted = plus(this.#counted, counted);
    this.#above = plus(this.#above, {
      tokens: Math.max(0, counted.tokens - (share?.tokens ?? 0)),
      usd: Math.max(0, counted.usd - (share?.usd ?? 0)),
    });
    this.#mustFit(this.#recorded, this.#above, 'recorded');
  }

  #end(step: number | string, call: Partial<CallUsage> | null): void {
    const reserved = this.#open.get(step);
    if (reserved === undefined) return;
    this.#open.delete(step);
    const { inputTokens = null, outputTokens = null } = call?.usage ?? {};
    const isKnown = inputTokens !== null && outputTokens !== null;
    const used = isKnown ? { tokens: inputTokens + outputTokens, usd: call?.costUsd ?? 0 } : NONE;
    this.#knownCalls += isKnown ? 1 : 0;
    this.#recorded = plus(this.#recorded, used);
    this.#counted = plus(this.#counted, isKnown ? used : reserved);
    this.#above = plus(this.#above, {
      tokens: Math.max(0, used.tokens - reserved.tokens),
      usd: Math.max(0, used.usd - reserved.usd),
    });
    this.#mustFit(this.#recorded, this.#above, 'recorded');
  }

  #mustAgree({ spending, effort }: RunState): void {
    const spent = spending === null ? NONE : reservationFor(spending.spent);
    this.#mustEqual(this.#counted, { tokens: spent.tokens, usd: spent.usd ?? Number.NaN }, 'spent');
    const { calls, toldCalls, inputTokens, outputTokens, costUsd } = usageOf(effort);
    const used = { tokens: (inputTokens ?? 0) + (outputTokens ?? 0), usd: costUsd ?? 0 };
    this.#mustEqual(this.#recorded, used, 'used');
    const counts = `${calls} calls, ${toldCalls} known, of ${this.#calls} and ${this.#knownCalls}`;
    this.#must(calls === this.#calls && toldCalls === this.#knownCalls, counts);
  }

  #mustEqual(amount: Amount, shown: Amount, what: string): void {
    const isEqual = amount.tokens === shown.tokens && Math.abs(amount.usd - shown.usd) <= ROUNDING.usd;
    this.#must(isEqual, `${JSON.stringify(amount)} recorded, ${JSON.stringify(shown)} shown as ${what}`);
  }

  /** The result holds the draft of each branch, but for one that another branch has worked on. */
  #mustHoldDrafts(run: RunState, result: string): void {
    const { arrivals, ended, frontier } = run.progress;
    const begun = frontier.filter((each) => isOpen(run, each));
    const branches = [...arrivals, ...ended, ...begun].map(({ branch }) => branch);
    const shared = new Set(branches.flatMap(({ forks }) => forks.map(({ draftFrom }) => draftFrom)));
    for (const { draft, draftFrom } of branches) {
      const isHeld = draft === null || shared.has(draftFrom) || result.includes(draft);
      this.#must(isHeld, `"${draft}" is not in the result "${result}"`);
    }
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
