/** Appends to the streams of documents and reads them. */
import type { System } from '../system/system.js';
import { appendWithRetry } from '../eventsourcing/append-with-retry.js';
import { GENESIS_HASH, sealEvents } from '../eventsourcing/hash-chain.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import type { TaskTracker } from '../system/async/task-tracker.js';
import type { DocumentEvent, DocumentFact } from './events.js';
import { documentEventOf, documentStream, isDocumentEvent, readDocument } from './events.js';
import type { DocumentState } from './state.js';
import { evolveDocument } from './state.js';

export interface StreamsDeps {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  /** How long an append is retried, in milliseconds. */
  readonly appendDeadlineMs: number;
}

export interface DocumentStreams {
  /**
   * Appends after an event, null for the first.
   *
   * @throws {RevisionConflict} the stream has another head
   * @throws {LogUnavailable | AppendOutcomeUnknown} the log does not answer in time
   */
  append(
    documentId: string,
    facts: readonly DocumentFact[],
    head: DocumentState['head'] | null,
  ): Promise<{ readonly events: readonly DocumentEvent[]; readonly position: Position }>;
  /** Continues a fold to the head; from null, starts at the first event in force. @throws {DocumentCorrupt} */
  fold(documentId: string, folded: DocumentState | null): Promise<DocumentState | null>;
  /** @throws {DocumentCorrupt} */
  status(documentId: string): Promise<DocumentStatus>;
}

/** @param tasks when they end, retries of appends end */
export function documentStreams(
  { log, system, instanceId, appendDeadlineMs }: StreamsDeps,
  tasks: TaskTracker,
): DocumentStreams {
  const status = (documentId: string): Promise<DocumentStatus> => documentStatusOf(log, documentId);
  return {
    async append(documentId, facts, head) {
      const { events, exported } = sealEvents(head ?? { seq: -1, hash: GENESIS_HASH }, facts, {
        at: system.now(),
        nextId: system.uuid,
        sha256: system.sha256,
        instanceId,
        correlationId: documentId,
        causationId: head?.id ?? documentId,
      });
      const append = { stream: documentStream(documentId), events, expected: head?.seq ?? ('none' as const) };
      const late = new AbortController();
      const cancel = system.after(appendDeadlineMs, () => late.abort());
      try {
        const { position } = await tasks.untilEnd((signal) =>
          appendWithRetry(log, append, { system, signal: AbortSignal.any([signal, late.signal]) }),
        );
        return { events: exported.filter(isDocumentEvent), position };
      } finally {
        cancel();
      }
    },
    async fold(documentId, folded) {
      const from = folded === null ? (await status(documentId)).since : folded.head.seq + 1;
      let state = folded;
      for await (const event of readDocument(log, documentId, { sha256: system.sha256, from })) {
        state = evolveDocument(state, event);
      }
      return state;
    },
    status,
  };
}

/** Where a document stands, read from the end of its stream. */
interface DocumentStatus {
  /** Its last event; null: it has none. */
  readonly head: RecordedEvent | null;
  /** The last event that made it findable or deleted it; null: it was received after that, or there is none. */
  readonly decisive: RecordedEvent | null;
  /** Seq of the first event in force: earlier ones were deleted or superseded. */
  readonly since: number;
}

type ReadableLog = Pick<EventLog, 'readStream'>;

/** @throws {DocumentCorrupt} an event on the way is not one of a document */
export async function documentStatusOf(log: ReadableLog, documentId: string): Promise<DocumentStatus> {
  const head = await eventAt(log, documentId);
  for (let event = head; event !== null; event = await eventAt(log, documentId, event.revision - 1)) {
    const { type, data, seq } = documentEventOf(event);
    if (type === 'DocumentReceived') return { head, decisive: null, since: seq };
    if (type === 'DocumentIngested') return { head, decisive: event, since: data.since };
    if (type === 'DocumentDeleted') return { head, decisive: event, since: seq };
  }
  return { head, decisive: null, since: 0 };
}

/** Its last event; null: it has none. */
export function lastEventOf(log: ReadableLog, documentId: string): Promise<RecordedEvent | null> {
  return eventAt(log, documentId);
}

/** Reads one event at a time, because those with vectors are large. */
async function eventAt(log: ReadableLog, documentId: string, revision?: number): Promise<RecordedEvent | null> {
  const range = { direction: 'backwards', max: 1, ...(revision !== undefined && { from: revision }) } as const;
  for await (const event of log.readStream(documentStream(documentId), range)) return event;
  return null;
}
