/**
 * The embedded log's storage: one SQLite file, written by one connection. Durable on commit, power loss included.
 * Streams have a small integer key, so that the wide text of their names is stored and indexed once a stream only.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { randomUUID } from 'node:crypto';
import { DatabaseSync } from '@photostructure/sqlite';

/** Streams whose head is remembered; others are looked up, which costs two index reads. */
const MAX_KNOWN_HEADS = 20_000;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS streams (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  CREATE TABLE IF NOT EXISTS events (
    position INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL REFERENCES streams (key),
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    metadata TEXT NOT NULL
  );
  CREATE UNIQUE INDEX IF NOT EXISTS events_of_stream ON events (stream, revision);
`;

/** An event as it crosses between the threads: id, type, data, metadata as JSON text. */
export type EventRow = readonly [id: string, type: string, data: string, metadata: string];

/** A recorded event as it crosses between the threads. */
export type RecordedRow = readonly [position: number, revision: number, stream: string, ...EventRow];

/** An append as it crosses between the threads; `expected` is -1 for a stream that must not exist. */
export interface AppendRow {
  readonly stream: string;
  readonly expected: number;
  readonly events: readonly EventRow[];
}

/** What became of an append; `actual` is the revision found instead, -1 for none. */
export type AppendResult =
  | { readonly kind: 'written' | 'repeated'; readonly revision: number; readonly position: number }
  | { readonly kind: 'conflict'; readonly actual: number };

export interface RowsPage {
  readonly rows: readonly RecordedRow[];
  /** Position, or revision of a stream, up to which this page has looked; null when it reached the end. */
  readonly scannedTo: number | null;
}

/** Bounds of a page: rows looked at and characters of data given. */
const MAX_PAGE_ROWS = 512;
const MAX_PAGE_CHARS = 1024 * 1024;

export type EmbeddedStore = ReturnType<typeof openStore>;

/** Opens the file, alone; throws when another process has it open. */
export function openStore(file: string) {
  const database = new DatabaseSync(file);
  database.exec(`
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = 4000;
  `);
  database.exec(SCHEMA);
  database.prepare('INSERT OR IGNORE INTO meta VALUES (?, ?)').run('identity', randomUUID());
  syncFolder(dirname(file));

  const findStream = database.prepare('SELECT key FROM streams WHERE name = ?');
  const addStream = database.prepare('INSERT INTO streams (name) VALUES (?)');
  const findHead = database.prepare('SELECT max(revision) AS revision FROM events WHERE stream = ?');
  const addEvent = database.prepare(
    'INSERT INTO events (position, stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const idsFrom = database.prepare(
    'SELECT id, position FROM events WHERE stream = ? AND revision > ? ORDER BY revision LIMIT ?',
  );
  const columns = 'position, revision, name AS stream, id, type, data, metadata';
  const joined = `SELECT ${columns} FROM events JOIN streams ON streams.key = events.stream`;
  const forwards = database.prepare(`${joined} WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?`);
  const backwards = database.prepare(`${joined} WHERE stream = ? AND revision <= ? ORDER BY revision DESC LIMIT ?`);
  const after = database.prepare(`${joined} WHERE position > ? ORDER BY position LIMIT ?`);
  const last = database.prepare('SELECT max(position) AS position FROM events');

  const heads = new Map<string, { readonly key: number; revision: number }>();
  let head = numberIn(last.get(), 'position') ?? 0;

  function headOf(stream: string): { readonly key: number; revision: number } | null {
    const known = heads.get(stream);
    if (known !== undefined) return known;
    const key = numberIn(findStream.get(stream), 'key');
    if (key === null) return null;
    return remember(stream, { key, revision: numberIn(findHead.get(key), 'revision') ?? -1 });
  }

  function remember(stream: string, found: { readonly key: number; revision: number }) {
    heads.set(stream, found);
    const [oldest] = heads.keys();
    if (heads.size > MAX_KNOWN_HEADS && oldest !== undefined) heads.delete(oldest);
    return found;
  }

  function append({ stream, expected, events }: AppendRow): AppendResult {
    const known = headOf(stream);
    const actual = known?.revision ?? -1;
    if (actual !== expected)
      return known === null ? { kind: 'conflict', actual } : repeated(known.key, expected, events, actual);
    const target = known ?? remember(stream, { key: Number(addStream.run(stream).lastInsertRowid), revision: -1 });
    for (const [id, type, data, metadata] of events) {
      head += 1;
      target.revision += 1;
      addEvent.run(head, target.key, target.revision, id, type, data, metadata);
    }
    return { kind: 'written', revision: target.revision, position: head };
  }

  /** The same ids at the same revision are the same append, sent again. */
  function repeated(key: number, expected: number, events: readonly EventRow[], actual: number): AppendResult {
    const stored = idsFrom.all(key, expected, events.length);
    const isSame = stored.length === events.length && events.every(([id], index) => textIn(stored[index], 'id') === id);
    if (!isSame) return { kind: 'conflict', actual };
    const position = numberIn(stored.at(-1), 'position') ?? 0;
    return { kind: 'repeated', revision: expected + events.length, position };
  }

  return {
    /** Writes what can be written of a batch in one transaction; a conflict of one append is no other's business. */
    appendAll(batch: readonly AppendRow[]): readonly AppendResult[] {
      database.exec('BEGIN IMMEDIATE');
      const results = batch.map(append);
      database.exec('COMMIT');
      return results;
    },
    readStream(
      stream: string,
      { from, isForwards, max }: { from: number; isForwards: boolean; max: number },
    ): RowsPage {
      const known = headOf(stream);
      if (known === null) return { rows: [], scannedTo: null };
      const query = isForwards ? forwards : backwards;
      return page(query.iterate(known.key, from, Math.min(max, MAX_PAGE_ROWS)), (row) => row[1]);
    },
    readAfter(position: number): RowsPage {
      return page(after.iterate(position, MAX_PAGE_ROWS), (row) => row[0]);
    },
    identity: (): string =>
      textIn(database.prepare(`SELECT value FROM meta WHERE key = 'identity'`).get(), 'value') ?? '',
    head: (): number => head,
    /** A real read of the file. */
    ping: (): number => numberIn(last.get(), 'position') ?? 0,
    close: (): void => database.close(),
  };
}

function page(found: Iterable<unknown>, keyOf: (row: RecordedRow) => number): RowsPage {
  const rows: RecordedRow[] = [];
  let chars = 0;
  for (const each of found) {
    const row = recordedRow(each);
    rows.push(row);
    chars += row[5].length;
    if (chars > MAX_PAGE_CHARS) break;
  }
  const lastRow = rows.at(-1);
  return { rows, scannedTo: lastRow === undefined ? null : keyOf(lastRow) };
}

function recordedRow(row: unknown): RecordedRow {
  const text = (column: string): string => textIn(row, column) ?? '';
  const number = (column: string): number => numberIn(row, column) ?? 0;
  const event = [text('id'), text('type'), text('data'), text('metadata')] as const;
  return [number('position'), number('revision'), text('stream'), ...event];
}

function numberIn(row: unknown, column: string): number | null {
  const value = memberOf(row, column);
  return typeof value === 'number' ? value : null;
}

function textIn(row: unknown, column: string): string | null {
  const value = memberOf(row, column);
  return typeof value === 'string' ? value : null;
}

function memberOf(row: unknown, column: string): unknown {
  return typeof row === 'object' && row !== null ? Reflect.get(row, column) : undefined;
}

/** A file's name is durable only once its folder is synced. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
