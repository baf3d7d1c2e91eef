/** A document as it is listed. */
import type { RecordedEvent } from '../log/port.js';
import type { DocumentEvent } from './document-events.js';
import { documentEventOf, documentIdOf } from './document-events.js';

export interface DocumentRecord {
  /** Lower-case hex SHA-256 of the file. */
  readonly id: string;
  /** Revision of the event that tells of it. */
  readonly seq: number;
  readonly filename: string;
  readonly pages: number;
  readonly chunks: number;
  /** ISO 8601: when it was first ingested, since it was last deleted. */
  readonly ingestedAt: string;
}

/** The document that an event leaves behind, null when it is deleted or not ingested by it. @throws {DocumentDamaged} */
export function documentRecordOf(recorded: RecordedEvent): DocumentRecord | null {
  const id = documentIdOf(recorded.stream);
  const event = documentEventOf(recorded);
  return id === null ? null : recordAfter(id, event);
}

/** The same, of an event that was read already. */
export function recordAfter(id: string, event: DocumentEvent): DocumentRecord | null {
  if (event.type !== 'DocumentIngested') return null;
  const { filename, pages, chunks, ingestedAt } = event.data;
  return { id, seq: event.seq, filename, pages, chunks, ingestedAt: ingestedAt ?? event.at };
}

/** Whether an event makes a document findable, or takes it away. */
export function isDecisive({ type }: Pick<RecordedEvent, 'type'>): boolean {
  return type === 'DocumentIngested' || type === 'DocumentDeleted';
}
