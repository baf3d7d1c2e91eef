/** The tables of the chunk index, and the full-text search in them. */
import { present } from '../system/element.js';
import { fieldOf } from '../system/untrusted.js';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Scored } from './top-k.js';
import { wordsOf } from '../embeddings/words.js';

/**
 * `key` grows in order of insertion, which is the order of the log: it breaks ties, the same after every rebuild. Codes
 * have a separate table, because each start reads all of them, but vectors are read one by one. A text is stored as
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
  /** The keys of a chunk: two while its replacement is not visible yet. */
  keysAt(document: string, chunk: number): readonly number[];
  /** Keys after a key. */
  keysAfter(key: number): readonly number[];
  /** The largest key, or 0 if there is none. */
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
        document: present(textOf(row, 'document'), 'document of a chunk'),
        chunk: present(numberOf(row, 'chunk'), 'chunk of a chunk'),
        page: present(numberOf(row, 'page'), 'page of a chunk'),
        text: new TextDecoder().decode(text),
      };
    },
    vector(key) {
      const bytes = bytesOf(vector.get(key), 'vector');
      // A Float32Array needs 4-byte alignment, which a blob's own buffer has.
      return bytes === null ? null : new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    },
    keysOf: (document) => keysOf.all(document).map(keyIn),
    keysAt: (document, chunk) => keysAt.all(document, chunk).map(keyIn),
    keysAfter: (key) => keysAfter.all(key).map(keyIn),
    lastKey: () => numberOf(lastKey.get(), 'key') ?? 0,
    incomplete: () => incomplete.all().map((row) => present(textOf(row, 'document'), 'document without vectors')),
    markIncomplete: (document) => void markIncomplete.run(document),
    markComplete: (document) => void markComplete.run(document),
    *codes() {
      const rows: Iterable<unknown> = allCodes.iterate();
      for (const row of rows) yield { key: keyIn(row), code: present(bytesOf(row, 'code'), 'code of a chunk') };
    },
  };
}

function keyIn(row: unknown): number {
  return present(numberOf(row, 'key'), 'key of a chunk');
}

function numberOf(row: unknown, column: string): number | null {
  const value = fieldOf(row, column);
  return typeof value === 'number' ? value : null;
}

export function textOf(row: unknown, column: string): string | null {
  const value = fieldOf(row, column);
  return typeof value === 'string' ? value : null;
}

function bytesOf(row: unknown, column: string): Uint8Array | null {
  const value = fieldOf(row, column);
  return value instanceof Uint8Array ? value : null;
}

// Full-text search of chunks: BM25 of SQLite's FTS5, in the database of the chunks.

/**
 * embeddings/words.ts splits texts into words, joined by spaces here. FTS5's `ascii` tokenizer keeps them unchanged;
 * `unicode61` supports no scripts without spaces and only an old Unicode. The text itself is stored elsewhere.
 */
export const FULL_TEXT_SCHEMA = `
  CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = 'ascii');
  -- A word that is deleted leaves the index at once, and not with a later merge.
  INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
  CREATE VIRTUAL TABLE word_counts USING fts5vocab(words, row);
`;

/** Largest number of distinct words of a query. Later words are ignored. */
const MAX_WORDS = 32;
/**
 * Largest number of matches of all words of a query together. The search takes words from the rarest on while their
 * matches fit, so that a word in every tenth of 100,000 chunks, which is not distinctive, does not slow down the
 * ranking.
 */
const MAX_FINDS = 10_000;
/** Word counts cached until the next change. */
const MAX_COUNTS = 10_000;

export interface FullText {
  add(key: number, text: string): void;
  /** `text` must be the one that was added: FTS5 needs it to remove the words. */
  remove(key: number, text: string): void;
  /** The best chunks with any of the words, best first, of these keys or all, none with a key after `last`. */
  nearest(
    query: string,
    limit: number,
    range?: { readonly last?: number; readonly among?: ReadonlySet<number> | null },
  ): readonly Scored[];
}

export function fullText(database: DatabaseSyncInstance): FullText {
  const add = database.prepare('INSERT INTO words (rowid, text) VALUES (?, ?)');
  const remove = database.prepare(`INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)`);
  const count = database.prepare('SELECT doc FROM word_counts WHERE term = ?');
  // FTS5's rank: lower is better.
  const find = database.prepare(
    'SELECT rowid AS key, -rank AS score FROM words WHERE words MATCH ? AND rowid <= ? ORDER BY rank, rowid LIMIT ?',
  );
  const findAmong = database.prepare(
    `SELECT rowid AS key, -rank AS score FROM words
     WHERE words MATCH ? AND rowid <= ? AND rowid IN (SELECT value FROM json_each(?)) ORDER BY rank, rowid LIMIT ?`,
  );
  const counts = new Map<string, number>();

  const countOf = (word: string): number => {
    const known = counts.get(word);
    if (known !== undefined) return known;
    const found = numberOf(count.get(word), 'doc') ?? 0;
    if (counts.size < MAX_COUNTS) counts.set(word, found);
    return found;
  };
  const distinctive = (query: string): readonly string[] => {
    const words = [...new Set(wordsOf(query))].slice(0, MAX_WORDS).map((word) => ({ word, finds: countOf(word) }));
    const rarest = words.filter(({ finds }) => finds > 0).sort((one, other) => one.finds - other.finds);
    let finds = 0;
    return rarest.filter((each) => (finds += each.finds) <= MAX_FINDS).map(({ word }) => word);
  };
  return {
    add(key, text) {
      counts.clear();
      add.run(key, wordsOf(text).join(' '));
    },
    remove(key, text) {
      counts.clear();
      remove.run(key, wordsOf(text).join(' '));
    },
    nearest(query, limit, { last = Number.MAX_SAFE_INTEGER, among = null } = {}) {
      const words = distinctive(query);
      if (words.length === 0) return [];
      // Words hold no quotes, so nothing of the query is interpreted as FTS5 syntax.
      const match = words.map((word) => `"${word}"`).join(' OR ');
      const found =
        among === null ? find.all(match, last, limit) : findAmong.all(match, last, JSON.stringify([...among]), limit);
      return found.map((row) => ({ key: keyIn(row), score: present(numberOf(row, 'score'), 'score of a chunk') }));
    },
  };
}
