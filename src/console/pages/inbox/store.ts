/** The inbox: its cards, the selected one, and decisions in flight. */
import type { ReadonlySignal } from '@preact/signals';
import { batch, computed, effect, signal } from '@preact/signals';
import type { CouncilClient } from '../../../client/client.js';
import { InvalidError, StalePauseError, TooLargeError } from '../../../client/errors.js';
import type { Pause } from '../../../client/pause.js';
import type { Approval, ApprovalGone, GodModeState } from '../../../generated/schemas.js';
import { pauseKey, type PendingApprovals } from '../../shell/pending-approvals.js';
import type { LimitFaults, TypedLimits } from '../../record/budget.js';
import { NO_LIMITS, limitsIn, suggestedLimits } from '../../record/budget.js';
import { excerpt } from '../../record/counts.js';
import { agoText } from '../../record/durations.js';
import { NodeLabels } from './node-labels.js';
import { editOf, type Edit, type Faults, faultsOf, overrideOf, invalidNumbers } from './edit.js';

/**
 * How long a decided card stays, so that a second click or key does not hit the next card. If another user decides the
 * card, shortcuts are ignored for the same time.
 */
const LINGER_MS = 300;
/** How long to wait for the outcome of a pause that another user decided. */
const OUTCOME_WAIT_MS = 3_000;
/** Number of decided pauses and of comments that are kept. */
const MAX_REMEMBERED = 200;

export interface Card {
  /** See {@link pauseKey}. */
  readonly key: string;
  readonly pause: Approval;
  /** A decision is in flight or was just made. */
  readonly isBusy: boolean;
  /** Whether the user may decide it. */
  readonly mayDecide: boolean;
}

/** The selected card, from the URL. */
export interface InboxView {
  /** The run of the selected card, or null for the first card. */
  readonly run: string | null;
  /** `seq` of its pause, or null for any. */
  readonly at: number | null;
}

export interface InboxDeps {
  readonly client: Pick<CouncilClient, 'run' | 'blueprints'>;
  readonly waiting: PendingApprovals;
  readonly view: ReadonlySignal<InboxView>;
  /** Whether the user's key may approve. */
  readonly mayApprove: () => boolean;
  /** Selects the card of a pause. */
  readonly onSelect: (pause: Approval) => void;
  /** Shows a short message. */
  readonly notify: (text: string, tone: 'plain' | 'wait') => void;
  readonly onFault: (error: unknown) => void;
  readonly now: () => number;
  /** Calls `act` once, later. */
  readonly after: (ms: number, act: () => void) => void;
}

export type Action = 'approve' | 'reject';

/** An open edit. */
export interface OpenEdit {
  readonly key: string;
  readonly pause: Approval;
  /** The fields before the edit. */
  readonly shown: Edit;
  readonly typed: Edit;
  readonly comment: string;
  readonly faults: Faults;
}

export class InboxStore {
  readonly #deps: InboxDeps;
  readonly #labels: NodeLabels;
  /** One per pause, so that a repeated decision counts once. */
  readonly #pauses = new Map<string, Pause>();
  /** Pauses with a decision in flight or just made. */
  readonly #busy = signal<ReadonlyMap<string, Approval>>(new Map());
  /** Pauses decided here, even if the stream still lists them. */
  readonly #decided = signal<ReadonlySet<string>>(new Set());
  readonly #edits = new Map<string, OpenEdit>();
  readonly #comments = signal<ReadonlyMap<string, string>>(new Map());
  readonly #limits = signal<ReadonlyMap<string, TypedLimits>>(new Map());
  #place = 0;
  /** The pause to edit when its state is loaded, and the last loaded state. */
  #keyToEdit: string | null = null;
  #loaded: GodModeState | null = null;

  /** What is wrong with the limits of the last approval of a pause for the budget, or null. */
  readonly limitFaults = signal<{ readonly key: string; readonly faults: LimitFaults } | null>(null);

  /** The pause for which the user enters a reason to reject, or null. */
  readonly rejecting = signal<string | null>(null);

  /** Whether another user just decided the selected card: a key may still be meant for it. */
  ignoresKeys = false;

  /** The open edit, or null. */
  readonly edit = signal<OpenEdit | null>(null);

  /** Whether the open edit is in flight. */
  readonly isSending = computed(() => this.edit.value !== null && this.#busy.value.has(this.edit.value.key));

  /** How another user decided the edited pause meanwhile, or null. */
  readonly editedOutcome = computed<string | null>(() => {
    const { value: edit } = this.edit;
    const gone = edit === null || this.#busy.value.has(edit.key) ? null : this.#deps.waiting.outcomeOf(edit.key);
    return edit === null || gone === null ? null : this.#outcomeText(edit.pause, gone);
  });

  /** Longest wait first. A decided card hides the next pause of its run. */
  readonly cards = computed<readonly Card[]>(() => {
    const busy = this.#busy.value;
    const leaving = new Set([...busy.values()].map((pause) => pause.run_id));
    const open = this.#deps.waiting.pauses.value.filter(
      (pause) => !this.#decided.value.has(pauseKey(pause)) && !leaving.has(pause.run_id),
    );
    return [...open, ...busy.values()].sort(byWait).map((pause) => {
      const key = pauseKey(pause);
      return { key, pause, isBusy: busy.has(key), mayDecide: pause.may_decide && this.#deps.mayApprove() };
    });
  });

  /** The selected card, or null if there is none. If it goes, the card in its place is selected. */
  readonly current = computed<Card | null>(() => {
    const cards = this.cards.value;
    const looked = cards.find(({ pause }) => isSelected(pause, this.#deps.view.value));
    return looked ?? cards[Math.min(this.#place, cards.length - 1)] ?? null;
  });

  constructor(deps: InboxDeps) {
    this.#deps = deps;
    this.#labels = new NodeLabels(deps.client);
  }

  /** Follows the pauses. @returns stops following */
  start(): () => void {
    let last: Card | null = null;
    // The card that the URL names may arrive after others.
    let hasArrived = false;
    return effect(() => {
      const [before, card] = [last, this.current.value];
      last = card;
      if (card !== null) {
        this.#place = this.cards.value.indexOf(card);
        const view = this.#deps.view.peek();
        const isNamed = isSelected(card.pause, view);
        hasArrived ||= isNamed || view.run === null;
        if (isNamed ? view.at === null : hasArrived) this.#deps.onSelect(card.pause);
      }
      if (before !== null && !before.isBusy && before.key !== card?.key) this.#notifyClosed(before);
    });
  }

  /** Tells the user that another user decided the selected card, unless the user just selected another one. */
  #notifyClosed({ key, pause }: Card): void {
    if (!this.cards.peek().some((card) => card.key === key)) {
      this.ignoresKeys = true;
      this.#deps.after(LINGER_MS, () => (this.ignoresKeys = false));
    }
    const gone = this.#deps.waiting.outcomeOf(key);
    if (gone !== null && !this.#decided.peek().has(key)) this.#deps.notify(this.#outcomeText(pause, gone), 'plain');
  }

  select({ pause }: Card): void {
    this.#deps.onSelect(pause);
  }

  /** The label of a node of a paused run. */
  labelOf({ blueprint }: Approval, node: string): string {
    return this.#labels.labelOf(blueprint.id, node);
  }

  /** Selects the previous or next card. */
  step(by: 1 | -1): void {
    const cards = this.cards.value;
    const next = cards[cards.findIndex(({ key }) => key === this.current.value?.key) + by];
    if (next !== undefined) this.select(next);
  }

  /** Asks for a reason before the selected card is rejected by shortcut. */
  startRejecting(): void {
    const { value: card } = this.current;
    if (card?.mayDecide === true && !card.isBusy) this.rejecting.value = card.key;
  }

  commentOn(key: string): string {
    return this.#comments.value.get(key) ?? '';
  }

  comment(key: string, text: string): void {
    this.#comments.value = new Map([...this.#comments.value, [key, text] as const].slice(-MAX_REMEMBERED));
  }

  /** The new limits of a pause for the budget, as typed or suggested. */
  limitsOf({ key, pause: { budget } }: Card): TypedLimits {
    return this.#limits.value.get(key) ?? (budget === undefined ? NO_LIMITS : suggestedLimits(budget));
  }

  typeLimits(card: Card, change: Partial<TypedLimits>): void {
    const typed = { ...this.limitsOf(card), ...change };
    this.#limits.value = new Map([...this.#limits.value, [card.key, typed] as const].slice(-MAX_REMEMBERED));
  }

  /** Approves or rejects, once; at a pause for the budget it approves with the typed limits. */
  async decide(card: Card, action: Action): Promise<void> {
    const { key, pause, mayDecide } = card;
    if (!mayDecide || this.#busy.peek().has(key)) return;
    const comment = this.commentOn(key).trim() || undefined;
    const { limits: budget, faults } = limitsIn(this.limitsOf(card));
    const isRaise = action === 'approve' && isForBudget(pause);
    this.limitFaults.value = isRaise ? { key, faults } : null;
    if (isRaise && Object.keys(faults).length > 0) return;
    const send = (at: Pause) => (isRaise ? at.approve({ comment, budget }) : at[action]({ comment }));
    await this.#send(pause, action, send).catch(this.#deps.onFault);
  }

  /** Opens the edit of a card when its state is loaded, and restores an earlier edit. */
  askForEdit(card: Card): void {
    if (!card.mayDecide || card.isBusy || isForBudget(card.pause)) return;
    this.#keyToEdit = card.key;
    this.select(card);
    if (this.#loaded !== null) this.onStateLoaded(card.pause, this.#loaded);
  }

  /** Called with the state of the selected pause. */
  onStateLoaded(pause: Approval, state: GodModeState): void {
    this.#loaded = state;
    const key = pauseKey(pause);
    if (this.#keyToEdit !== key || key !== pauseKey({ run_id: state.run_id, expected_seq: state.seq })) return;
    this.#keyToEdit = null;
    const shown = editOf(state);
    this.edit.value = this.#edits.get(key) ?? { key, pause, shown, typed: shown, comment: '', faults: {} };
  }

  /** Whether shortcuts are off: an edit is open or about to open, or the user enters a reason. */
  get isTyping(): boolean {
    const key = this.current.value?.key;
    return this.edit.value !== null || (key !== undefined && [this.#keyToEdit, this.rejecting.value].includes(key));
  }

  type(change: Partial<Edit>, comment = this.edit.value?.comment ?? ''): void {
    const { value: edit } = this.edit;
    if (edit !== null) this.#show({ ...edit, comment, typed: { ...edit.typed, ...change } });
  }

  /** Closes the edit and keeps its text while the pause is open. */
  closeEdit(): void {
    const { value: edit } = this.edit;
    if (edit !== null && this.editedOutcome.value !== null) this.#edits.delete(edit.key);
    this.edit.value = null;
  }

  /** Sends the changed fields of the open edit, once. Shows errors at their fields and keeps the edit. */
  async sendEdit(): Promise<void> {
    const { value: edit } = this.edit;
    if (edit === null || this.#busy.peek().has(edit.key)) return;
    const faults = invalidNumbers(edit.typed);
    if (Object.keys(faults).length > 0) return this.#show({ ...edit, faults });
    const override = overrideOf(edit.shown, edit.typed);
    const comment = edit.comment.trim() || undefined;
    try {
      await this.#send(edit.pause, 'modify', (at) => at.modify(override, { comment }));
      this.#edits.delete(edit.key);
      this.closeEdit();
    } catch (error) {
      if (error instanceof InvalidError) this.#show({ ...edit, faults: faultsOf(error.errors, override) });
      else if (error instanceof TooLargeError) this.#show({ ...edit, faults: { '': error.detail } });
      else this.#deps.onFault(error);
    }
  }

  #show(edit: OpenEdit): void {
    this.#edits.set(edit.key, edit);
    this.edit.value = edit;
  }

  /** @throws {CouncilError} the pause is still open */
  async #send(
    pause: Approval,
    action: keyof typeof DONE,
    decide: (at: Pause) => ReturnType<Pause['approve']>,
  ): Promise<void> {
    const key = pauseKey(pause);
    const sentMs = this.#deps.now();
    this.#busy.value = new Map(this.#busy.value).set(key, pause);
    let isOver = true;
    try {
      const { status } = await decide(this.#pauseOf(key, pause));
      isOver = status !== 'paused';
      this.comment(key, '');
      this.#deps.notify(
        isOver ? `${DONE[action]} ${topicOf(pause)}` : `Recorded your vote. ${topicOf(pause)} waits for more votes.`,
        'plain',
      );
    } catch (error) {
      isOver = error instanceof StalePauseError;
      if (!isOver) throw error;
      await this.#notifyTooLate(pause, key);
    } finally {
      this.#deps.after(isOver ? Math.max(0, sentMs + LINGER_MS - this.#deps.now()) : 0, () =>
        this.#settle(key, isOver),
      );
    }
  }

  #settle(key: string, isOver: boolean): void {
    const busy = new Map(this.#busy.value);
    busy.delete(key);
    batch(() => {
      if (isOver) this.#decided.value = new Set([...this.#decided.value, key].slice(-MAX_REMEMBERED));
      this.#busy.value = busy;
    });
  }

  #pauseOf(key: string, { run_id: runId, expected_seq: seq }: Approval): Pause {
    const pause = this.#pauses.get(key) ?? this.#deps.client.run(runId).pauseAt(seq);
    this.#pauses.set(key, pause);
    return pause;
  }

  async #notifyTooLate(pause: Approval, key: string): Promise<void> {
    const gone = await this.#waitForOutcome(key);
    const outcome =
      gone === null ? `another user has already decided ${topicOf(pause)}.` : this.#outcomeText(pause, gone);
    this.#deps.notify(`Too late: ${outcome}`, 'wait');
  }

  #waitForOutcome(key: string): Promise<ApprovalGone | null> {
    return new Promise((resolve) => {
      this.#deps.after(OUTCOME_WAIT_MS, () => resolve(null));
      const stop = effect(() => {
        const gone = this.#deps.waiting.outcomeOf(key);
        if (gone !== null) resolve(gone);
      });
      this.#deps.after(OUTCOME_WAIT_MS, stop);
    });
  }

  #outcomeText(pause: Approval, { actor, outcome, at }: ApprovalGone): string {
    const ago = agoText(this.#deps.now() - Date.parse(at));
    return actor === null
      ? `${topicOf(pause)} was ${OUTCOMES[outcome]} ${ago}.`
      : `${actor} ${OUTCOMES[outcome]} ${topicOf(pause)} ${ago}.`;
  }
}

/** Whether a pause is for the budget of its run. */
export function isForBudget({ pause_reason: reason }: Approval): boolean {
  return reason === 'budget';
}

function isSelected({ run_id: runId, expected_seq: seq }: Approval, { run, at }: InboxView): boolean {
  return runId === run && (at === null || at === seq);
}

/** What the user's own decision did. */
const DONE = { approve: 'Approved', reject: 'Rejected', modify: 'Edited and continued' } as const;

const OUTCOMES: Readonly<Record<ApprovalGone['outcome'], string>> = {
  approve: 'approved',
  reject: 'rejected',
  modify: 'edited',
  failed: 'ended',
  escalated: 'escalated',
};

function topicOf({ input_topic: topic }: Approval): string {
  return `“${excerpt(topic, 60)}”`;
}

function byWait(a: Approval, b: Approval): number {
  return Date.parse(a.waiting_since) - Date.parse(b.waiting_since) || (a.run_id < b.run_id ? -1 : 1);
}
