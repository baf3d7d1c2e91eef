/** Reports damage of the log's file as damage of the one record that met it: the others are served on. */
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { blueprintIdOf } from '../blueprint/events.js';
import { DocumentCorrupt } from '../documents/errors.js';
import { documentIdOf } from '../documents/events.js';
import { LogDamaged } from '../eventlog/errors.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { RunCorrupt } from '../run/errors.js';
import { runIdOf } from '../run/events.js';

/** A log whose streams of runs, documents and blueprints fail as their corrupt records do where the file is damaged. */
export function recordsOn(log: EventLog): EventLog {
  return {
    append: (stream, events, expected) =>
      log.append(stream, events, expected).catch((error: unknown) => {
        throw recordFault(error, { stream, seq: expected === 'none' ? 0 : expected + 1 });
      }),
    readStream: (stream, range) => read(log.readStream(stream, range), { stream, seq: range?.from ?? 0 }),
    readAll: (after, range) => log.readAll(after, range),
    subscribe: (after, following) => log.subscribe(after, following),
    identity: () => log.identity(),
    head: () => log.head(),
    ping: () => log.ping(),
    close: () => log.close(),
  };
}

interface Place {
  readonly stream: string;
  readonly seq: number;
}

async function* read(events: AsyncIterable<RecordedEvent>, { stream, seq }: Place): AsyncGenerator<RecordedEvent> {
  let next = seq;
  try {
    for await (const event of events) {
      next = event.revision + 1;
      yield event;
    }
  } catch (error) {
    throw recordFault(error, { stream, seq: next });
  }
}

function recordFault(error: unknown, { stream, seq }: Place): unknown {
  if (!(error instanceof LogDamaged)) return error;
  const [runId, documentId, blueprintId] = [runIdOf(stream), documentIdOf(stream), blueprintIdOf(stream)];
  const reason = error.message;
  if (runId !== null) return new RunCorrupt({ runId, seq, reason }, { cause: error });
  if (documentId !== null) return new DocumentCorrupt({ documentId, seq, reason }, { cause: error });
  if (blueprintId !== null) return new BlueprintCorrupt({ blueprintId, seq, reason }, { cause: error });
  return error;
}
