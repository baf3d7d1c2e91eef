/** The table of documents in the stored read models. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { DocumentRecord } from '../../documents/events.js';
import type { Page } from '../run-summary.js';
import type { Stored } from './stored-row.js';
import { fieldOf, parsed, textOf } from './stored-row.js';

/** A document as the list keeps it. */
export interface DocumentRow {
  readonly id: string;
  /** Null: it is deleted. */
  readonly record: DocumentRecord | null;
}

export const DOCUMENTS_SCHEMA = `
  CREATE TABLE documents (id TEXT PRIMARY KEY, ingested_at TEXT NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX documents_newest ON documents (ingested_at DESC, id);
`;

export interface DocumentTable {
  save(row: DocumentRow): void;
  /** Newest first, ties by id ascending. */
  list(page: Page): readonly Stored<DocumentRecord>[];
  /** Null: there is none that can be read. */
  find(id: string): DocumentRecord | null;
}

export function documentTable(database: DatabaseSyncInstance): DocumentTable {
  const save = database.prepare(
    `INSERT INTO documents VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET ingested_at = excluded.ingested_at, record = excluded.record`,
  );
  const remove = database.prepare('DELETE FROM documents WHERE id = ?');
  const columns = 'SELECT id, ingested_at, record FROM documents';
  const list = database.prepare(`${columns} ORDER BY ingested_at DESC, id LIMIT ? OFFSET ?`);
  const find = database.prepare(`${columns} WHERE id = ?`);
  return {
    save({ id, record }) {
      if (record === null) remove.run(id);
      else save.run(id, record.ingestedAt, JSON.stringify(record));
    },
    list: ({ limit, offset }) => list.all(limit, offset).map(storedDocument),
    find: (id) => storedDocument(find.get(id)).row,
  };
}

/** A row, if it is as this service wrote it: another program may have changed it. */
function storedDocument(row: unknown): Stored<DocumentRecord> {
  const id = textOf(row, 'id');
  if (id === null) return { id: '', row: null };
  const record = parsed(textOf(row, 'record'));
  const isWhole = isDocumentRecord(record) && record.id === id && record.ingestedAt === textOf(row, 'ingested_at');
  return { id, row: isWhole ? record : null };
}

function isDocumentRecord(value: unknown): value is DocumentRecord {
  const texts = ['id', 'filename', 'ingestedAt'].every((field) => typeof fieldOf(value, field) === 'string');
  return texts && ['seq', 'pages', 'chunks'].every((field) => Number.isInteger(fieldOf(value, field)));
}
