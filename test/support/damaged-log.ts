/** Changes the file of an embedded log while no process has it open. */
import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';

/** Replaces a piece of an event's data. */
export function damageEvent(dataDir: string, eventId: string, [piece, other]: readonly [string, string]): void {
  const [from, to] = [quoted(piece), quoted(other)];
  change(join(dataDir, 'log.sqlite'), `UPDATE events SET data = replace(data, ${from}, ${to}) WHERE id = '${eventId}'`);
}

/** Deletes an event. */
export function dropEvent(dataDir: string, eventId: string): void {
  change(join(dataDir, 'log.sqlite'), `DELETE FROM events WHERE id = '${eventId}'`);
}

/** Swaps the streams of two runs. */
export function swapRecords(dataDir: string, [one, other]: readonly [string, string]): void {
  const names = [`run-${one}`, `run-${other}`].map(quoted);
  const rename = (from: string, to: string): string => `UPDATE streams SET name = ${to} WHERE name = ${from};`;
  const [first = '', second = ''] = names;
  change(join(dataDir, 'log.sqlite'), rename(first, "'-'") + rename(second, first) + rename("'-'", second));
}

/** Replaces a piece of a run's stored view. */
export function changeView(dataDir: string, runId: string, [piece, other]: readonly [string, string]): void {
  const [from, to] = [quoted(piece), quoted(other)];
  const file = join(dataDir, 'views', 'views.sqlite');
  change(file, `UPDATE runs SET summary = replace(summary, ${from}, ${to}) WHERE id = '${runId}'`);
}

/** Changes the log by a statement of SQL. */
export function changeLog(dataDir: string, sql: string): void {
  change(join(dataDir, 'log.sqlite'), sql);
}

/** Changes the stored views by a statement of SQL. */
export function changeViews(dataDir: string, sql: string): void {
  change(join(dataDir, 'views', 'views.sqlite'), sql);
}

/** Uses no prepared statements: one that is not garbage-collected yet keeps the file locked after `close`. */
function change(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA busy_timeout = 10000; ${sql}`);
  database.close();
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
