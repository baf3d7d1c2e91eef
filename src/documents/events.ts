/** The events of a document's stream: its receipt, chunks, vectors, and whether it can be found. */
import type { System } from '../system/system.js';
import { documentEvents } from '../generated/recorded-events.js';
import type { DocumentFacts } from '../generated/schemas.js';
import { misfitOf } from '../eventsourcing/event-data.js';
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

/** Stream of a document. */
export function documentStream(documentId: string): string {
  return `document-${documentId}`;
}

/** The document that a stream belongs to, null when it is a stream of another category. */
export function documentIdOf(stream: string): string | null {
  const prefix = documentStream('');
  return stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}

/** Whether a text has the form of a document's id: lower-case hex SHA-256. */
export function isDocumentId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** A recorded event as an event of a document. @throws {DocumentCorrupt} it is not one */
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
 * A document's events in order, each verified to follow the previous one by its hash; an unknown document has none.
 *
 * @param from seq of the first event
 * @param to seq of the last event; absent: to the head
 * @throws {DocumentCorrupt} at the first that does not follow
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
  const misfit = misfitOf(event, documentEvents);
  if (misfit !== null) throw new Error(misfit);
}

function corruption(at: { readonly documentId: string; readonly seq: number }, cause: unknown): DocumentCorrupt {
  return new DocumentCorrupt({ ...at, reason: reasonOf(cause) }, { cause });
}

/** A document as it is listed. */
export interface DocumentRecord {
  /** Lower-case hex SHA-256 of the file. */
  readonly id: string;
  /** Revision of the event it was made from. */
  readonly seq: number;
  readonly filename: string;
  readonly pages: number;
  readonly chunks: number;
  /** ISO 8601: when it was first ingested, since it was last deleted. */
  readonly ingestedAt: string;
}

/**
 * The document that an event leaves behind, null when it is deleted or not ingested by it. @throws {DocumentCorrupt}
 */
export function documentRecordOf(recorded: RecordedEvent): DocumentRecord | null {
  const id = documentIdOf(recorded.stream);
  const event = documentEventOf(recorded);
  return id === null ? null : recordAfter(id, event);
}

/** The same for an event that was read already. */
export function recordAfter(id: string, event: DocumentEvent): DocumentRecord | null {
  if (event.type !== 'DocumentIngested') return null;
  const { filename, pages, chunks, ingestedAt } = event.data;
  return { id, seq: event.seq, filename, pages, chunks, ingestedAt: ingestedAt ?? event.at };
}

/** Whether an event makes a document findable or deletes it. */
export function isDecisive({ type }: Pick<RecordedEvent, 'type'>): boolean {
  return type === 'DocumentIngested' || type === 'DocumentDeleted';
}

/** Where a document stands, read from the end of its stream. */
export interface DocumentStatus {
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
  const stream = documentStream(documentId);
  const head = await lastEvent(log, stream);
  // One event at a time, because those with vectors are large.
  for (let event = head; event !== null; event = await lastEvent(log, stream, event.revision - 1)) {
    const { type, data, seq } = documentEventOf(event);
    if (type === 'DocumentReceived') return { head, decisive: null, since: seq };
    if (type === 'DocumentIngested') return { head, decisive: event, since: data.since };
    if (type === 'DocumentDeleted') return { head, decisive: event, since: seq };
  }
  return { head, decisive: null, since: 0 };
}
