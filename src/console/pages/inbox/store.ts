/** The inbox: its cards, which of them is looked at, and decisions on their way. */
import type { ReadonlySignal } from '@preact/signals';
import { batch, computed, effect, signal } from '@preact/signals';
import type { CouncilClient } from '../../../client/client.js';
import { InvalidError, StalePauseError, TooLargeError } from '../../../client/errors.js';
import type { Pause } from '../../../client/pause.js';
import type { Approval, ApprovalGone, GodModeState } from '../../../generated/schemas.js';
import { pauseKey, type Waiting } from '../../shell/waiting.js';
import { excerpt } from '../../record/counts.js';
import { agoText } from '../../record/durations.js';
import { editOf, type Edit, type Faults, faultsOf, overrideOf, unreadable } from './edit.js';

/**
 * A card stays for so long after it was decided on: a second click or key meets it, not the one that takes its place. When it
 * goes by somebody else, no key decides for so long: it was meant for it.
 */
const LINGER_MS = 300;
/** How long it is waited for who decided a pause in one's place. */
const TOLD_WITHIN_MS = 3_000;
/** Pauses that were decided here and are remembered. */
const MAX_OVER = 200;

export interface Card {
  /** Names its pause. */
  readonly key: string;
  readonly pause: Approval;
  /** A decision is on its way, or was just taken. */
  readonly isBusy: boolean;
  /** Whether it is for whoever looks to decide. */
  readonly mayDecide: boolean;
}

/** Which card is looked at: what the address says. */
export interface InboxView {
  /** The run whose card is looked at; null: the first. */
  readonly run: string | null;
  /** `seq` of its pause; null: whichever it is at. */
  readonly at: number | null;
}

export interface InboxDeps {
  readonly client: Pick<CouncilClient, 'run'>;
  readonly waiting: Waiting;
  readonly view: ReadonlySignal<InboxView>;
  /** Whether whoever looks may decide anything. */
  readonly mayApprove: () => boolean;
  /** Makes a pause the one that is looked at. */
  readonly onLook: (pause: Approval) => void;
  /** Says something short to whoever looks. */
  readonly tell: (text: string, tone: 'plain' | 'wait') => void;
  readonly onFault: (error: unknown) => void;
  readonly now: () => number;
  /** Calls something once, later. */
  readonly after: (ms: number, act: () => void) => void;
}

export type Action = 'approve' | 'reject';

/** An edit that is open. */
export interface OpenEdit {
  readonly key: string;
  readonly pause: Approval;
  /** As the pause is shown. */
  readonly shown: Edit;
  readonly typed: Edit;
  readonly comment: string;
  readonly faults: Faults;
}

export class InboxStore {
  readonly #deps: InboxDeps;
  /** One for each pause, so that a decision that is sent again counts once. */
  readonly #pauses = new Map<string, Pause>();
  /** Decisions on their way, and cards just decided on. */
  readonly #busy = signal<ReadonlyMap<string, Approval>>(new Map());
  /** Decided on here: gone, whatever the stream has told so far. */
  readonly #over = signal<ReadonlySet<string>>(new Set());
  readonly #edits = new Map<string, OpenEdit>();
  readonly #comments = signal<ReadonlyMap<string, string>>(new Map());
  #place = 0;
  /** The pause that is to be edited once its state is known, and the state that was known last. */
  #wanted: string | null = null;
  #known: GodModeState | null = null;

  /** The pause that is about to be rejected with a word of why; null: none. */
  readonly rejecting = signal<string | null>(null);

  /** The card that was looked at has just gone by somebody else: a key may be meant for it still. */
  isSurprise = false;

  /** The edit in its dialog; null: none is open. */
  readonly edit = signal<OpenEdit | null>(null);

  /** Whether the open edit is on its way. */
  readonly isSending = computed(() => this.edit.value !== null && this.#busy.value.has(this.edit.value.key));

  /** How the pause that is edited was decided meanwhile by others; null: it was not. */
  readonly becameOfEdited = computed<string | null>(() => {
    const { value: edit } = this.edit;
    const gone = edit === null || this.#busy.value.has(edit.key) ? null : this.#deps.waiting.becameOf(edit.key);
    return edit === null || gone === null ? null : this.#goneWords(edit.pause, gone);
  });

  /** Longest wait first. While a decided card is still there, the next pause of its run is not. */
  readonly cards = computed<readonly Card[]>(() => {
    const busy = this.#busy.value;
    const leaving = new Set([...busy.values()].map((pause) => pause.run_id));
    const open = this.#deps.waiting.pauses.value.filter(
      (pause) => !this.#over.value.has(pauseKey(pause)) && !leaving.has(pause.run_id),
    );
    return [...open, ...busy.values()].sort(byWait).map((pause) => {
      const key = pauseKey(pause);
      return { key, pause, isBusy: busy.has(key), mayDecide: pause.may_decide && this.#deps.mayApprove() };
    });
  });

  /** The card that is looked at; null: there is none. When it goes, the one that takes its place is. */
  readonly current = computed<Card | null>(() => {
    const cards = this.cards.value;
    const looked = cards.find(({ pause }) => isLookedAt(pause, this.#deps.view.value));
    return looked ?? cards[Math.min(this.#place, cards.length - 1)] ?? null;
  });

  constructor(deps: InboxDeps) {
    this.#deps = deps;
  }

  /** Follows until the function is called that this gives. */
  start(): () => void {
    let last: Card | null = null;
    // What the address names may come after others.
    let hasCome = false;
    return effect(() => {
      const [before, card] = [last, this.current.value];
      last = card;
      if (card !== null) {
        this.#place = this.cards.value.indexOf(card);
        const view = this.#deps.view.peek();
        const isNamed = isLookedAt(card.pause, view);
        hasCome ||= isNamed || view.run === null;
        if (isNamed ? view.at === null : hasCome) this.#deps.onLook(card.pause);
      }
      if (before !== null && !before.isBusy && before.key !== card?.key) this.#tellOfLoss(before);
    });
  }

  /** What was looked at has gone by somebody else, unless it is just no longer looked at. */
  #tellOfLoss({ key, pause }: Card): void {
    if (!this.cards.peek().some((card) => card.key === key)) {
      this.isSurprise = true;
      this.#deps.after(LINGER_MS, () => (this.isSurprise = false));
    }
    const gone = this.#deps.waiting.becameOf(key);
    if (gone !== null && !this.#over.peek().has(key)) this.#deps.tell(this.#goneWords(pause, gone), 'plain');
  }

  look({ pause }: Card): void {
    this.#deps.onLook(pause);
  }

  /** Looks at the card before or after. */
  step(by: 1 | -1): void {
    const cards = this.cards.value;
    const next = cards[cards.findIndex(({ key }) => key === this.current.value?.key) + by];
    if (next !== undefined) this.look(next);
  }

  /** Before the card that is looked at is rejected by key. */
  askWhy(): void {
    const { value: card } = this.current;
    if (card?.mayDecide === true && !card.isBusy) this.rejecting.value = card.key;
  }

  commentOn(key: string): string {
    return this.#comments.value.get(key) ?? '';
  }

  comment(key: string, text: string): void {
    this.#comments.value = new Map([...this.#comments.value, [key, text] as const].slice(-MAX_OVER));
  }

  /** Approves or rejects, once. */
  async decide({ key, pause, mayDecide }: Card, action: Action): Promise<void> {
    if (!mayDecide || this.#busy.peek().has(key)) return;
    const comment = this.commentOn(key).trim() || undefined;
    await this.#send(pause, (at) => at[action]({ comment })).catch(this.#deps.onFault);
  }

  /** Opens the edit of a card as soon as its state is known: a new one, or the one that was left. */
  askForEdit(card: Card): void {
    if (!card.mayDecide || card.isBusy) return;
    this.#wanted = card.key;
    this.look(card);
    if (this.#known !== null) this.know(card.pause, this.#known);
  }

  /** The state at the pause that is looked at has come. */
  know(pause: Approval, state: GodModeState): void {
    this.#known = state;
    const key = pauseKey(pause);
    if (this.#wanted !== key || key !== pauseKey({ run_id: state.run_id, expected_seq: state.seq })) return;
    this.#wanted = null;
    const shown = editOf(state);
    this.edit.value = this.#edits.get(key) ?? { key, pause, shown, typed: shown, comment: '', faults: {} };
  }

  /** Whether keys mean no card: an edit is open or about to be, or a word of why is. */
  get isTyping(): boolean {
    const key = this.current.value?.key;
    return this.edit.value !== null || (key !== undefined && [this.#wanted, this.rejecting.value].includes(key));
  }

  type(change: Partial<Edit>, comment = this.edit.value?.comment ?? ''): void {
    const { value: edit } = this.edit;
    if (edit !== null) this.#show({ ...edit, comment, typed: { ...edit.typed, ...change } });
  }

  /** What was typed is kept for as long as the pause is there. */
  closeEdit(): void {
    const { value: edit } = this.edit;
    if (edit !== null && this.becameOfEdited.value !== null) this.#edits.delete(edit.key);
    this.edit.value = null;
  }

  /** Sends the keys that the open edit changes, once. Refusals are shown at their fields, and the edit is kept. */
  async sendEdit(): Promise<void> {
    const { value: edit } = this.edit;
    if (edit === null || this.#busy.peek().has(edit.key)) return;
    const faults = unreadable(edit.typed);
    if (Object.keys(faults).length > 0) return this.#show({ ...edit, faults });
    const override = overrideOf(edit.shown, edit.typed);
    const comment = edit.comment.trim() || undefined;
    try {
      await this.#send(edit.pause, (at) => at.modify(override, { comment }));
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

  /** @throws {CouncilError} what is no answer to the pause: it waits on */
  async #send(pause: Approval, decide: (at: Pause) => ReturnType<Pause['approve']>): Promise<void> {
    const key = pauseKey(pause);
    const sentMs = this.#deps.now();
    this.#busy.value = new Map(this.#busy.value).set(key, pause);
    let isOver = true;
    try {
      const { status } = await decide(this.#pauseOf(key, pause));
      isOver = status !== 'paused';
      this.comment(key, '');
      this.#deps.tell(
        isOver ? `Decided: ${quoted(pause)}` : `Your vote is kept: ${quoted(pause)} waits for others`,
        'plain',
      );
    } catch (error) {
      isOver = error instanceof StalePauseError;
      if (!isOver) throw error;
      await this.#tellTooLate(pause, key);
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
      if (isOver) this.#over.value = new Set([...this.#over.value, key].slice(-MAX_OVER));
      this.#busy.value = busy;
    });
  }

  #pauseOf(key: string, { run_id: runId, expected_seq: seq }: Approval): Pause {
    const pause = this.#pauses.get(key) ?? this.#deps.client.run(runId).pauseAt(seq);
    this.#pauses.set(key, pause);
    return pause;
  }

  async #tellTooLate(pause: Approval, key: string): Promise<void> {
    const gone = await this.#whatBecameOf(key);
    const outcome = gone === null ? `${quoted(pause)} was decided before.` : this.#goneWords(pause, gone);
    this.#deps.tell(`Too late: ${outcome}`, 'wait');
  }

  #whatBecameOf(key: string): Promise<ApprovalGone | null> {
    return new Promise((resolve) => {
      this.#deps.after(TOLD_WITHIN_MS, () => resolve(null));
      const stop = effect(() => {
        const gone = this.#deps.waiting.becameOf(key);
        if (gone !== null) resolve(gone);
      });
      this.#deps.after(TOLD_WITHIN_MS, stop);
    });
  }

  #goneWords(pause: Approval, { actor, outcome, at }: ApprovalGone): string {
    const ago = agoText(this.#deps.now() - Date.parse(at));
    return actor === null
      ? `${quoted(pause)} was ${OUTCOMES[outcome]} ${ago}.`
      : `${actor} ${OUTCOMES[outcome]} ${quoted(pause)} ${ago}.`;
  }
}

function isLookedAt({ run_id: runId, expected_seq: seq }: Approval, { run, at }: InboxView): boolean {
  return runId === run && (at === null || at === seq);
}

const OUTCOMES: Readonly<Record<ApprovalGone['outcome'], string>> = {
  approve: 'approved',
  reject: 'rejected',
  modify: 'edited and passed on',
  failed: 'ended',
  escalated: 'passed to others',
};

function quoted({ input_topic: topic }: Approval): string {
  return `“${excerpt(topic, 60)}”`;
}

function byWait(a: Approval, b: Approval): number {
  return Date.parse(a.waiting_since) - Date.parse(b.waiting_since) || (a.run_id < b.run_id ? -1 : 1);
}
