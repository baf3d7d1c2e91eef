/**
 * Checks that each pause has exactly one decision: by enough of its approvers with the same choice, or by its deadline
 * when it has passed.
 */
import type { GateDecidedData, RunPausedData, VoteCastData } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';

interface OpenPause {
  readonly number: number;
  readonly pausedMs: number;
  readonly quorum: number;
  readonly deadlineMs: number | null;
  /** The approvers, or null if every user may decide. */
  readonly by: readonly string[] | null;
  /** The voters with the same choice, in order, and the choice. */
  readonly approvers: ReadonlySet<string | null>;
  readonly choice: string | null;
}

type Must = (holds: boolean, detail: string) => void;

export class Pauses {
  readonly #must: Must;
  readonly #decided = new Set<number>();
  #open: OpenPause | null = null;

  constructor(must: Must) {
    this.#must = must;
  }

  /** Whether the open pause ends by itself. */
  get hasDeadline(): boolean {
    return this.#open !== null && this.#open.deadlineMs !== null;
  }

  /** @param run before the event */
  take(event: RunEvent, run: RunState | null): void {
    const { type, data } = event;
    if (type === 'RunPaused') this.#pause(data, Date.parse(event.at), run);
    if (type !== 'VoteCast' && type !== 'PauseEscalated' && type !== 'GateDecided') return;
    const open = this.#open;
    if (open?.number !== data.gate) {
      // A fork begins at a pause of its parent.
      this.#must(run?.request.parent !== null, `${type} answers no open pause`);
    } else if (type === 'PauseEscalated') {
      this.#passed(open, event.at);
      this.#open = { ...open, approvers: new Set(), choice: null, deadlineMs: null, by: data.to };
    } else if (type === 'GateDecided' && data.by === 'deadline') {
      this.#passed(open, event.at);
      this.#decide(data.gate);
    } else {
      this.#say(this.#with(open, data, type === 'VoteCast'), { ...data, isVote: type === 'VoteCast' });
    }
  }

  #pause({ gate: number, reason }: RunPausedData, pausedMs: number, run: RunState | null): void {
    // Any approver decides a pause for the budget.
    const rule = reason === 'budget' ? {} : run?.plan.graph.approvals;
    const { quorum = 1, deadline, by = null } = rule ?? {};
    const deadlineMs = deadline?.after_ms ?? null;
    this.#open = { number, pausedMs, quorum, deadlineMs, by, approvers: new Set(), choice: null };
  }

  #passed({ pausedMs, deadlineMs }: OpenPause, at: string): void {
    const afterMs = Date.parse(at) - pausedMs;
    this.#must(deadlineMs !== null && afterMs >= deadlineMs, `the deadline passes after ${afterMs} ms`);
  }

  /** The pause after one more vote. */
  #with(open: OpenPause, said: GateDecidedData | VoteCastData, isVote: boolean): OpenPause {
    const actor = said.actor ?? null;
    this.#must(open.by === null || open.by.includes(actor ?? ''), `${actor} is no approver`);
    const choice = JSON.stringify([said.action, said.modifiedState]);
    const before = choice === open.choice ? open.approvers : [];
    const approvers = new Set([...before, actor]);
    this.#must(!isVote || approvers.size > new Set(before).size, `${actor} votes twice`);
    return { ...open, approvers, choice };
  }

  #say(
    open: OpenPause,
    { gate, action, isVote }: Pick<VoteCastData, 'gate' | 'action'> & { readonly isVote: boolean },
  ): void {
    const isEnough = action === 'reject' || open.approvers.size >= open.quorum;
    this.#must(isEnough !== isVote, `${open.approvers.size} of ${open.quorum} approvers say ${action}`);
    this.#open = open;
    if (!isVote) this.#decide(gate);
  }

  #decide(number: number): void {
    this.#must(!this.#decided.has(number), `pause ${number} is decided again`);
    this.#decided.add(number);
    this.#open = null;
  }
}
