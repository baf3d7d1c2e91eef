/** What an error of the file says: that its disk is full, that it is damaged, or neither. */
import { CellUnreadable } from './cells.js';

/** The disk is full: nothing was written, and it can be tried again. Damage: what is stored is not as it was left. */
export type FileFault = 'full' | 'damage';

/**
 * SQLite's own messages, which never change (sqlite.org/rescode.html): not every error carries its result code. After the
 * checks of an append a constraint violation means that index and table disagree: corruption.
 */
const WORDS: Readonly<Record<FileFault, RegExp>> = {
  full: /database or disk is full/,
  damage: /disk image is malformed|not a database|constraint failed/,
};

/** Null: neither. Of these alone it is certain that a transaction was not written: they are met before its sync. */
export function faultOf(error: unknown): FileFault | null {
  if (error instanceof CellUnreadable) return 'damage';
  if (!(error instanceof Error)) return null;
  if (WORDS.full.test(error.message)) return 'full';
  return WORDS.damage.test(error.message) ? 'damage' : null;
}
