/** Verifies the hash chains of all streams of a log, and notes which streams its ledger erases. */
import { erasedBy } from '../../app/erasures.js';
import { checkLink, exportedOf, GENESIS_HASH, hashOf, isChained } from '../../eventsourcing/hash-chain.js';
import type { Salvage, UnreadableEvent } from '../../eventlog/embedded/salvage.js';
import type { RecordedEvent } from '../../eventlog/port.js';
import type { System } from '../../system/system.js';

interface ChainEnd {
  readonly revision: number;
  readonly hash: string;
}

export class StreamChains {
  /** Number of events, of which the unreadable ones are listed. */
  readonly events: number;
  readonly unreadable: readonly UnreadableEvent[];
  readonly #sha256: System['sha256'];
  readonly #ends = new Map<string, ChainEnd>();
  /** By stream, the revision and the reason of its first fault. */
  readonly faults = new Map<string, { readonly revision: number; readonly reason: string }>();
  /** Streams whose erasure has a leaf. */
  readonly erased = new Set<string>();

  /** Reads a log up to a position. */
  constructor(salvage: Salvage, { last, sha256 }: { readonly last: number; readonly sha256: System['sha256'] }) {
    this.#sha256 = sha256;
    const unreadable: UnreadableEvent[] = [];
    let events = 0;
    for (const event of salvage.events(last)) {
      events += 1;
      if ('reason' in event) unreadable.push(event);
      else this.#take(event);
    }
    // A stream whose last events cannot be read ends before the revision that the log's index has for it.
    for (const [stream, revision] of salvage.ends()) this.#expectEnd(stream, revision);
    [this.events, this.unreadable] = [events, unreadable];
  }

  /** Number of streams. */
  get size(): number {
    return this.#ends.size;
  }

  /** The last event of a stream that was read, or null if there is none. */
  endOf(stream: string): ChainEnd | null {
    return this.#ends.get(stream) ?? null;
  }

  #take(event: RecordedEvent): void {
    const { stream, revision } = event;
    const erased = erasedBy(event);
    if (erased !== null) this.erased.add(erased.stream);
    if (this.faults.has(stream)) return;
    const reason = this.#faultOf(event, this.#ends.get(stream) ?? { revision: -1, hash: GENESIS_HASH });
    if (reason !== null) this.faults.set(stream, { revision, reason });
    this.#ends.set(stream, { revision, hash: hashOf(event) });
  }

  #expectEnd(stream: string, revision: number): void {
    const end = this.#ends.get(stream)?.revision ?? -1;
    if (end < revision && !this.faults.has(stream))
      this.faults.set(stream, { revision: end + 1, reason: 'it is unreadable' });
  }

  #faultOf(event: RecordedEvent, before: ChainEnd): string | null {
    if (event.revision !== before.revision + 1) return 'an event before it is missing';
    try {
      const exported = exportedOf(event);
      const follows = !isChained(event.stream) || checkLink(before.hash, exported, this.#sha256);
      return follows ? null : 'its hash does not follow from the event before it and its own fields';
    } catch (error) {
      return `it is unreadable (${error instanceof Error ? error.message : String(error)})`;
    }
  }
}
