/**
 * The ledger: one leaf for each run that has ended and for each erasure, and the Merkle tree over them, which is a fold of the
 * stream. Any instance may add leaves: the exact revision of the append decides between two. An instance appends only the leaves
 * that its views lack after they have folded every event before its append, so it never adds a second leaf for a run.
 */
import { RevisionConflict } from '../eventlog/errors.js';
import type { EventLog, NewEvent, Position, RecordedEvent } from '../eventlog/port.js';
import { appendWithRetry, lastEvent } from '../eventlog/port.js';
import { hashOf } from '../eventsourcing/hash-chain.js';
import { isUnreadable } from '../run/errors.js';
import { RUN_ENDS, runIdOf, runStream } from '../run/events.js';
import { Sequencer, TaskTracker } from '../system/async/tasks.js';
import type { System } from '../system/system.js';
import type { Erased, ErasureLeaf, RunLeaf } from './events.js';
import { LEDGER_STREAM, entryOf, leafEvent, leafOf, treeIn } from './events.js';
import type { MerkleTree } from './tree.js';
import { leafHash } from './tree.js';

/** Time between two appends of leaves, in milliseconds: at 500 ended runs a second, 500 leaves an append. */
const BATCH_MS = 1_000;
/** Most leaves of an append; of 1,000 each has room for 1,000 bytes, and the longest leaf of a run has 300. */
const MAX_LEAVES = 1_000;
/** Time without a new leaf after which an instance adds leaves although it is the turn of another one, in milliseconds. */
const OUT_OF_TURN_MS = 3_000;
/** Most ends in memory, about 0.5 KB each. Later ones are read from the log. */
const MAX_ENDS = 10_000;

/** An erasure that gets a leaf. */
export interface Erasing {
  readonly leaf: ErasureLeaf;
  /** What the totals count of an erased run; the stream of an erased document. */
  readonly kept?: string;
  /** Number of the leaf of an earlier erasure of the same, which does not count, or -1. */
  readonly after: number;
}

export interface LedgerDeps {
  readonly log: EventLog;
  readonly system: System;
  /** How this instance sees the others. */
  readonly members: { isInTurn(subject: string): boolean };
  /** The fold of the log, which passes each event to the ledger. */
  readonly projector: { waitFor(position: Position | null, signal?: AbortSignal): Promise<void> };
  /**
   * Ids of the first runs that have ended and have no leaf, in the order of their ends. The answer includes every event that
   * was recorded before the call.
   */
  readonly endedWithoutLeaf: (max: number, signal: AbortSignal) => Promise<readonly string[]>;
  /** The newest erasure of a run or a document, or null if there is none. */
  readonly erasedAs: (what: ErasureLeaf['what'], id: string) => Promise<Pick<Erased, 'index'> | null>;
  /** Receives a failure in the background; the next batch tries again. */
  readonly onFault: (error: unknown) => void;
}

export class Ledger {
  readonly categories = ['run', 'ledger'];
  readonly types = [...RUN_ENDS, 'LeafAdded'];
  readonly tree: MerkleTree;
  readonly #deps: LedgerDeps;
  /** The leaves of runs that ended lately. */
  readonly #ends = new Map<string, RunLeaf>();
  /** Ended runs that get no leaf: damaged ones, which the next start tries again, and erased ones. */
  readonly #damaged = new Set<string>();
  /** Whether runs may have ended that have no leaf yet. */
  #mayLackLeaves = true;
  readonly #tasks = new TaskTracker();
  /** Appends run one after the other. */
  readonly #appends = new Sequencer();
  /** Whether the subscription has delivered a leaf that the tree cannot take, because it lacks an earlier one. */
  #isBehind = false;
  /** When the newest leaf came, or the first end began to wait, on the monotonic clock. */
  #progressMs = 0;

  constructor(deps: LedgerDeps) {
    this.#deps = deps;
    this.tree = treeIn(deps.log);
  }

  /**
   * Folds the stream. The caller subscribes the ledger to the events of the log before.
   *
   * @throws {LedgerCorrupt | LogUnavailable}
   */
  async fold(): Promise<void> {
    // A leaf that the subscription delivers meanwhile may come too late for the read.
    do await this.#readOn();
    while (this.#isBehind);
  }

  async #readOn(): Promise<void> {
    this.#isBehind = false;
    const range = { from: this.tree.size };
    for await (const event of this.#deps.log.readStream(LEDGER_STREAM, range)) this.#take(event);
  }

  /** Adds the missing leaves in the background, and then that of each run that ends. Call it after `fold`. */
  start(): void {
    const { system, onFault } = this.#deps;
    this.#tasks.repeat(() => this.#appends.run(() => this.#addDue()), { system, everyMs: BATCH_MS, onFault });
  }

  /** Receives each event of the log before it is folded. */
  onEventRecorded(event: RecordedEvent): void {
    if (event.stream !== LEDGER_STREAM) {
      const end = leafOfEnd(event);
      if (end === null) return;
      this.#mayLackLeaves = true;
      if (this.#ends.size < MAX_ENDS) this.#ends.set(end.runId, end);
      return;
    }
    try {
      const leaf = leafOf(event);
      if (leaf.kind === 'run') this.#ends.delete(leaf.runId);
      this.#take(event);
      this.#progressMs = this.#deps.system.monotonicMs();
    } catch (error) {
      // From here on this instance adds no leaf, because the tree would not cover it.
      this.#deps.onFault(error);
    }
  }

  /**
   * Adds the leaves of erasures in one append, after the leaf of each of their runs. One that has a leaf gets no second one.
   * Resolves once they are durable, and folded here.
   *
   * @param erasures at most 500
   * @throws {ServiceStopping | LogUnavailable | LogFull}
   */
  erase(erasures: readonly Erasing[]): Promise<void> {
    return this.#tasks.track(this.#appends.run(() => this.#erase(erasures)));
  }

  /** Adds the leaves of the runs that have ended. */
  async finish(): Promise<void> {
    const { onFault } = this.#deps;
    if (!this.#mayLackLeaves) return;
    const adding = this.#appends.run(() => this.#addEnds());
    await adding.catch((error: unknown) => this.#tasks.isEnding || onFault(error));
  }

  /** Adds no more leaves. */
  async stop(): Promise<void> {
    await this.#tasks.end();
    await this.#appends.settled();
  }

  /** Adds leaves if it is this instance's turn, or if the one in turn adds none. */
  async #addDue(): Promise<void> {
    const { members, system } = this.#deps;
    const nowMs = system.monotonicMs();
    if (!this.#mayLackLeaves) this.#progressMs = nowMs;
    else if (members.isInTurn(LEDGER_STREAM) || nowMs - this.#progressMs >= OUT_OF_TURN_MS) await this.#addEnds();
  }

  /** Adds the leaves of the runs that have ended and have none. Returns false if another append came first. */
  async #addEnds(): Promise<boolean> {
    const { endedWithoutLeaf, system } = this.#deps;
    this.#mayLackLeaves = false;
    let isWhole = false;
    try {
      for (let found = MAX_LEAVES; found === MAX_LEAVES;) {
        const { size } = this.tree;
        const unread = await endedWithoutLeaf(MAX_LEAVES + this.#damaged.size, this.#tasks.signal);
        const runIds = unread.filter((runId) => !this.#damaged.has(runId)).slice(0, MAX_LEAVES);
        const leaves = await Promise.all(runIds.map((runId) => this.#endOf(runId)));
        const events = leaves.flatMap((leaf) => (leaf === null ? [] : leafEvent(leaf, system)));
        if (!(await this.#append(events, size))) return false;
        found = runIds.length;
      }
      isWhole = true;
      return true;
    } finally {
      this.#mayLackLeaves ||= !isWhole;
    }
  }

  /** The leaf of a run's end, or null if the run is damaged or was erased a moment ago. */
  async #endOf(runId: string): Promise<RunLeaf | null> {
    const known = this.#ends.get(runId);
    if (known !== undefined) return known;
    try {
      const last = await lastEvent(this.#deps.log, runStream(runId));
      const leaf = last && leafOfEnd(last);
      if (leaf !== null) return leaf;
    } catch (error) {
      if (!isUnreadable(error)) throw error;
    }
    this.#damaged.add(runId);
    return null;
  }

  async #erase(erasures: readonly Erasing[]): Promise<void> {
    const { erasedAs, system } = this.#deps;
    for (;;) {
      // 1. Each run to erase has its leaf, and everything that is in the log is known here.
      if (!(await this.#addEnds())) continue;
      // 2. Add the leaves of those that have none, unless another append comes first.
      const { size } = this.tree;
      const known = await Promise.all(erasures.map(({ leaf: { what, id } }) => erasedAs(what, id)));
      const missing = erasures.filter(({ after }, at) => (known[at]?.index ?? -1) <= after);
      const events = missing.map(({ leaf, kept }) => leafEvent(leaf, system, kept));
      if (await this.#append(events, size)) return;
    }
  }

  /** Appends leaves after the first `size`, and waits until they are folded here. Returns false if another append came first. */
  async #append(events: readonly NewEvent[], size: number): Promise<boolean> {
    const { log, system, projector } = this.#deps;
    const { signal } = this.#tasks;
    if (events.length === 0) return true;
    const expected = size === 0 ? 'none' : size - 1;
    try {
      const { position } = await appendWithRetry(log, { stream: LEDGER_STREAM, events, expected }, { system, signal });
      await projector.waitFor(position, signal);
      return true;
    } catch (error) {
      if (error instanceof RevisionConflict) return false;
      throw error;
    }
  }

  /** Adds the next leaf to the tree; an earlier one has no effect. @throws {LedgerCorrupt} */
  #take(event: RecordedEvent): void {
    if (event.revision === this.tree.size) this.tree.add(leafHash(entryOf(event)));
    else this.#isBehind ||= event.revision > this.tree.size;
  }
}

/** The leaf of the run that an event ends, or null if it ends none or another program wrote it. */
function leafOfEnd(event: RecordedEvent): RunLeaf | null {
  const { stream, type, revision, metadata } = event;
  if (type !== 'RunCompleted' && type !== 'RunFailed') return null;
  const [runId, endedAt, headHash] = [runIdOf(stream), metadata['occurredAt'], hashOf(event)];
  if (runId === null || endedAt === undefined || headHash === '') return null;
  const status = type === 'RunCompleted' ? 'completed' : 'failed';
  return { kind: 'run', runId, events: revision + 1, headHash, status, endedAt };
}
