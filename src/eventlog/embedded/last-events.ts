/**
 * Streams of which the log keeps the last event alone. They are in memory, because one process has the log, and what they
 * record ends with it. Reads of all events and subscriptions do not have them.
 */
import { elementAt } from '../../system/element.js';
import { RevisionConflict } from '../errors.js';
import type { Appended, ExpectedRevision, NewEvent, Position, RecordedEvent, StreamRange } from '../port.js';

/** The caller bounds the number of streams. */
export class LastEvents {
  /** The last event of each stream, and the ids of the append that wrote it. */
  readonly #last = new Map<string, { readonly event: RecordedEvent; readonly ids: readonly string[] }>();

  /** @param position of the log's newest event @throws {RevisionConflict} */
  append(
    stream: string,
    events: readonly NewEvent[],
    { expected, position }: { readonly expected: ExpectedRevision; readonly position: Position },
  ): Appended {
    const last = this.#last.get(stream);
    const actual = last?.event.revision ?? 'none';
    const revision = (expected === 'none' ? -1 : expected) + events.length;
    const ids = events.map(({ id }) => id);
    if (actual !== expected) {
      const isRepeated = actual === revision && last?.ids.join() === ids.join();
      if (!isRepeated) throw new RevisionConflict({ stream, expected, actual });
      return { revision, position: last.event.position };
    }
    const event = { ...elementAt(events, events.length - 1), stream, revision, position };
    this.#last.set(stream, { event, ids });
    return { revision, position };
  }

  *read(stream: string, { from, direction, max = 1 }: StreamRange): Iterable<RecordedEvent> {
    const event = this.#last.get(stream)?.event;
    if (event === undefined || max < 1) return;
    if (from === undefined || (direction === 'backwards' ? event.revision <= from : event.revision >= from))
      yield event;
  }
}
