/** Cells of a row as SQLite gives it: `unknown`, narrowed here, so that a damaged file is noticed where it is read. */

/** The text in a column. */
export function textIn(row: readonly unknown[], column: number): string {
  const cell = row[column];
  if (typeof cell !== 'string') throw new TypeError(`No text in column ${column}`);
  return cell;
}

/** The number in a column. */
export function numberIn(row: readonly unknown[], column: number): number {
  const cell = row[column];
  if (typeof cell !== 'number') throw new TypeError(`No number in column ${column}`);
  return cell;
}

/** A row of a statement that returns arrays. */
export function isRow(row: unknown): row is readonly unknown[] {
  return Array.isArray(row);
}
