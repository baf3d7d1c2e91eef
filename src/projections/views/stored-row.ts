/** Reads cells of the stored views defensively: other programs may have changed the file. */
import { fieldOf } from '../../system/untrusted.js';

/** A row as it is stored; null: it cannot be read. */
export interface Stored<T> {
  readonly id: string;
  readonly row: T | null;
}

/** Null: there is no text in it. */
export function textOf(row: unknown, column: string): string | null {
  const value = fieldOf(row, column);
  return typeof value === 'string' ? value : null;
}

/** A value from its JSON text; null: it is none. */
export function parsed(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** The readable rows, with the others rebuilt. */
export async function readable<T>(
  stored: readonly Stored<T>[],
  anew: (id: string) => Promise<T | null>,
): Promise<readonly T[]> {
  const rows: T[] = [];
  for (const { id, row } of stored) {
    const found = row ?? (await anew(id));
    if (found !== null) rows.push(found);
  }
  return rows;
}
