/**
 * Zeroes the unused bytes of a SQLite file. `secure_delete` overwrites a deleted row, but not the copies of it that stay
 * between the cell pointers and the cells of a page after SQLite has moved the row to another page (measured: 4 % of the
 * rows that were deleted one stream after the other). The file format is that of https://sqlite.org/fileformat2.html.
 */
import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { fieldOf } from './untrusted.js';

const FILE_HEADER_BYTES = 100;
/** Of the journal, in bytes. */
const JOURNAL_HEADER = 32;
const FRAME_HEADER = 24;

/** Of the largest page. */
const ZEROS = Buffer.alloc(65_536);

/** Header bytes of a page by its type: interior and leaf pages of indexes and of tables. */
const PAGE_HEADERS: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 };

/**
 * Zeroes the unused bytes of these pages of a file, or of all, and syncs it. It is no file that SQLite has open, or the caller
 * has merged its journal, and then makes SQLite forget the pages in its memory.
 */
export function zeroUnused(descriptor: number, pages: ReadonlySet<number> | 'all'): void {
  const size = pageBytes(descriptor);
  const page = Buffer.alloc(size);
  const last = Math.floor(fstatSync(descriptor).size / size);
  for (const number of pages === 'all' ? Array.from({ length: last }, (_, at) => at + 1) : pages) {
    const from = (number - 1) * size;
    const isWhole = readSync(descriptor, page, 0, size, from) === size;
    const unused = isWhole ? unusedIn(page, number === 1 ? FILE_HEADER_BYTES : 0) : null;
    if (unused === null || unused.equals(ZEROS.subarray(0, unused.length))) continue;
    writeSync(descriptor, ZEROS, 0, unused.length, from + unused.byteOffset - page.byteOffset);
  }
  fsyncSync(descriptor);
}

function pageBytes(descriptor: number): number {
  const bytes = Buffer.alloc(2);
  readSync(descriptor, bytes, 0, 2, 16);
  return bytes.readUInt16BE() === 1 ? 65_536 : bytes.readUInt16BE();
}

/** The bytes between the cell pointers and the cells of a page, or null if it is no page of a tree. */
function unusedIn(page: Buffer, header: number): Buffer | null {
  const headerBytes = PAGE_HEADERS[page.readUInt8(header)];
  if (headerBytes === undefined) return null;
  const from = header + headerBytes + 2 * page.readUInt16BE(header + 3);
  const until = page.readUInt16BE(header + 5) || 65_536;
  return from <= until && until <= page.length ? page.subarray(from, until) : null;
}

/** What the journal needs of SQLite's driver. */
interface Database {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): { get(): unknown };
}

/** Journal pages (4 KiB) that trigger a checkpoint: SQLite's default. */
const CHECKPOINT_PAGES = 1_000;

export interface Journal {
  /** Merges the journal into the file if it is long. */
  checkpointWhenDue(): void;
  /** Empties the journal and zeroes what deleted rows have left in the file. */
  zero(): void;
  /** The caller closes the database first, because closing this drops the process's locks on the file. */
  close(): void;
}

/**
 * The journal of a database with `wal_autocheckpoint = 0`. Remembers which pages it has held, because these may have copies
 * of rows in their unused bytes.
 *
 * @param isZeroed whether the file has no such copies now; otherwise the first `zero` reads all of it
 */
export function journalOf(database: Database, file: string, isZeroed = false): Journal {
  const descriptor = openSync(file, 'r+');
  const length = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  let written: Set<number> | 'all' = isZeroed ? new Set() : 'all';
  const note = (): void => {
    if (written !== 'all') addJournalPages(written, `${file}-wal`, pageBytes(descriptor));
  };
  return {
    checkpointWhenDue() {
      if (database.isTransaction || Number(fieldOf(length.get(), 'log')) < CHECKPOINT_PAGES) return;
      note();
      database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    },
    zero() {
      note();
      database.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA shrink_memory');
      zeroUnused(descriptor, written);
      written = new Set();
    },
    close: () => closeSync(descriptor),
  };
}

/** Adds the pages that a journal holds, and those of earlier contents of it. */
function addJournalPages(pages: Set<number>, file: string, size: number): void {
  if (!existsSync(file)) return;
  const journal = openSync(file, 'r');
  const number = Buffer.alloc(4);
  try {
    for (let at = JOURNAL_HEADER; readSync(journal, number, 0, 4, at) === 4; at += FRAME_HEADER + size)
      pages.add(number.readUInt32BE());
  } finally {
    closeSync(journal);
  }
}
