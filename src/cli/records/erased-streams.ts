/** Compares the ledger of a log with its streams, as its events are read. */
import type { RecordedEvent } from '../../eventlog/port.js';
import { LEDGER_STREAM, leafOf } from '../../ledger/events.js';
import { runIdOf, runStream } from '../../run/events.js';

export class ErasedStreams {
  /** Streams whose erasure has a leaf. */
  readonly names = new Set<string>();
  /** Numbers of these leaves. */
  readonly leaves = new Set<number>();
  /** Runs that have a leaf, and no event so far. */
  readonly #awaited = new Set<string>();
  readonly #seen = new Set<string>();

  /** Takes the next event of the log. */
  take(event: RecordedEvent): void {
    if (event.revision === 0 && runIdOf(event.stream) !== null) this.#seen.add(event.stream);
    if (event.stream !== LEDGER_STREAM) return;
    try {
      const leaf = leafOf(event);
      if (leaf.kind === 'run') this.#awaited.add(runStream(leaf.runId));
      else {
        this.names.add(leaf.what === 'run' ? runStream(leaf.id) : (event.metadata['kept'] ?? ''));
        this.leaves.add(event.revision);
      }
    } catch {
      // The check of the stream reports it.
    }
  }

  /**
   * Streams whose events are gone although no erasure is recorded.
   *
   * @param removed the streams that were removed from the log
   */
  lost(removed: readonly string[]): readonly string[] {
    const gone = [...this.#awaited].filter((stream) => !this.#seen.has(stream));
    return [...new Set([...gone, ...removed])].filter((stream) => !this.names.has(stream));
  }
}
