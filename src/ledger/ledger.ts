/**
 * The ledger: one leaf for each run that has ended and for each erasure, and the Merkle tree over them, which is a fold of the
 * stream. Any instance may add leaves: the exact revision of the append decides between two. An instance appends only after it
 * has seen every event before its append, so it never adds a second leaf for a run.
 */
import { RevisionConflict } from '../eventlog/errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { appendWithRetry } from '../eventlog/port.js';
import { Sequencer, TaskTracker } from '../system/async/tasks.js';
import type { System } from '../system/system.js';
import type { ErasureLeaf, Leaf } from './events.js';
import { LEDGER_STREAM, entryOf, leafEvent, leafOf } from './events.js';
import { RunEnds } from './run-ends.js';
import { MerkleTree, TILE_WIDTH, leafHash } from './tree.js';

/** Time between two appends of leaves, in milliseconds: at 500 ended runs a second, 500 leaves an append. */
const BATCH_MS = 1_000;
/** Most leaves of an append; of 1,000 each has room for 1,000 bytes, and the longest leaf of a run has 300. */
const MAX_LEAVES = 1_000;
/** Time without a new leaf after which an instance adds leaves although it is the turn of another one, in milliseconds. */
const OUT_OF_TURN_MS = 3_000;

/** Erasures that a start may have to complete. */
const MAX_ERASURES = 1_000;

const NONE: ReadonlyMap<string, string> = new Map();

interface Erasing {
  /** By id: what the totals count of an erased run; the stream of an erased document. */
  readonly kept: ReadonlyMap<string, string>;
  /** Number of the leaf of an earlier erasure of the same, which does not count. */
  readonly after: number;
}

export interface LedgerDeps {
  readonly log: EventLog;
  readonly system: System;
  /** How this instance sees the others. */
  readonly members: { isInTurn(subject: string): boolean };
  /** The fold of the log, which passes each event to the ledger. */
  readonly projector: { waitFor(position: Position | null, signal?: AbortSignal): Promise<void> };
  /** The number of the leaf of an erasure, or null if there is none. */
  readonly erasureOf: (what: ErasureLeaf['what'], id: string) => Promise<number | null>;
  /** Receives a failure in the background; the next batch tries again. */
  readonly onFault: (error: unknown) => void;
}

export class Ledger {
  readonly categories = ['run', 'ledger'];
  readonly tree = new MerkleTree();
  /** The newest erasures that the fold has read, at most 1,000. */
  readonly erasures: RecordedEvent[] = [];
  readonly #deps: LedgerDeps;
  readonly #ends = new RunEnds();
  readonly #tasks = new TaskTracker();
  /** Appends run one after the other. */
  readonly #appends = new Sequencer();
  /** Whether the stream has been folded, so that the subscription continues the fold. */
  #isFolded = false;
  /** Number of the newest leaf that the subscription has delivered before that. */
  #delivered = -1;
  /** When the newest leaf came, or the first end began to wait, on the monotonic clock. */
  #progressMs = 0;
  #cancelTimer: () => void = () => undefined;

  constructor(deps: LedgerDeps) {
    this.#deps = deps;
  }

  /**
   * Folds the stream. The caller subscribes the ledger to the events of the log before.
   *
   * @throws {LedgerCorrupt | LogUnavailable}
   */
  async fold(): Promise<void> {
    const { log } = this.#deps;
    // A leaf that the subscription delivers meanwhile may come too late for the read.
    do {
      for await (const event of log.readStream(LEDGER_STREAM, { from: this.tree.size })) {
        this.tree.add(leafHash(entryOf(event)));
        // A leaf of a run has no text in which this could be.
        if (event.data.includes('"erasure"') && this.erasures.push(event) > MAX_ERASURES) this.erasures.shift();
      }
    } while (this.tree.size <= this.#delivered);
    this.#isFolded = true;
  }

  /** Adds the missing leaves in the background, and then that of each run that ends. Call it after `fold`. */
  start(): void {
    this.#schedule();
  }

  /** Receives each event of the log before it is folded. */
  onEventRecorded(event: RecordedEvent): void {
    if (event.stream !== LEDGER_STREAM) this.#ends.onRunEvent(event);
    else if (!this.#isFolded) this.#delivered = event.revision;
    else if (event.revision === this.tree.size) this.#take(event);
  }

  /** Number of ended runs in memory that have no leaf yet. */
  get waiting(): number {
    return this.#ends.size;
  }

  /**
   * Adds the leaves of erasures in one append, after the leaf of each of their runs. One that has a leaf gets no second one.
   * Resolves once they are durable, and folded here.
   *
   * @param erasures at most 500
   * @throws {ServiceStopping | LogUnavailable | LogFull}
   */
  erase(erasures: readonly ErasureLeaf[], erasing: Erasing): Promise<void> {
    return this.#tasks.track(this.#appends.run(() => this.#erase(erasures, erasing)));
  }

  /** The entries of a tile, by its number. @param width how many, 1 to 256 */
  async entries(tile: number, width = TILE_WIDTH): Promise<readonly Buffer[]> {
    const entries: Buffer[] = [];
    const range = { from: tile * TILE_WIDTH, max: width };
    for await (const event of this.#deps.log.readStream(LEDGER_STREAM, range)) entries.push(entryOf(event));
    return entries;
  }

  /** The leaf hashes of a full tile, for proofs of the tree. */
  readonly leafHashes = async (tile: number): Promise<readonly Buffer[]> => (await this.entries(tile)).map(leafHash);

  /** Adds the leaves of the runs that have ended. */
  async finish(): Promise<void> {
    this.#cancelTimer();
    const { onFault } = this.#deps;
    if (!this.#isFolded) return;
    const adding = this.#appends.run(async () => {
      await this.#readEnds();
      await this.#addEnds();
    });
    await adding.catch((error: unknown) => this.#tasks.isEnding || onFault(error));
  }

  /** Adds no more leaves. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    await this.#tasks.end();
    await this.#appends.settled();
  }

  #schedule(): void {
    const { system, onFault } = this.#deps;
    if (this.#tasks.isEnding) return;
    this.#cancelTimer = system.after(BATCH_MS, () => {
      const adding = this.#tasks.track(this.#appends.run(() => this.#addDue()));
      void adding.catch((error: unknown) => this.#tasks.isEnding || onFault(error)).then(() => this.#schedule());
    });
  }

  /** Adds leaves if it is this instance's turn, or if the one in turn adds none. */
  async #addDue(): Promise<void> {
    const { members, system } = this.#deps;
    await this.#readEnds();
    const nowMs = system.monotonicMs();
    if (this.#ends.size === 0) this.#progressMs = nowMs;
    else if (members.isInTurn(LEDGER_STREAM) || nowMs - this.#progressMs >= OUT_OF_TURN_MS) await this.#addEnds();
  }

  /** Reads the ends that the subscription has not delivered. */
  async #readEnds(): Promise<void> {
    if (this.#ends.isBehind)
      await this.#ends.readOn(this.#deps.log, { size: this.tree.size, signal: this.#tasks.signal });
  }

  /** Adds the leaves of the ends that wait, until none waits or another instance is faster. */
  async #addEnds(): Promise<void> {
    while (this.#ends.size > 0 && !this.#tasks.isEnding)
      if (!(await this.#append(this.#ends.first(MAX_LEAVES)))) return;
  }

  async #erase(erasures: readonly ErasureLeaf[], { kept, after }: Erasing): Promise<void> {
    const { log, projector, erasureOf } = this.#deps;
    for (;;) {
      // 1. Everything that is in the log is known here.
      await projector.waitFor(await log.head(), this.#tasks.signal);
      await this.#readEnds();
      // 2. Each run to erase has its leaf.
      const lacksLeaf = ({ what, id }: ErasureLeaf) => what === 'run' && (this.#ends.isBehind || this.#ends.has(id));
      if (erasures.some(lacksLeaf)) {
        await this.#append(this.#ends.first(MAX_LEAVES));
        continue;
      }
      // 3. Add the leaves of those that have none, unless another append comes first.
      const size = this.tree.size;
      const known = await Promise.all(erasures.map(({ what, id }) => erasureOf(what, id)));
      const missing = erasures.filter((_, at) => (known[at] ?? -1) <= after);
      if (await this.#append(missing, { size, kept })) return;
    }
  }

  /** Appends leaves after the known ones, and waits until they are folded here. Returns false if another append came first. */
  async #append(leaves: readonly Leaf[], { size = this.tree.size, kept = NONE } = {}): Promise<boolean> {
    const { log, system, projector } = this.#deps;
    const { signal } = this.#tasks;
    if (leaves.length === 0) return true;
    const events = leaves.map((leaf) => leafEvent(leaf, system, leaf.kind === 'run' ? undefined : kept.get(leaf.id)));
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

  /** A leaf that cannot be read ends the fold: this instance then adds no leaf, because the tree would not cover it. */
  #take(event: RecordedEvent): void {
    try {
      const leaf = leafOf(event);
      this.tree.add(leafHash(entryOf(event)));
      this.#progressMs = this.#deps.system.monotonicMs();
      if (leaf.kind === 'run') this.#ends.onLeaf(leaf.runId);
    } catch (error) {
      this.#cancelTimer();
      this.#isFolded = false;
      this.#deps.onFault(error);
    }
  }
}
