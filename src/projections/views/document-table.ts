/** The table of documents in the stored read models. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { DocumentRecord } from '../../documents/events.js';
import type { Page } from '../run-summary.js';
import { fieldOf } from '../../system/untrusted.js';
import { jsonOf, RowUnreadable, textOf } from './stored-row.js';

/** A document as the list keeps it. */
export interface DocumentRow {
  readonly id: string;
  /** The entry, or null if the document is deleted. */
  readonly record: DocumentRecord | null;
}

export const DOCUMENTS_SCHEMA = `
  CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    ingested_at TEXT NOT NULL,
    record TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX documents_newest ON documents (ingested_at DESC, id);
`;

export interface DocumentTable {
  save(row: DocumentRow): void;
  /** Newest first, ties by id ascending. @throws {RowUnreadable} */
  list(page: Page): readonly DocumentRecord[];
  /** A document, or null if there is none. @throws {RowUnreadable} */
  find(id: string): DocumentRecord | null;
}

export function documentTable(database: DatabaseSyncInstance): DocumentTable {
  const save = database.prepare(
    `INSERT INTO documents VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET ingested_at = excluded.ingested_at, record = excluded.record`,
  );
  const remove = database.prepare('DELETE FROM documents WHERE id = ?');
  const list = database.prepare('SELECT id, record FROM documents ORDER BY ingested_at DESC, id LIMIT ? OFFSET ?');
  const find = database.prepare('SELECT id, record FROM documents WHERE id = ?');
  return {
    save({ id, record }) {
      if (record === null) remove.run(id);
      else save.run(id, record.ingestedAt, JSON.stringify(record));
    },
    list: ({ limit, offset }) => list.all(limit, offset).map(storedDocument),
    find(id) {
      const row: unknown = find.get(id);
      return row === undefined ? null : storedDocument(row);
    },
  };
}

/** @throws {RowUnreadable} the row is not what this service wrote */
function storedDocument(row: unknown): DocumentRecord {
  const id = textOf(row, 'id');
  const record = jsonOf(row, 'record', `document ${id}`);
  if (!isDocumentRecord(record) || record.id !== id) throw new RowUnreadable(`document ${id}`);
  return record;
}

function isDocumentRecord(value: unknown): value is DocumentRecord {
  const texts = ['id', 'filename', 'ingestedAt'].every((field) => typeof fieldOf(value, field) === 'string');
  return texts && ['seq', 'pages', 'chunks'].every((field) => Number.isInteger(fieldOf(value, field)));
}
