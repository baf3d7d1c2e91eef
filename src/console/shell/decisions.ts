/** The user's decisions on pauses: the page sends each after a time in which the user can undo it. */
import { signal } from '@preact/signals';
import type { CouncilClient } from '../../client/client.js';
import { StalePauseError } from '../../client/errors.js';
import type { Pause } from '../../client/pause.js';
import type { BudgetChange, GateAction, ReviewSent, RunResult, StateOverride } from '../../generated/schemas.js';
import { doneText, notDoneText, quoted, tooLateText } from '../record/decision-texts.js';
import { pauseKey, type PendingApprovals } from './pending-approvals.js';

/** How long a decision can be undone, in milliseconds. */
const UNDO_MS = 5_000;
/** Most bytes of all decisions that wait: browsers finish requests of a closed page with up to 64 KiB. */
const MAX_WAITING_BYTES = 60 * 1024;
/** How long to wait for the outcome of a pause that another user decided, in milliseconds. */
const OUTCOME_WAIT_MS = 3_000;

export interface Decision {
  readonly runId: string;
  /** `seq` of its pause. */
  readonly seq: number;
  readonly topic: string;
  readonly action: GateAction;
  /** What it does, such as `Reviewer starts`. */
  readonly effect: string;
  readonly comment?: string | undefined;
  /** New totals, at a pause for the budget. */
  readonly budget?: BudgetChange | undefined;
  /** The change of a `modify`. */
  readonly change?: StateOverride | undefined;
}

/** A decision that is not yet recorded. */
export interface Underway {
  readonly key: string;
  readonly decision: Decision;
  /** When the page sends the request, in milliseconds of the browser's clock, or null if it has sent it. */
  readonly sentAtMs: number | null;
}

/** `late`: the pause was decided before; `undone` and `refused`: the pause is still open. */
export type Outcome =
  | { readonly kind: 'undone' | 'recorded' | 'late' }
  | { readonly kind: 'refused'; readonly error: unknown };

export interface DecisionsDeps {
  readonly client: Pick<CouncilClient, 'run'>;
  readonly approvals: PendingApprovals;
  /** Whether the user may undo decisions. */
  readonly hasUndo: () => boolean;
  /** What the user has had before them at a pause, if its draft was on the screen. */
  readonly reviewOf: (key: string) => ReviewSent | undefined;
  /** Name of the key in use, or null. */
  readonly actor: () => string | null;
  /** Shows a short message. */
  readonly notify: (text: string, tone: 'good' | 'wait' | 'plain') => void;
  /** @param what did not happen */
  readonly onFault: (error: unknown, what: string) => void;
  /** Time of the browser, in milliseconds since 1970. */
  readonly now: () => number;
  /** Time of the service. */
  readonly serviceNow: () => number;
  /** Calls `act` once, later. @returns cancels the call */
  readonly after: (ms: number, act: () => void) => () => void;
}

/** Why a decision no longer waits; `gone`: another user decided its pause. */
type EndOfWait = 'now' | 'undone' | 'gone';

/** A decision that can be undone. */
interface Waiting {
  readonly bytes: number;
  readonly end: (how: EndOfWait) => void;
}

export class Decisions {
  readonly #deps: DecisionsDeps;
  /** One per pause, so that a repeated decision counts once. */
  readonly #pauses = new Map<string, Pause>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #sending = new Set<Promise<Outcome>>();

  /** The decisions that are not yet recorded, oldest first. */
  readonly underway = signal<readonly Underway[]>([]);
  /** What happened instead of decisions that came too late, by pause, until the user dismisses them. */
  readonly late = signal<ReadonlyMap<string, string>>(new Map());

  constructor(deps: DecisionsDeps) {
    this.#deps = deps;
  }

  /** The decision on a pause that is not yet recorded, or null. */
  of(key: string): Underway | null {
    return this.underway.value.find((each) => each.key === key) ?? null;
  }

  /** Whether the user can still undo a decision. */
  canUndo(key: string): boolean {
    return this.#waiting.has(key);
  }

  /** Decides a pause. While a decision is under way, another one on the same pause does nothing. */
  async decide(decision: Decision): Promise<Outcome> {
    const key = keyOf(decision);
    if (this.underway.peek().some((each) => each.key === key)) return { kind: 'undone' };
    this.dismiss(key);
    const actor = this.#deps.actor();
    const bytes = bytesOf(decision);
    const mayWait = this.#deps.hasUndo() && bytes <= MAX_WAITING_BYTES;
    this.#deps.approvals.setDecided(key, true);
    this.#show({ key, decision, sentAtMs: mayWait ? this.#deps.now() + UNDO_MS : null });
    const how = mayWait ? await this.#wait(key, bytes) : 'now';
    if (how === 'undone') return this.#end(key, { kind: 'undone' });
    if (how === 'gone') return await this.#tooLate(key, decision);
    this.#show({ key, decision, sentAtMs: null });
    const sending = this.#sent(decision, { actor, keepalive: bytes <= MAX_WAITING_BYTES });
    this.#sending.add(sending);
    return await sending.finally(() => this.#sending.delete(sending));
  }

  /** Undoes a decision that is not sent yet. */
  undo(key: string): void {
    this.#waiting.get(key)?.end('undone');
  }

  /** Undoes the last decision that is not sent yet. */
  undoLast(): void {
    [...this.#waiting.values()].at(-1)?.end('undone');
  }

  /** Sends the waiting decisions at once, for example before the page closes. Resolves when the service has answered. */
  async sendAll(): Promise<void> {
    for (const { end } of [...this.#waiting.values()]) end('now');
    // Each request begins in a microtask of its `decide`.
    await Promise.resolve();
    await Promise.all(this.#sending);
  }

  /** Hides the message that a decision came too late. */
  dismiss(key: string): void {
    const late = new Map(this.late.peek());
    if (late.delete(key)) this.late.value = late;
  }

  #wait(key: string, bytes: number): Promise<EndOfWait> {
    return new Promise((resolve) => {
      const watching = new AbortController();
      const end = (how: EndOfWait): void => {
        cancel();
        watching.abort();
        this.#waiting.delete(key);
        resolve(how);
      };
      const cancel = this.#deps.after(UNDO_MS, () => end('now'));
      this.#waiting.set(key, { bytes, end });
      this.#deps.approvals.onOutcome(key, watching.signal, () => end('gone'));
      this.#sendOldest();
    });
  }

  /** Sends the oldest decisions while all together are too long for a page that closes. */
  #sendOldest(): void {
    let bytes = [...this.#waiting.values()].reduce((sum, each) => sum + each.bytes, 0);
    for (const each of [...this.#waiting.values()]) {
      if (bytes <= MAX_WAITING_BYTES) return;
      bytes -= each.bytes;
      each.end('now');
    }
  }

  async #sent(decision: Decision, { actor, keepalive }: Sender): Promise<Outcome> {
    const key = keyOf(decision);
    try {
      if (actor !== this.#deps.actor()) throw new Error('Your session has ended. Sign in and decide again.');
      const { status } = await this.#request(decision, keepalive);
      this.#onRecorded(decision, status);
      return this.#end(key, { kind: 'recorded' }, status !== 'paused');
    } catch (error) {
      if (error instanceof StalePauseError) return await this.#tooLate(key, decision);
      this.#deps.onFault(error, notDoneText(decision));
      return this.#end(key, { kind: 'refused', error });
    }
  }

  #request(decision: Decision, keepalive: boolean): Promise<RunResult> {
    const { runId, seq, action, comment, budget, change = {} } = decision;
    const key = keyOf(decision);
    const pause = this.#pauses.get(key) ?? this.#deps.client.run(runId).pauseAt(seq);
    this.#pauses.set(key, pause);
    const options = { comment, keepalive, review: this.#deps.reviewOf(key) };
    if (action === 'modify') return pause.modify(change, options);
    return action === 'approve' ? pause.approve({ ...options, budget }) : pause.reject(options);
  }

  /** With an undo window, the message of the window has said what the decision does. */
  #onRecorded(decision: Decision, status: RunResult['status']): void {
    const { notify, hasUndo } = this.#deps;
    if (status === 'paused') notify(`Recorded your vote. ${quoted(decision.topic)} waits for more votes.`, 'plain');
    else if (!hasUndo()) notify(`${doneText(decision, decision.effect)}.`, 'good');
  }

  async #tooLate(key: string, decision: Decision): Promise<Outcome> {
    const gone = await this.#deps.approvals.outcomeWithin(key, OUTCOME_WAIT_MS);
    const text = tooLateText(decision, gone, this.#deps.serviceNow());
    this.late.value = new Map(this.late.peek()).set(key, text);
    this.#deps.notify(text, 'wait');
    return this.#end(key, { kind: 'late' }, true);
  }

  #show(next: Underway): void {
    this.underway.value = [...this.underway.peek().filter(({ key }) => key !== next.key), next];
  }

  /** @param isOver whether the pause is decided; otherwise it is listed again */
  #end(key: string, outcome: Outcome, isOver = false): Outcome {
    if (!isOver) this.#deps.approvals.setDecided(key, false);
    this.underway.value = this.underway.peek().filter((each) => each.key !== key);
    return outcome;
  }
}

interface Sender {
  /** The key that decided. */
  readonly actor: string | null;
  readonly keepalive: boolean;
}

function keyOf({ runId, seq }: Decision): string {
  return pauseKey({ run_id: runId, expected_seq: seq });
}

/** Its size as JSON in UTF-8, with room for the other fields of the request. */
function bytesOf({ action, comment, budget, change }: Decision): number {
  return new TextEncoder().encode(JSON.stringify({ action, comment, budget, modified_state: change })).length + 256;
}
