/** The events of a document's stream: its receipt, chunks, vectors, and whether it can be found. */
import type { System } from '../system/system.js';
import type { DocumentFacts } from '../generated/schemas.js';
import type { ExportedEvent } from '../eventsourcing/hash-chain.js';
import { GENESIS_HASH, checkLink, exportedOf } from '../eventsourcing/hash-chain.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { DocumentCorrupt } from './errors.js';

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
  return orCorrupt(documentIdOf(recorded.stream) ?? recorded.stream, recorded.revision, () => {
    const event = exportedOf(recorded);
    if (!isDocumentEvent(event)) throw new Error(`${recorded.type} is no event of a document`);
    return event;
  });
}

/**
 * A document's events in order, each verified to follow the previous one by its hash; an unknown document has none.
 *
 * @param from seq of the first event
 * @param to seq of the last event; absent: to the head
 * @throws {DocumentCorrupt} at the first that does not follow
 */
export async function* readDocument(
  log: Pick<EventLog, 'readStream'>,
  documentId: string,
  { sha256, from = 0, to }: { readonly sha256: System['sha256']; readonly from?: number; readonly to?: number },
): AsyncGenerator<DocumentEvent> {
  // The previous event is read too, for the hash that the first one follows.
  const first = Math.max(0, from - 1);
  let [previous, next] = [first === 0 ? GENESIS_HASH : null, first];
  const range = { from: first, ...(to !== undefined && { max: to + 1 - first }) };
  for await (const recorded of log.readStream(documentStream(documentId), range)) {
    const event = documentEventOf(recorded);
    orCorrupt(documentId, next, () => assertFollows(event, { previous, seq: next, sha256 }));
    previous = event.hash;
    next += 1;
    if (event.seq >= from) yield event;
  }
}

function assertFollows(
  event: DocumentEvent,
  {
    previous,
    seq,
    sha256,
  }: { readonly previous: string | null; readonly seq: number; readonly sha256: System['sha256'] },
): void {
  if (event.seq !== seq) throw new Error(`event ${event.seq} stands there`);
  if (previous === null || checkLink(previous, event, sha256)) return;
  throw new Error('its hash does not follow from the event before it and its own fields');
}

/** Checks the type alone, not the data: only this service writes the stream, and the hash chain protects it. */
export function isDocumentEvent(event: ExportedEvent): event is ExportedEvent & DocumentEvent {
  return Object.hasOwn(TYPES, event.type);
}

const TYPES: Readonly<Record<keyof DocumentFacts, true>> = {
  DocumentReceived: true,
  ChunksAdded: true,
  ChunksEmbedded: true,
  DocumentIngested: true,
  DocumentDeleted: true,
};

function orCorrupt<T>(documentId: string, seq: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DocumentCorrupt({ documentId, seq, reason }, { cause: error });
  }
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
