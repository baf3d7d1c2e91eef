/** Reads the rows of a log's file as they are stored, a slice at a time, for a copy of it. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { CellUnreadable, isRow, numberIn } from './cells.js';
import type { LogExtent, RowSlice, StoredRow } from './messages.js';
import { endOf } from './file.js';

/** Bounds of a slice: an append waits at most as long as the read of one takes, about 2 ms. */
const SLICE_ROWS = 512;
const SLICE_CHARS = 256 * 1024;

/** The statements that read a table in the order of its key, which is its first column. */
const SLICES = {
  streams: 'SELECT id, name FROM streams WHERE id > ? AND id <= ? ORDER BY id LIMIT ?',
  events: `
    SELECT position, stream, revision, id, type, data, metadata FROM events
    WHERE position > ? AND position <= ? ORDER BY position LIMIT ?`,
  removed: `
    SELECT key, stream, events, positions, last, is_zeroed FROM removed WHERE key > ? AND key <= ? ORDER BY key LIMIT ?`,
} as const;

/** What the log holds now. Later appends change none of it. @param hasGaps as found when it was opened */
export function extentOf(database: DatabaseSyncInstance, hasGaps: boolean): LogExtent {
  const number = (sql: string): number => {
    const row: unknown = database.prepare(sql, { returnArrays: true }).get();
    return numberIn(isRow(row) ? row : [], 0);
  };
  return {
    ...endOf(database),
    hasGaps,
    lastStream: number('SELECT coalesce(max(id), 0) FROM streams'),
    lastRemoved: number('SELECT coalesce(max(key), 0) FROM removed'),
    bytes: number('PRAGMA page_count') * number('PRAGMA page_size'),
  };
}

/** The next rows of a table, none at its end. @throws {Error} one of them cannot be read */
export function rowsOf(database: DatabaseSyncInstance, { table, after, until }: RowSlice): readonly StoredRow[] {
  const rows: StoredRow[] = [];
  let chars = 0;
  const statement = database.prepare(SLICES[table], { returnArrays: true });
  for (const row of statement.iterate(after, until, SLICE_ROWS)) {
    if (!isRow(row)) continue;
    const cells = row.map(cellOf);
    rows.push(cells);
    for (const cell of cells) if (typeof cell === 'string') chars += cell.length;
    if (chars >= SLICE_CHARS) break;
  }
  return rows;
}

/** A cell of a strict table holds a text or a number; a corrupt page may hold anything. */
function cellOf(cell: unknown, column: number): string | number {
  if (typeof cell === 'string' || typeof cell === 'number') return cell;
  throw new CellUnreadable(`no text or number in column ${column}`);
}
