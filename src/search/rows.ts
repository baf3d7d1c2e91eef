/** The tables of the chunk index. */
import { present } from '../system/element.js';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';

/**
 * `key` grows in order of insertion, which is the order of the log: it breaks ties, the same after every rebuild. Codes
 * have a table of their own, because all are read at each start, while vectors are read one by one. A text is stored as
 * a blob, because NUL would end a text of SQLite.
 */
export const CHUNKS_SCHEMA = `
  CREATE TABLE passages (
    key INTEGER PRIMARY KEY,
    document TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    page INTEGER NOT NULL,
    text BLOB NOT NULL
  );
  CREATE INDEX places ON passages (document, chunk);
  CREATE TABLE vectors (key INTEGER PRIMARY KEY, vector BLOB NOT NULL);
  CREATE TABLE codes (key INTEGER PRIMARY KEY, code BLOB NOT NULL);
  CREATE TABLE incomplete (document TEXT PRIMARY KEY) WITHOUT ROWID;
`;

export interface ChunkRow {
  readonly document: string;
  /** Place of the piece in its document. */
  readonly chunk: number;
  readonly page: number;
  readonly text: string;
}

export interface ChunkRows {
  /** @returns its key */
  add(row: ChunkRow, vector: Float32Array, code: Uint8Array): number;
  remove(key: number): void;
  find(key: number): ChunkRow | null;
  vector(key: number): Float32Array | null;
  keysOf(document: string): readonly number[];
  /** Two for a chunk whose replacement is not visible yet. */
  keysAt(document: string, chunk: number): readonly number[];
  /** Keys after a key. */
  keysAfter(key: number): readonly number[];
  /** The largest; 0 when there is none. */
  lastKey(): number;
  /** All codes, as stored. */
  codes(): Iterable<{ readonly key: number; readonly code: Uint8Array }>;
  /** Documents that lack vectors. */
  incomplete(): readonly string[];
  markIncomplete(document: string): void;
  markComplete(document: string): void;
}

export function chunkRows(database: DatabaseSyncInstance): ChunkRows {
  const insert = database.prepare('INSERT INTO passages (document, chunk, page, text) VALUES (?, ?, ?, ?)');
  const insertVector = database.prepare('INSERT INTO vectors VALUES (?, ?)');
  const insertCodes = database.prepare('INSERT INTO codes VALUES (?, ?)');
  const removals = ['passages', 'vectors', 'codes'].map((table) =>
    database.prepare(`DELETE FROM ${table} WHERE key = ?`),
  );
  const find = database.prepare('SELECT document, chunk, page, text FROM passages WHERE key = ?');
  const vector = database.prepare('SELECT vector FROM vectors WHERE key = ?');
  const keysOf = database.prepare('SELECT key FROM passages WHERE document = ? ORDER BY key');
  const keysAt = database.prepare('SELECT key FROM passages WHERE document = ? AND chunk = ?');
  const keysAfter = database.prepare('SELECT key FROM passages WHERE key > ?');
  const lastKey = database.prepare('SELECT max(key) AS key FROM passages');
  const incomplete = database.prepare('SELECT document FROM incomplete');
  const markIncomplete = database.prepare('INSERT OR IGNORE INTO incomplete VALUES (?)');
  const markComplete = database.prepare('DELETE FROM incomplete WHERE document = ?');
  const allCodes = database.prepare('SELECT key, code FROM codes');
  return {
    add(row, numbers, code) {
      const { lastInsertRowid } = insert.run(row.document, row.chunk, row.page, new TextEncoder().encode(row.text));
      const key = Number(lastInsertRowid);
      insertVector.run(key, new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
      insertCodes.run(key, code);
      return key;
    },
    remove(key) {
      for (const each of removals) each.run(key);
    },
    find(key) {
      const row: unknown = find.get(key);
      const text = bytesOf(row, 'text');
      if (text === null) return null;
      return {
        document: present(textOf(row, 'document'), 'document of a passage'),
        chunk: present(numberOf(row, 'chunk'), 'chunk of a passage'),
        page: present(numberOf(row, 'page'), 'page of a passage'),
        text: new TextDecoder().decode(text),
      };
    },
    vector(key) {
      const bytes = bytesOf(vector.get(key), 'vector');
      // A Float32Array needs 4-byte alignment, which a blob's own buffer has.
      return bytes === null ? null : new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    },
    keysOf: (document) => keysOf.all(document).flatMap(keyIn),
    keysAt: (document, chunk) => keysAt.all(document, chunk).flatMap(keyIn),
    keysAfter: (key) => keysAfter.all(key).flatMap(keyIn),
    lastKey: () => numberOf(lastKey.get(), 'key') ?? 0,
    incomplete: () => incomplete.all().flatMap((row) => textOf(row, 'document') ?? []),
    markIncomplete: (document) => void markIncomplete.run(document),
    markComplete: (document) => void markComplete.run(document),
    *codes() {
      const rows: Iterable<unknown> = allCodes.iterate();
      for (const row of rows) {
        const [key, code] = [numberOf(row, 'key'), bytesOf(row, 'code')];
        if (key !== null && code !== null) yield { key, code };
      }
    },
  };
}

function keyIn(row: unknown): number | readonly number[] {
  return numberOf(row, 'key') ?? [];
}

export function numberOf(row: unknown, column: string): number | null {
  const value = columnOf(row, column);
  return typeof value === 'number' ? value : null;
}

export function textOf(row: unknown, column: string): string | null {
  const value = columnOf(row, column);
  return typeof value === 'string' ? value : null;
}

function bytesOf(row: unknown, column: string): Uint8Array | null {
  const value = columnOf(row, column);
  return value instanceof Uint8Array ? value : null;
}

function columnOf(row: unknown, column: string): unknown {
  return typeof row === 'object' && row !== null ? Reflect.get(row, column) : undefined;
}
