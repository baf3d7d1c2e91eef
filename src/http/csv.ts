/** Tables as CSV (RFC 4180) that no spreadsheet executes. */

/** Media type of a table. */
export const CSV = 'text/csv';

export type CsvCell = string | number | boolean | null;

/**
 * A line of a table. An apostrophe stands before each sign that begins a formula: `=`, `+`, `-` or `@` at the beginning of a
 * text, a line or after a semicolon or tab.
 */
export function csvLine(cells: readonly CsvCell[]): string {
  return `${cells.map(cellText).join(',')}\r\n`;
}

/** The beginning of a text that some spreadsheet executes as a formula: also after blanks and quotes, and in full-width characters. */
const FORMULA = /^(?:[\s\p{C}"]*[=+\-@＝＋－＠]|[\t\r\n])/u;
/**
 * The same inside a text, where a cell begins if the spreadsheet does not separate by commas: Excel separates by semicolons
 * in many countries, and then reads a quote inside a cell, and the line breaks that follow, as they stand. It matches the
 * sign first, so that long blanks cost linear time.
 */
const INNER_FORMULA = /[=+\-@＝＋－＠](?<=[;\t\r\n][\s\p{C}"]*.)/gu;

function cellText(cell: CsvCell): string {
  if (cell === null) return '';
  if (typeof cell !== 'string') return String(cell);
  const inner = cell.replace(INNER_FORMULA, "'$&");
  const text = FORMULA.test(cell) ? `'${inner}` : inner;
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
