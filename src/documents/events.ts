/** The events of a document: its receipt, chunks and vectors, its ingestion and its deletion. */
import type { System } from '../system/system.js';
import { documentEvents } from '../generated/recorded-events.js';
import type { DocumentFacts } from '../generated/schemas.js';
import { whyInvalid } from '../eventsourcing/event-data.js';
import type { ExportedEvent } from '../eventsourcing/hash-chain.js';
import { exportedOf } from '../eventsourcing/hash-chain.js';
import { readVerified } from '../eventsourcing/hash-chain.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { DocumentCorrupt } from './errors.js';
import { reasonOf } from '../system/untrusted.js';

export type DocumentFact = {
  [T in keyof DocumentFacts]: { readonly type: T; readonly data: DocumentFacts[T] };
}[keyof DocumentFacts];

export type DocumentEvent = DocumentFact & Pick<ExportedEvent, 'seq' | 'id' | 'at' | 'hash'>;

/**
 * The name of the stream of a document. A document that is uploaded again after an erasure has another stream, which the log of
 * the service reads in its place (app/record.ts).
 */
export function documentStream(documentId: string): string {
  return `document-${documentId}`;
}

/**
 * The stream of a document after its last erasure.
 *
 * @param leaf number of the leaf of that erasure, or null if the document was never erased
 */
export function documentStreamSince(documentId: string, leaf: number | null): string {
  return leaf === null ? documentStream(documentId) : `${documentStream(documentId)}+${leaf}`;
}

/** The id of the document that a stream belongs to, or null for a stream of another category. */
export function documentIdOf(stream: string): string | null {
  const prefix = documentStream('');
  return stream.startsWith(prefix) ? stream.slice(prefix.length).replace(/\+\d+$/, '') : null;
}

/** Whether a text has the form of a document id: a SHA-256 in lower-case hex. */
export function isDocumentId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** The event of a document in a recorded event. @throws {DocumentCorrupt} it has another type or other data */
export function documentEventOf(recorded: RecordedEvent): DocumentEvent {
  try {
    const event = exportedOf(recorded);
    assertDocumentEvent(event);
    return event;
  } catch (error) {
    throw corruption({ documentId: documentIdOf(recorded.stream) ?? recorded.stream, seq: recorded.revision }, error);
  }
}

/**
 * The events of a document in order, each verified by its hash; none for an unknown document.
 *
 * @param from seq of the first event
 * @param to seq of the last event; by default the last one of the stream
 * @throws {DocumentCorrupt} at the first event that does not follow from the previous one
 */
export function readDocument(
  log: ReadableLog,
  documentId: string,
  { sha256, from = 0, to }: { readonly sha256: System['sha256']; readonly from?: number; readonly to?: number },
): AsyncGenerator<DocumentEvent> {
  const corrupt = (seq: number, cause: unknown): DocumentCorrupt => corruption({ documentId, seq }, cause);
  const max = to === undefined ? undefined : to + 1 - from;
  return readVerified(
    log,
    { stream: documentStream(documentId), eventOf: documentEventOf, corrupt },
    { sha256, from, max },
  );
}

/** @throws {Error} when it is no event of a document, or its data does not fit the schema of its type */
function assertDocumentEvent(event: ExportedEvent): asserts event is ExportedEvent & DocumentEvent {
  const misfit = whyInvalid(event, documentEvents);
  if (misfit !== null) throw new Error(misfit);
}

function corruption(at: { readonly documentId: string; readonly seq: number }, cause: unknown): DocumentCorrupt {
  return new DocumentCorrupt({ ...at, reason: reasonOf(cause) }, { cause });
}

/** The entry of a document in the list. */
export interface DocumentRecord {
  /** Lower-case hex SHA-256 of the file. */
  readonly id: string;
  /** Revision of the event from which the entry comes. */
  readonly seq: number;
  readonly filename: string;
  readonly pages: number;
  readonly chunks: number;
  /** ISO 8601: first ingestion since the last deletion. */
  readonly ingestedAt: string;
}

/** The entry of a document after an event, or null unless the event ingests it. @throws {DocumentCorrupt} */
export function documentRecordOf(recorded: RecordedEvent): DocumentRecord | null {
  const id = documentIdOf(recorded.stream);
  const event = documentEventOf(recorded);
  return id === null ? null : recordAfter(id, event);
}

/** The same for an event of a document. */
export function recordAfter(id: string, event: DocumentEvent): DocumentRecord | null {
  if (event.type !== 'DocumentIngested') return null;
  const { filename, pages, chunks, ingestedAt } = event.data;
  return { id, seq: event.seq, filename, pages, chunks, ingestedAt: ingestedAt ?? event.at };
}

/** Whether an event ingests or deletes a document. */
export function isDecisive({ type }: Pick<RecordedEvent, 'type'>): boolean {
  return type === 'DocumentIngested' || type === 'DocumentDeleted';
}

/** The status of a document, read from the end of its stream. */
export interface DocumentStatus {
  /** The last event, or null if there is none. */
  readonly head: RecordedEvent | null;
  /** The last ingestion or deletion, or null if there is none or the document was received again after it. */
  readonly decisive: RecordedEvent | null;
  /** Seq of the first valid event. Earlier ones were deleted or superseded. */
  readonly since: number;
}

type ReadableLog = Pick<EventLog, 'readStream'>;

/** @throws {DocumentCorrupt} an event is not one of a document */
export async function documentStatusOf(log: ReadableLog, documentId: string): Promise<DocumentStatus> {
  const stream = documentStream(documentId);
  const head = await lastEvent(log, stream);
  // One event at a time, because events with vectors are large.
  for (let event = head; event !== null; event = await lastEvent(log, stream, event.revision - 1)) {
    const { type, data, seq } = documentEventOf(event);
    if (type === 'DocumentReceived') return { head, decisive: null, since: seq };
    if (type === 'DocumentIngested') return { head, decisive: event, since: data.since };
    if (type === 'DocumentDeleted') return { head, decisive: event, since: seq };
  }
  return { head, decisive: null, since: 0 };
}
