/** What waits for a human, as it comes and goes: one connection for the number in the frame and for the inbox. */
import { batch, computed, signal } from '@preact/signals';
import type { ApprovalChange, Approvals } from '../../client/approvals.js';
import type { Approval, ApprovalGone } from '../../generated/schemas.js';

/** Pauses that have gone and are remembered, so that who decided them can be told to somebody who comes too late. */
const MAX_GONE = 200;
/** Between two looks at whether anything waits at all, in milliseconds. */
const LOOK_AGAIN_MS = 1_000;

/** Whose pauses: those that the key may decide, or all. */
export type Whose = 'mine' | 'all';

/** Names one pause of one run. */
export function pauseKey({ run_id: runId, expected_seq: seq }: Pick<Approval, 'run_id' | 'expected_seq'>): string {
  return `${runId} ${seq}`;
}

export class Waiting {
  readonly #approvals: Pick<Approvals, 'list' | 'watch'>;
  readonly #after: (ms: number, act: () => void) => void;
  /** By run: it waits at one pause at a time. */
  readonly #open = signal<ReadonlyMap<string, Approval>>(new Map());
  readonly #gone = signal<ReadonlyMap<string, ApprovalGone>>(new Map());
  readonly #isKnown = signal(false);
  readonly #fault = signal<unknown>(null);
  /** For whom it is followed, and from where on it goes on. */
  #reader = '';
  #cursor: string | null = null;

  /** What waits, longest first. */
  readonly pauses = computed<readonly Approval[]>(() =>
    [...this.#open.value.values()].sort(
      (a, b) => Date.parse(a.waiting_since) - Date.parse(b.waiting_since) || (a.run_id < b.run_id ? -1 : 1),
    ),
  );
  /** How many of them wait for whoever looks; null: it is not known yet. */
  readonly count = computed(() =>
    this.#isKnown.value ? this.pauses.value.filter(({ may_decide: isTheirs }) => isTheirs).length : null,
  );

  /** @param after calls something once, later */
  constructor(approvals: Pick<Approvals, 'list' | 'watch'>, after: (ms: number, act: () => void) => void) {
    this.#approvals = approvals;
    this.#after = after;
  }

  /** Whether it is known what waits. */
  get isKnown(): boolean {
    return this.#isKnown.value;
  }

  /** Why it is followed no more; null: it is. */
  get fault(): unknown {
    return this.#fault.value;
  }

  /** What became of a pause; null: it waits, or it is too long ago. */
  becameOf(key: string): ApprovalGone | null {
    return this.#gone.value.get(key) ?? null;
  }

  /**
   * Follows it until the function is called that this gives. The same reader goes on where they left.
   *
   * @param reader who looks; another one begins anew
   */
  follow(whose: Whose, reader: string | null): () => void {
    const of = JSON.stringify([whose, reader]);
    if (of !== this.#reader || this.#fault.value !== null) this.#beginFor(of);
    const ended = new AbortController();
    const { signal } = ended;
    const mine = whose === 'mine';
    const changes = this.#approvals.watch({ mine, from: this.#cursor, signal });
    void this.#read(changes, signal);
    void this.#look(mine, signal);
    return () => {
      ended.abort();
      this.#cursor = changes.cursor;
    };
  }

  #beginFor(reader: string): void {
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
      for await (const change of changes) if (!signal.aborted) this.#take(change);
    } catch (error) {
      if (!signal.aborted) this.#fault.value = error;
    }
  }

  /** A stream of what waits says nothing while nothing does: that is asked for. */
  async #look(mine: boolean, signal: AbortSignal): Promise<void> {
    if (this.#isKnown.peek()) return;
    const first = await this.#approvals.list({ mine, limit: 1, signal }).catch(() => null);
    if (signal.aborted) return;
    if (first?.length === 0) this.#isKnown.value = true;
    else this.#after(LOOK_AGAIN_MS, () => void this.#look(mine, signal));
  }

  #take(change: ApprovalChange): void {
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
