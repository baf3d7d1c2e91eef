/** The table of documents in the stored read models. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { DocumentRecord } from '../library/document-record.js';
import type { Page } from './run-summary.js';

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
  list(page: Page): readonly DocumentRecord[];
  find(id: string): DocumentRecord | null;
}

export function documentTable(database: DatabaseSyncInstance): DocumentTable {
  const save = database.prepare(
    `INSERT INTO documents VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET ingested_at = excluded.ingested_at, record = excluded.record`,
  );
  const remove = database.prepare('DELETE FROM documents WHERE id = ?');
  const list = database.prepare('SELECT record FROM documents ORDER BY ingested_at DESC, id LIMIT ? OFFSET ?');
  const find = database.prepare('SELECT record FROM documents WHERE id = ?');
  return {
    save({ id, record }) {
      if (record === null) remove.run(id);
      else save.run(id, record.ingestedAt, JSON.stringify(record));
    },
    list: ({ limit, offset }) => list.all(limit, offset).flatMap((row) => recordIn(row) ?? []),
    find: (id) => recordIn(find.get(id)),
  };
}

/** Only this file writes the column. */
function recordIn(row: unknown): DocumentRecord | null {
  if (typeof row !== 'object' || row === null) return null;
  const text: unknown = Reflect.get(row, 'record');
  return typeof text === 'string' ? (JSON.parse(text) as DocumentRecord) : null;
}
