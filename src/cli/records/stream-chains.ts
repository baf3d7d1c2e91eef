/** Verifies the hash chains of all streams of a log as its events are read. */
import { checkLink, exportedOf, GENESIS_HASH, hashOf, isChained } from '../../eventsourcing/hash-chain.js';
import type { RecordedEvent } from '../../eventlog/port.js';
import type { System } from '../../system/system.js';

interface ChainEnd {
  readonly revision: number;
  readonly hash: string;
}

export class StreamChains {
  readonly #sha256: System['sha256'];
  readonly #ends = new Map<string, ChainEnd>();
  /** By stream, the revision and the reason of its first fault. */
  readonly faults = new Map<string, { readonly revision: number; readonly reason: string }>();

  constructor(sha256: System['sha256']) {
    this.#sha256 = sha256;
  }

  /** Number of streams. */
  get size(): number {
    return this.#ends.size;
  }

  /** The last event of a stream that was read, or null if there is none. */
  endOf(stream: string): ChainEnd | null {
    return this.#ends.get(stream) ?? null;
  }

  /** Checks the next event of the log. */
  take(event: RecordedEvent): void {
    const { stream, revision } = event;
    if (this.faults.has(stream)) return;
    const reason = this.#faultOf(event, this.#ends.get(stream) ?? { revision: -1, hash: GENESIS_HASH });
    if (reason !== null) this.faults.set(stream, { revision, reason });
    this.#ends.set(stream, { revision, hash: hashOf(event) });
  }

  /** Records a fault if the events of a stream up to a revision were not all read. */
  expectEnd(stream: string, revision: number): void {
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
