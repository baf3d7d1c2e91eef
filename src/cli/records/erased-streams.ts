/** Compares the ledger of a log with its streams, as its events are read. */
import type { RecordedEvent } from '../../eventlog/port.js';
import { LEDGER_STREAM, leafOf } from '../../ledger/events.js';
import { runStream } from '../../run/events.js';
import type { StreamChains } from './stream-chains.js';

export class ErasedStreams {
  /** Streams whose erasure has a leaf. */
  readonly names = new Set<string>();
  /** Numbers of these leaves. */
  readonly leaves = new Set<number>();
  /** The runs that have a leaf. */
  readonly #ended = new Set<string>();

  /** Takes the next event of the log. */
  take(event: RecordedEvent): void {
    if (event.stream !== LEDGER_STREAM) return;
    try {
      const leaf = leafOf(event);
      if (leaf.kind === 'run') this.#ended.add(runStream(leaf.runId));
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
   * @param chains of the streams that were read
   * @param removed the streams that were removed from the log
   */
  lost(chains: StreamChains, removed: readonly string[] = []): readonly string[] {
    const gone = [...this.#ended].filter((stream) => chains.endOf(stream) === null);
    return [...new Set([...gone, ...removed])].filter((stream) => !this.names.has(stream));
  }
}
