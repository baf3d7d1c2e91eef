/** An embedded log changed behind everybody's back, on disk, while nothing has it open. */
import { DatabaseSync } from '@photostructure/sqlite';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checksumOf } from '../../src/projections/views/row-checksum.js';

/** Puts another piece in the place of one in an event's data. */
export function damageEvent(dataDir: string, eventId: string, [piece, other]: readonly [string, string]): void {
  const [from, to] = [quoted(piece), quoted(other)];
  change(join(dataDir, 'log.sqlite'), `UPDATE events SET data = replace(data, ${from}, ${to}) WHERE id = '${eventId}'`);
}

/** Takes an event out. */
export function dropEvent(dataDir: string, eventId: string): void {
  change(join(dataDir, 'log.sqlite'), `DELETE FROM events WHERE id = '${eventId}'`);
}

/** Gives the events of each of two runs out as those of the other. */
export function swapRecords(dataDir: string, [one, other]: readonly [string, string]): void {
  const names = [`run-${one}`, `run-${other}`].map(quoted);
  const rename = (from: string, to: string): string => `UPDATE streams SET name = ${to} WHERE name = ${from};`;
  const [first = '', second = ''] = names;
  change(join(dataDir, 'log.sqlite'), rename(first, "'-'") + rename(second, first) + rename("'-'", second));
}

/** Puts another piece in the place of one in what is stored of a run for the history. */
export function changeView(dataDir: string, runId: string, [piece, other]: readonly [string, string]): void {
  const [from, to] = [quoted(piece), quoted(other)];
  const file = join(dataDir, 'views', 'views.sqlite');
  change(file, `UPDATE runs SET summary = replace(summary, ${from}, ${to}) WHERE id = '${runId}'`);
}

/** Changes the stored views by a statement of SQL. */
export function changeViews(dataDir: string, sql: string): void {
  change(join(dataDir, 'views', 'views.sqlite'), sql);
}

/** The same, and gives changed rows the checksum that this service would write with them. */
export function forgeViews(dataDir: string, sql: string): void {
  const database = new DatabaseSync(join(dataDir, 'views', 'views.sqlite'));
  database.function('checksum_of', { varargs: true }, (...cells: readonly unknown[]) =>
    checksumOf(...cells.map(String)),
  );
  database.exec(`${sql};
    UPDATE runs SET checksum = checksum_of(id, created_at, status, summary);
    UPDATE blueprints SET checksum = checksum_of(id, updated_at, record);
    UPDATE documents SET checksum = checksum_of(id, ingested_at, record)`);
  database.close();
}

/**
 * Flips a bit in the file of the stored views: the lowest of one byte of a text, wherever it stands. The cells of a row
 * stand in the file one after the other, without anything between them.
 */
export function flipBit(dataDir: string, text: string, byte: number): void {
  const file = join(dataDir, 'views', 'views.sqlite');
  const bytes = readFileSync(file);
  if (!bytes.includes(text)) throw new Error(`The stored views do not hold "${text}"`);
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
    bytes.writeUInt8(bytes.readUInt8(at + byte) ^ 1, at + byte);
  }
  writeFileSync(file, bytes);
}

/** Without prepared statements: one that is not collected yet keeps the file locked past the closing. */
function change(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
