/** The pauses that wait for a decision: one connection for the navigation, the inbox and notifications. */
import { batch, computed, effect, signal } from '@preact/signals';
import type { ApprovalChange, Approvals } from '../../client/approvals.js';
import type { Approval, ApprovalGone } from '../../generated/schemas.js';

/** Most outcomes that are kept, so that a user who decides too late sees who decided; also most own decisions. */
const MAX_GONE = 200;
/** Between two checks whether the list is empty, in milliseconds. */
const CHECK_EMPTY_MS = 1_000;

/** Pauses that the key may decide, or all pauses. */
export type Whose = 'mine' | 'all';

/** A key for a pause: run id and `seq`. */
export function pauseKey({ run_id: runId, expected_seq: seq }: Pick<Approval, 'run_id' | 'expected_seq'>): string {
  return `${runId} ${seq}`;
}

export class PendingApprovals {
  readonly #approvals: Pick<Approvals, 'list' | 'watch'>;
  readonly #after: (ms: number, act: () => void) => void;
  /** By run, which has one pause at a time. */
  readonly #open = signal<ReadonlyMap<string, Approval>>(new Map());
  readonly #gone = signal<ReadonlyMap<string, ApprovalGone>>(new Map());
  /** Pauses that the user has decided. The stream may still list them. */
  readonly #decided = signal<ReadonlySet<string>>(new Set());
  readonly #isKnown = signal(false);
  readonly #fault = signal<unknown>(null);
  /** The reader that `follow` was last called for, and the cursor to continue from. */
  #reader = '';
  #cursor: string | null = null;

  /** Open pauses that the user has not decided, longest wait first. */
  readonly pauses = computed<readonly Approval[]>(() =>
    [...this.#open.value.values()].filter((pause) => !this.#decided.value.has(pauseKey(pause))).sort(byWait),
  );
  /** Number of pauses that the user may decide, or null before the first answer. */
  readonly count = computed(() =>
    this.#isKnown.value ? this.pauses.value.filter(({ may_decide: isTheirs }) => isTheirs).length : null,
  );

  /** @param after calls `act` once, later */
  constructor(approvals: Pick<Approvals, 'list' | 'watch'>, after: (ms: number, act: () => void) => void) {
    this.#approvals = approvals;
    this.#after = after;
  }

  /** Whether the first answer has arrived. */
  get isKnown(): boolean {
    return this.#isKnown.value;
  }

  /** Why the stream has ended, or null while it is open. */
  get fault(): unknown {
    return this.#fault.value;
  }

  /** The outcome of a pause, or null if it is open or too old. */
  outcomeOf(key: string): ApprovalGone | null {
    return this.#gone.value.get(key) ?? null;
  }

  /** Calls back when the outcome of a pause is known, until the signal aborts. */
  onOutcome(key: string, ended: AbortSignal, act: (gone: ApprovalGone) => void): void {
    const stop = effect(() => {
      const gone = this.outcomeOf(key);
      if (gone !== null && !ended.aborted) act(gone);
    });
    if (ended.aborted) stop();
    else ended.addEventListener('abort', stop);
  }

  /** The outcome of a pause, or null if it is not known within a time. */
  outcomeWithin(key: string, ms: number): Promise<ApprovalGone | null> {
    return new Promise((resolve) => {
      const ended = new AbortController();
      const end = (gone: ApprovalGone | null): void => {
        ended.abort();
        resolve(gone);
      };
      this.#after(ms, () => end(null));
      this.onOutcome(key, ended.signal, end);
    });
  }

  /** Hides a pause that the user has decided, or shows it again if the decision was not recorded. */
  setDecided(key: string, isDecided: boolean): void {
    const others = [...this.#decided.peek()].filter((each) => each !== key);
    this.#decided.value = new Set((isDecided ? [...others, key] : others).slice(-MAX_GONE));
  }

  /** Whether the user has decided a pause. */
  isDecided(key: string): boolean {
    return this.#decided.value.has(key);
  }

  /**
   * Follows the pauses. For the same reader it continues after the last change; for another it starts again.
   *
   * @returns stops following
   */
  follow(whose: Whose, reader: string | null): () => void {
    const of = JSON.stringify([whose, reader]);
    if (of !== this.#reader || this.#fault.value !== null) this.#reset(of);
    const ended = new AbortController();
    const { signal } = ended;
    const mine = whose === 'mine';
    const changes = this.#approvals.watch({ mine, from: this.#cursor, signal });
    void this.#read(changes, signal);
    void this.#checkEmpty(mine, signal);
    return () => {
      ended.abort();
      this.#cursor = changes.cursor;
    };
  }

  #reset(reader: string): void {
    batch(() => {
      this.#reader = reader;
      this.#cursor = null;
      this.#open.value = new Map();
      this.#gone.value = new Map();
      this.#isKnown.value = false;
      this.#fault.value = null;
    });
  }

  async #read(changes: AsyncIterable<ApprovalChange>, signal: AbortSignal): Promise<void> {
    try {
      for await (const change of changes) if (!signal.aborted) this.#onChange(change);
    } catch (error) {
      if (!signal.aborted) this.#fault.value = error;
    }
  }

  /** The stream sends nothing if there is no pause, so this asks for the list until it is known to be empty. */
  async #checkEmpty(mine: boolean, signal: AbortSignal): Promise<void> {
    if (this.#isKnown.peek()) return;
    const first = await this.#approvals.list({ mine, limit: 1, signal }).catch(() => null);
    if (signal.aborted) return;
    if (first?.length === 0) this.#isKnown.value = true;
    else this.#after(CHECK_EMPTY_MS, () => void this.#checkEmpty(mine, signal));
  }

  #onChange(change: ApprovalChange): void {
    const key = pauseKey(change);
    const open = new Map(this.#open.peek());
    const gone = this.#gone.peek();
    const isOpen = change.type === 'waiting' && !gone.has(key);
    if (isOpen) open.set(change.run_id, change);
    else if (change.expected_seq >= (open.get(change.run_id)?.expected_seq ?? 0)) open.delete(change.run_id);
    batch(() => {
      this.#open.value = open;
      if (change.type === 'gone') this.#gone.value = new Map([...gone, [key, change] as const].slice(-MAX_GONE));
      this.#isKnown.value = true;
    });
  }
}

/** Longest wait first. */
export function byWait(a: Approval, b: Approval): number {
  return Date.parse(a.waiting_since) - Date.parse(b.waiting_since) || (a.run_id < b.run_id ? -1 : 1);
}
