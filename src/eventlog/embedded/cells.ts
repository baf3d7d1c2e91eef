/** Reads cells of rows that SQLite returns. */

/** A cell does not hold the type of its column: its page is corrupt. */
export class CellUnreadable extends Error {}

/**
 * The text in a column. The check of its type detects a corrupt page.
 *
 * @throws {CellUnreadable}
 */
export function textIn(row: readonly unknown[], column: number): string {
  const cell = row[column];
  if (typeof cell !== 'string') throw new CellUnreadable(`no text in column ${column}`);
  return cell;
}

/** The number in a column. @throws {CellUnreadable} */
export function numberIn(row: readonly unknown[], column: number): number {
  const cell = row[column];
  if (typeof cell !== 'number') throw new CellUnreadable(`no number in column ${column}`);
  return cell;
}

/** Whether a value is a row of a statement that returns arrays. */
export function isRow(row: unknown): row is readonly unknown[] {
  return Array.isArray(row);
}
