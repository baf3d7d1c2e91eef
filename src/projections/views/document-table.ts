/** The table of documents in the stored read models. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { DocumentRecord } from '../../documents/events.js';
import type { Page } from '../run-summary.js';
import { checksumOf, isSound } from './row-checksum.js';
import type { Stored } from './stored-row.js';
import { fieldOf } from '../../system/untrusted.js';
import { parsed, textOf } from './stored-row.js';

/** A document as the list keeps it. */
export interface DocumentRow {
  readonly id: string;
  /** Null: it is deleted. */
  readonly record: DocumentRecord | null;
}

export const DOCUMENTS_SCHEMA = `
  CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    ingested_at TEXT NOT NULL,
    record TEXT NOT NULL,
    -- Over id to record.
    checksum INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX documents_newest ON documents (ingested_at DESC, id);
`;

export interface DocumentTable {
  save(row: DocumentRow): void;
  /** Newest first, ties by id ascending. */
  list(page: Page): readonly Stored<DocumentRecord>[];
  /** Null: there is none. */
  find(id: string): Stored<DocumentRecord> | null;
}

export function documentTable(database: DatabaseSyncInstance): DocumentTable {
  const save = database.prepare(
    `INSERT INTO documents VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE
     SET ingested_at = excluded.ingested_at, record = excluded.record, checksum = excluded.checksum`,
  );
  const remove = database.prepare('DELETE FROM documents WHERE id = ?');
  const list = database.prepare('SELECT id FROM documents ORDER BY ingested_at DESC, id LIMIT ? OFFSET ?');
  const find = database.prepare('SELECT id, ingested_at, record, checksum FROM documents WHERE id = ?');
  const stored = (id: string): Stored<DocumentRecord> | null => {
    const row: unknown = find.get(id);
    return row === undefined ? null : storedDocument(row);
  };
  return {
    save({ id, record }) {
      if (record === null) {
        remove.run(id);
        return;
      }
      const cells = [id, record.ingestedAt, JSON.stringify(record)];
      save.run(...cells, checksumOf(...cells));
    },
    // The index names a row that cannot be found any more, too.
    list: ({ limit, offset }) =>
      list
        .all(limit, offset)
        .map((row) => textOf(row, 'id') ?? '')
        .map((id) => stored(id) ?? { id, row: null }),
    find: stored,
  };
}

/** A row, if it is as this service wrote it: another program, or the disk, may have changed it. */
function storedDocument(row: unknown): Stored<DocumentRecord> {
  const id = textOf(row, 'id');
  if (id === null) return { id: '', row: null };
  const record = parsed(textOf(row, 'record'));
  const isWhole = isSound(row, 'id', 'ingested_at', 'record') && isDocumentRecord(record);
  return { id, row: isWhole ? record : null };
}

function isDocumentRecord(value: unknown): value is DocumentRecord {
  const texts = ['id', 'filename', 'ingestedAt'].every((field) => typeof fieldOf(value, field) === 'string');
  return texts && ['seq', 'pages', 'chunks'].every((field) => Number.isInteger(fieldOf(value, field)));
}
