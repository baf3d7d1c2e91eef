/** The tables of the passages: what is stored of each, and how a row comes out. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';

/**
 * `key` counts up in the order in which passages come, which is the order of the log: what ties is settled by it, the
 * same after every rebuild. Codes are a table of their own: they are all read at each start, vectors one by one.
 * A text is a blob: a NUL would end a text of SQLite's.
 */
export const PASSAGES_SCHEMA = `
  CREATE TABLE passages (
    key INTEGER PRIMARY KEY,
    document TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    page INTEGER NOT NULL,
    text BLOB NOT NULL,
    UNIQUE (document, chunk)
  );
  CREATE TABLE vectors (key INTEGER PRIMARY KEY, vector BLOB NOT NULL);
  CREATE TABLE codes (key INTEGER PRIMARY KEY, code BLOB NOT NULL);
`;

export interface PassageRow {
  readonly document: string;
  /** Place of the piece in its document. */
  readonly chunk: number;
  readonly page: number;
  readonly text: string;
}

export interface PassageRows {
  /** @returns its key */
  add(row: PassageRow, vector: Float32Array, code: Uint8Array): number;
  remove(key: number): void;
  find(key: number): PassageRow | null;
  vector(key: number): Float32Array | null;
  keysOf(document: string): readonly number[];
  keyOf(document: string, chunk: number): number | null;
  /** All of them, as they are kept. */
  codes(): Iterable<{ readonly key: number; readonly code: Uint8Array }>;
}

export function passageRows(database: DatabaseSyncInstance): PassageRows {
  const insert = database.prepare('INSERT INTO passages (document, chunk, page, text) VALUES (?, ?, ?, ?)');
  const insertVector = database.prepare('INSERT INTO vectors VALUES (?, ?)');
  const insertCodes = database.prepare('INSERT INTO codes VALUES (?, ?)');
  const removals = ['passages', 'vectors', 'codes'].map((table) =>
    database.prepare(`DELETE FROM ${table} WHERE key = ?`),
  );
  const find = database.prepare('SELECT document, chunk, page, text FROM passages WHERE key = ?');
  const vector = database.prepare('SELECT vector FROM vectors WHERE key = ?');
  const keysOf = database.prepare('SELECT key FROM passages WHERE document = ? ORDER BY key');
  const keyOf = database.prepare('SELECT key FROM passages WHERE document = ? AND chunk = ?');
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
      const numbers = { chunk: numberOf(row, 'chunk') ?? 0, page: numberOf(row, 'page') ?? 0 };
      return { document: textOf(row, 'document') ?? '', ...numbers, text: new TextDecoder().decode(text) };
    },
    vector(key) {
      const bytes = bytesOf(vector.get(key), 'vector');
      // A view wants a place that four divides, which a blob's own buffer begins with.
      return bytes === null ? null : new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    },
    keysOf: (document) => keysOf.all(document).flatMap((row) => numberOf(row, 'key') ?? []),
    keyOf: (document, chunk) => numberOf(keyOf.get(document, chunk), 'key'),
    *codes() {
      for (const row of allCodes.iterate() as Iterable<unknown>) {
        const [key, code] = [numberOf(row, 'key'), bytesOf(row, 'code')];
        if (key !== null && code !== null) yield { key, code };
      }
    },
  };
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
