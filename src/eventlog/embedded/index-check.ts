/**
 * Checks that a log's indexes lead to every stored event. Streams are read through them, so a lost entry would hide an
 * event. Reads the indexes alone, about 0.3 s for a million events.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { isRow, numberIn, textIn } from './cells.js';
import { reasonOf } from '../../system/untrusted.js';

/**
 * Reads the index alone, stream by stream. Keys of streams and positions of events count from 1 without gaps, revisions
 * from 0. Removed streams have none.
 */
const ENTRIES = `
  SELECT count(*), coalesce(sum(stream), 0), coalesce(sum(events), 0), coalesce(sum(positions), 0),
    coalesce(sum(events <> newest + 1), 0)
  FROM (
    SELECT stream, count(*) AS events, sum(position) AS positions, max(revision) AS newest
    FROM events INDEXED BY events_by_stream GROUP BY stream
  )`;

/** The number of streams, and the number of streams that a lookup by name does not find. */
const NAMES = `
  SELECT count(*), coalesce(sum(NOT EXISTS (
    SELECT 1 FROM streams AS named INDEXED BY sqlite_autoindex_streams_1
    WHERE named.name = streams.name AND named.id = streams.id
  )), 0)
  FROM streams NOT INDEXED`;

/**
 * Checks the indexes; returns whether events are missing, as after they were deleted by SQL.
 *
 * @param position of the newest event
 * @param isAfterKill whether a journal was left: then no event was deleted by SQL
 * @throws {Error} it is corrupt, or after a kill lacks events
 */
export function findGaps(
  database: DatabaseSyncInstance,
  { position, isAfterKill }: { readonly position: number; readonly isAfterKill: boolean },
): boolean {
  if (isDense(database, position)) return false;
  // Slow, but rare: if events were deleted by SQL, the file is intact, and their streams show the loss.
  const [fault = 'ok'] = faultsOf(database, 1);
  if (fault !== 'ok') throw new Error(`${fault.replaceAll(/\s+/g, ' ')}: ${SALVAGE}`);
  if (isAfterKill) throw new Error(`events are missing in the middle of it: ${SALVAGE}`);
  return true;
}

/** What to do about a corrupt file. */
export const SALVAGE = 'restore it from a backup, or copy its intact records with `council salvage --to DIR`';

/** What removed streams would add to the sums. */
const REMOVED = `
  SELECT count(*), coalesce(sum(stream), 0), coalesce(sum(events), 0), coalesce(sum(positions), 0) FROM removed`;

function isDense(database: DatabaseSyncInstance, position: number): boolean {
  const [named = 0, lost = 0] = numbersOf(database, NAMES);
  const [...found] = numbersOf(database, ENTRIES);
  for (const [column, gone] of numbersOf(database, REMOVED).entries()) found[column] = (found[column] ?? 0) + gone;
  // Streams, keys, events, positions, gaps; then names that a lookup does not find.
  const whole = [named, sumTo(named), position, sumTo(position), 0];
  return lost === 0 && whole.every((sum, column) => found[column] === sum);
}

function numbersOf(database: DatabaseSyncInstance, sql: string): readonly number[] {
  const row: unknown = database.prepare(sql, { returnArrays: true }).get();
  return isRow(row) ? row.map((_, column) => numberIn(row, column)) : [];
}

/** 1 + 2 + … + n. */
function sumTo(n: number): number {
  return (n * (n + 1)) / 2;
}

/** What SQLite finds wrong with a file, at most `max` lines, none if it is intact. */
export function faultsOf(database: DatabaseSyncInstance, max: number): readonly string[] {
  try {
    const rows: readonly unknown[] = database.prepare(`PRAGMA integrity_check(${max})`, { returnArrays: true }).all();
    return rows.map((row) => textIn(isRow(row) ? row : [], 0)).filter((line) => line !== 'ok');
  } catch (error) {
    return [reasonOf(error)];
  }
}
