/**
 * The ends of runs that have no leaf yet, in the order of the log. Leaves are added in that order and at the exact revision, so
 * a run has a leaf if, and only if, it ended at or before the end of the newest run leaf: so no list of all leaves is needed to
 * add none twice.
 */
import { StreamRemoved } from '../eventlog/errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { hashOf } from '../eventsourcing/hash-chain.js';
import { RunErased } from '../run/errors.js';
import { runIdOf, runStream } from '../run/events.js';
import type { RunLeaf } from './events.js';
import { LEDGER_STREAM, leafOf } from './events.js';

/** Most ends in memory, about 0.5 KB each. Later ones stay in the log until these have leaves. */
const MAX_WAITING = 10_000;
/** Events of a page. */
const PAGE_EVENTS = 1_000;

export class RunEnds {
  /** By run, in the order of the log. */
  readonly #waiting = new Map<string, RunLeaf>();
  /** Each end up to here waits or has a leaf. Null at the beginning of the log. */
  #considered: Position | null = null;
  #hasBegun = false;
  /** Whether ends after `#considered` are in the log alone. */
  #isBehind = true;
  /** Whether the subscription has delivered an end that the current page may lack. */
  #hasMissed = false;
  /** Runs that have a leaf and were removed from the log, until the log is read once. */
  readonly #removed = new Set<string>();
  /** The run of the newest leaf, which another instance added, while its end has not been read here. */
  #newestLeaf: string | null = null;

  /** Passes over the runs up to the newest one of the first `size` leaves that is still in the log. Later leaves come by `onLeaf`. */
  async #begin(log: Pick<EventLog, 'readStream'>, size: number): Promise<void> {
    this.#newestLeaf = null;
    const leaves = size === 0 ? [] : log.readStream(LEDGER_STREAM, { direction: 'backwards', from: size - 1 });
    for await (const event of leaves) {
      const leaf = leafOf(event);
      if (leaf.kind !== 'run') continue;
      const end = await lastEvent(log, runStream(leaf.runId), leaf.events - 1).catch(ifRemoved);
      if (end === null) {
        // A server delivers its end until the next scavenge.
        this.#removed.add(leaf.runId);
        continue;
      }
      this.#considered = end.position;
      break;
    }
    this.#hasBegun = true;
  }

  /** Receives each event of a run, in the order of the log; a repeated one has no effect. */
  onRunEvent(event: RecordedEvent): void {
    if (!ENDS.has(event.type) || (this.#considered !== null && event.position <= this.#considered)) return;
    if (this.#waiting.size >= MAX_WAITING) this.#isBehind = true;
    if (this.#isBehind) this.#hasMissed = true;
    else this.#consider(event);
  }

  /** Receives each leaf of a run, in the order of the ledger. */
  onLeaf(runId: string): void {
    if (!this.#waiting.delete(runId) && this.#isBehind) this.#newestLeaf = runId;
  }

  /**
   * Reads on from the log if the subscription does not deliver all. Call it again until `isBehind` is false.
   *
   * @param size how many leaves are folded
   */
  async readOn(
    log: Pick<EventLog, 'readAll' | 'readStream'>,
    { size, signal }: { readonly size: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if (!this.#hasBegun) await this.#begin(log, size);
    while (this.#isBehind && this.#waiting.size < MAX_WAITING && !signal.aborted) {
      this.#hasMissed = false;
      let events = 0;
      for await (const event of log.readAll(this.#considered, { categories: ['run'], max: PAGE_EVENTS })) {
        events += 1;
        this.#consider(event);
      }
      if (events === PAGE_EVENTS) continue;
      this.#newestLeaf = null;
      this.#isBehind = this.#hasMissed;
    }
    if (!this.isBehind) this.#removed.clear();
  }

  /** Whether further ends may be in the log alone. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Whether the end of a run waits for its leaf. */
  has(runId: string): boolean {
    return this.#waiting.has(runId);
  }

  /** The leaves of the first ends. */
  first(max: number): readonly RunLeaf[] {
    const leaves: RunLeaf[] = [];
    for (const leaf of this.#waiting.values()) if (leaves.push(leaf) >= max) break;
    return leaves;
  }

  #consider(event: RecordedEvent): void {
    this.#considered = event.position;
    const leaf = leafOfEnd(event);
    if (leaf === null || this.#removed.has(leaf.runId)) return;
    if (this.#newestLeaf === null) this.#waiting.set(leaf.runId, leaf);
    else if (this.#newestLeaf === leaf.runId) this.#newestLeaf = null;
  }
}

function ifRemoved(error: unknown): null {
  if (error instanceof StreamRemoved || error instanceof RunErased) return null;
  throw error;
}

/** Types of the events that end a run. */
const ENDS: ReadonlySet<string> = new Set(['RunCompleted', 'RunFailed']);

/** The leaf of the run that an event ends, or null if it ends none or another program wrote it. */
function leafOfEnd(event: RecordedEvent): RunLeaf | null {
  const { stream, type, revision, metadata } = event;
  const [runId, endedAt, headHash] = [runIdOf(stream), metadata['occurredAt'], hashOf(event)];
  if (runId === null || !ENDS.has(type) || endedAt === undefined || headHash === '') return null;
  const status = type === 'RunCompleted' ? 'completed' : 'failed';
  return { kind: 'run', runId, events: revision + 1, headHash, status, endedAt };
}
