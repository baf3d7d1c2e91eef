/** The inbox: its cards, the selected one, and what the user types about it. */
import type { ReadonlySignal } from '@preact/signals';
import { computed, effect, signal } from '@preact/signals';
import type { Approval } from '../../../generated/schemas.js';
import type { LimitFaults, TypedLimits } from '../../record/budget.js';
import { raisedLimits, NO_LIMITS, suggestedLimits } from '../../record/budget.js';
import { effectText, outcomeText } from '../../record/decision-texts.js';
import type { Decision, Decisions, Outcome } from '../../shell/decisions.js';
import type { PendingApprovals } from '../../shell/pending-approvals.js';
import { byWait, pauseKey } from '../../shell/pending-approvals.js';
import type { SentEdit } from './editing.js';
import { Editing } from './editing.js';
import type { PauseContent } from './pause-content.js';
import { labelIn, nextLabels } from './pause-content.js';

/**
 * How long a decided card stays, so that a second click or key does not hit the next card. If another user decides the
 * card, shortcuts are ignored for the same time.
 */
const LINGER_MS = 300;

export interface Card {
  /** See {@link pauseKey}. */
  readonly key: string;
  readonly pause: Approval;
  /** A decision was just made. */
  readonly isBusy: boolean;
  /** Whether the user may decide it. */
  readonly mayDecide: boolean;
  /** What happened instead of the user's decision, which came too late, or null. */
  readonly late: string | null;
}

/** The selected card, from the URL. */
export interface InboxView {
  /** The run of the selected card, or null for the first card. */
  readonly run: string | null;
  /** `seq` of its pause, or null for any. */
  readonly at: number | null;
}

export interface InboxDeps {
  readonly waiting: PendingApprovals;
  readonly decisions: Decisions;
  readonly view: ReadonlySignal<InboxView>;
  /** Whether the user's key may approve. */
  readonly mayApprove: () => boolean;
  /** Selects the card of a pause. */
  readonly onSelect: (pause: Approval) => void;
  /** Shows a short message. */
  readonly notify: (text: string, tone: 'plain') => void;
  readonly now: () => number;
  /** Calls `act` once, later. */
  readonly after: (ms: number, act: () => void) => void;
}

export class InboxStore {
  readonly #deps: InboxDeps;
  /** Pauses that were just decided. */
  readonly #busy = signal<ReadonlyMap<string, Approval>>(new Map());
  /** Pauses that the user has decided on this page. */
  readonly #sent = new Map<string, Approval>();
  #place = 0;
  /** Whether the card that the URL names, which may arrive after others, was there. */
  readonly #hasArrived = signal(false);
  /** The pause to edit when its content is loaded, and the content that was loaded last. */
  #keyToEdit: string | null = null;
  #loaded: { readonly key: string; readonly content: PauseContent } | null = null;

  readonly editing: Editing;
  readonly typed = new Typed();

  /** What is wrong with the limits of the last approval of a pause for the budget, or null. */
  readonly limitFaults = signal<{ readonly key: string; readonly faults: LimitFaults } | null>(null);

  /** The pause for which the user enters a reason to reject, or null. */
  readonly rejecting = signal<string | null>(null);

  /** Whether another user just decided the selected card: a key may still be meant for it. */
  ignoresKeys = false;

  /** Longest wait first. A decided card hides the next pause of its run. */
  readonly cards = computed<readonly Card[]>(() => {
    const busy = this.#busy.value;
    const late = this.#deps.decisions.late.value;
    const leaving = new Set([...busy.values()].map((pause) => pause.run_id));
    const open = this.#deps.waiting.pauses.value.filter((pause) => !leaving.has(pause.run_id));
    const lost = [...late.keys()].flatMap((key) => (busy.has(key) ? [] : (this.#sent.get(key) ?? [])));
    return [...open, ...lost, ...busy.values()].sort(byWait).map((pause) => {
      const key = pauseKey(pause);
      const isLate = late.get(key) ?? null;
      const mayDecide = isLate === null && pause.may_decide && this.#deps.mayApprove();
      return { key, pause, isBusy: busy.has(key), mayDecide, late: isLate };
    });
  });

  /** The selected card, or null if there is none. If it goes, the card in its place is selected. */
  readonly current = computed<Card | null>(() => {
    const cards = this.cards.value;
    const looked = cards.find(({ pause }) => isSelected(pause, this.#deps.view.value));
    return looked ?? cards[Math.min(this.#place, cards.length - 1)] ?? null;
  });

  /** The run that the URL names although it does not wait, or null. */
  readonly absent = computed<string | null>(() => {
    const { waiting, view } = this.#deps;
    return waiting.isKnown && !this.#hasArrived.value ? view.value.run : null;
  });

  constructor(deps: InboxDeps) {
    this.#deps = deps;
    this.editing = new Editing({
      send: (sent) => this.#sendEdit(sent),
      outcomeOf: (key, topic) => {
        const gone = deps.waiting.isDecided(key) ? null : deps.waiting.outcomeOf(key);
        return gone === null ? null : outcomeText(topic, gone, deps.now());
      },
    });
  }

  /** Follows the pauses. @returns stops following */
  start(): () => void {
    let last: Card | null = null;
    const arrive = (isThere: boolean): boolean => (this.#hasArrived.value = isThere || this.#hasArrived.peek());
    return effect(() => {
      const [before, card] = [last, this.current.value];
      last = card;
      const isClosed = before !== null && before.key !== card?.key;
      const isOver = isClosed && this.#deps.waiting.isKnown;
      if (card === null) arrive(isOver);
      else {
        this.#place = this.cards.value.indexOf(card);
        const view = this.#deps.view.peek();
        const isNamed = isSelected(card.pause, view);
        const hasArrived = arrive(isOver || isNamed || view.run === null);
        if (isNamed ? view.at === null : hasArrived) this.#deps.onSelect(card.pause);
      }
      if (isClosed) this.#onClosed(before);
    });
  }

  /** Tells the user that another user decided the selected card, unless the user just selected another one. */
  #onClosed({ key, pause }: Card): void {
    const { waiting } = this.#deps;
    if (waiting.isDecided(key)) return;
    if (!this.cards.peek().some((card) => card.key === key)) {
      this.ignoresKeys = true;
      this.#deps.after(LINGER_MS, () => (this.ignoresKeys = false));
    }
    const gone = waiting.outcomeOf(key);
    if (gone !== null) this.#deps.notify(outcomeText(pause.input_topic, gone, this.#deps.now()), 'plain');
  }

  select({ pause }: Card): void {
    this.#deps.onSelect(pause);
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

  /** Approves or rejects, once; at a pause for the budget it approves with the typed limits. */
  async decide(card: Card, action: 'approve' | 'reject'): Promise<void> {
    const { key, pause, mayDecide } = card;
    if (!mayDecide || card.isBusy || this.#busy.peek().has(key)) return;
    const comment = this.typed.commentOn(key).trim() || undefined;
    const { budget: status } = pause;
    const isRaise = action === 'approve' && isForBudget(pause) && status !== undefined;
    const { limits: budget, faults } = isRaise
      ? raisedLimits(this.typed.limitsOf(card), status)
      : { limits: {}, faults: {} };
    this.limitFaults.value = { key, faults };
    if (Object.keys(faults).length > 0) return;
    const outcome = await this.#send(pause, { action, comment, ...(isRaise && { budget }) });
    if (outcome.kind === 'recorded') this.typed.comment(key, '');
  }

  #sendEdit({ edit: { key, state }, change, comment }: SentEdit): Promise<Outcome> {
    const pause = this.cards.peek().find((card) => card.key === key)?.pause ?? this.#sent.get(key);
    if (pause === undefined) return Promise.resolve({ kind: 'late' });
    return this.#send({ ...pause, next_nodes: state.next_nodes }, { action: 'modify', change, comment });
  }

  /** If the decision is undone, its card is selected again. */
  async #send(pause: Approval, choice: Pick<Decision, 'action' | 'comment' | 'budget' | 'change'>): Promise<Outcome> {
    const key = pauseKey(pause);
    const { run_id: runId, expected_seq: seq, input_topic: topic } = pause;
    const next = this.#loaded?.key === key ? nextLabels(this.#loaded.content) : [];
    const effectOf = effectText(choice.action, { next, isVote: pause.votes.length + 1 < pause.quorum });
    const release = this.#hold(key, pause);
    const deciding = this.#deps.decisions.decide({ runId, seq, topic, effect: effectOf, ...choice });
    if (this.#deps.decisions.canUndo(key)) release();
    const outcome = await deciding;
    release();
    if (outcome.kind === 'undone') this.#deps.onSelect(pause);
    return outcome;
  }

  /** Keeps a decided card for a moment. @returns lets it go, at the earliest after that moment */
  #hold(key: string, pause: Approval): () => void {
    const sinceMs = this.#deps.now();
    this.#sent.set(key, pause);
    this.#busy.value = new Map(this.#busy.value).set(key, pause);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#deps.after(Math.max(0, sinceMs + LINGER_MS - this.#deps.now()), () => {
        const busy = new Map(this.#busy.peek());
        busy.delete(key);
        this.#busy.value = busy;
      });
    };
  }

  /** Opens the edit of a card when its content is loaded. */
  askForEdit(card: Card): void {
    if (!card.mayDecide || card.isBusy || isForBudget(card.pause)) return;
    this.#keyToEdit = card.key;
    this.select(card);
    if (this.#loaded !== null) this.onLoaded(this.#loaded.key, this.#loaded.content);
  }

  /** Called with the content of the selected pause. */
  onLoaded(key: string, content: PauseContent): void {
    this.#loaded = { key, content };
    if (this.#keyToEdit !== key || content.state === null) return;
    this.#keyToEdit = null;
    const { state } = content;
    const topic = state.current_state.input_topic;
    this.editing.open({ state, topic, labelOf: (node) => labelIn(content, node) });
  }

  /** Whether the content of a card is shown. */
  isShown({ key }: Card): boolean {
    return this.#loaded?.key === key;
  }

  /** Whether shortcuts are off: an edit is open or about to open, or the user enters a reason. */
  get isTyping(): boolean {
    const key = this.current.value?.key;
    const isAsked = key !== undefined && [this.#keyToEdit, this.rejecting.value].includes(key);
    return this.editing.edit.value !== null || isAsked;
  }
}

/** Whether a pause is for the budget of its run. */
export function isForBudget({ pause_reason: reason }: Approval): boolean {
  return reason === 'budget';
}

function isSelected({ run_id: runId, expected_seq: seq }: Approval, { run, at }: InboxView): boolean {
  return runId === run && (at === null || at === seq);
}

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
