/** Reads cells of the stored views, which other programs or a failing disk may have changed. */
import { fieldOf } from '../../system/untrusted.js';

/** A stored row is not what this service wrote: the views are rebuilt, as after any other failure. */
export class RowUnreadable extends Error {
  constructor(what: string, options?: ErrorOptions) {
    super(`The stored row of ${what} cannot be read`, options);
  }
}

/** The text in a column, or null if there is none. */
export function textOf(row: unknown, column: string): string | null {
  const value = fieldOf(row, column);
  return typeof value === 'string' ? value : null;
}

/** The JSON value in a column. @throws {RowUnreadable} if there is none */
export function jsonOf(row: unknown, column: string, what: string): unknown {
  try {
    return JSON.parse(textOf(row, column) ?? '');
  } catch (cause) {
    throw new RowUnreadable(what, { cause });
  }
}
