/** The meaning of an error of the log's file. */
import { fieldOf } from '../../system/untrusted.js';
import { CellUnreadable } from './cells.js';

/** The disk is full and nothing was written, or the file is corrupt. */
export type FileFault = 'full' | 'corrupt';

/** SQLite's primary result codes (sqlite.org/rescode.html). */
const BUSY = 5;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CONSTRAINT = 19;
const NOT_A_DATABASE = 26;

/** SQLite's text for CORRUPT, which never changes: the driver (1.2.1) sets no code on an error of `iterate`. */
const CORRUPT_TEXT = 'database disk image is malformed';

/** Whether another process holds the lock that a statement needs. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === BUSY;
}

/** Whether the disk failed or is full. */
export function isStorageFailure(error: unknown): boolean {
  const code = codeOf(error);
  return code === IO_ERROR || code === FULL;
}

/**
 * The fault behind an error, or null for any other error. After these faults a transaction is certainly not written,
 * because they occur before its sync. A failed constraint means a corrupt file: appends are checked before, so it fails
 * only if index and table differ.
 */
export function faultOf(error: unknown): FileFault | null {
  if (error instanceof CellUnreadable) return 'corrupt';
  switch (codeOf(error)) {
    case FULL:
      return 'full';
    case CORRUPT:
    case CONSTRAINT:
    case NOT_A_DATABASE:
      return 'corrupt';
    default:
      return null;
  }
}

/** The primary result code of an error, or null if it has none. An extended code holds it in its low byte. */
function codeOf(error: unknown): number | null {
  const code = fieldOf(error, 'errcode');
  if (typeof code === 'number') return code & 0xff;
  return error instanceof Error && error.message === CORRUPT_TEXT ? CORRUPT : null;
}
