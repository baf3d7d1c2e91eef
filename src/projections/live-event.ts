/** An event that the subscription delivers to many watchers. It is parsed and verified once for all of them. */
import type { System } from '../system/system.js';
import { checkLink } from '../eventsourcing/hash-chain.js';
import type { RecordedEvent } from '../eventlog/port.js';
import { RunCorrupt } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import { runEventOf } from '../run/stream.js';

export class LiveEvent {
  readonly #recorded: RecordedEvent;
  readonly #sha256: System['sha256'];
  #verified: { readonly after: string; readonly event: RunEvent | null } | null = null;

  constructor(recorded: RecordedEvent, sha256: System['sha256']) {
    this.#recorded = recorded;
    this.#sha256 = sha256;
  }

  get revision(): number {
    return this.#recorded.revision;
  }

  /** The event, or null if it does not follow the event with this hash or cannot be read. */
  after(hash: string | null): RunEvent | null {
    if (hash === null) return null;
    if (this.#verified?.after !== hash) this.#verified = { after: hash, event: this.#verify(hash) };
    return this.#verified.event;
  }

  #verify(hash: string): RunEvent | null {
    try {
      const event = runEventOf(this.#recorded);
      return checkLink(hash, event, this.#sha256) ? event : null;
    } catch (error) {
      if (error instanceof RunCorrupt) return null;
      throw error;
    }
  }
}
