/**
 * Zeroes the unused bytes of a SQLite file. `secure_delete` overwrites a deleted row, but not the copies of it that stay
 * between the cell pointers and the cells of a page after SQLite has moved the row to another page (measured: 4 % of the
 * rows that were deleted one stream after the other). The file format is that of https://sqlite.org/fileformat2.html.
 */
import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { fieldOf } from './untrusted.js';

/** Bytes that are read at a time. */
const CHUNK_BYTES = 1024 * 1024;
const FILE_HEADER_BYTES = 100;
/** Of the journal, in bytes. */
const JOURNAL_HEADER = 32;
const FRAME_HEADER = 24;

/** Of the largest page. */
const ZEROS = Buffer.alloc(65_536);

/** Header bytes of a page by its type: interior and leaf pages of indexes and of tables. */
const PAGE_HEADERS: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 };

export interface UnusedBytes {
  /** The pages that the journal (`-wal`) holds, and those of earlier contents of it. */
  journalPages(): ReadonlySet<number>;
  /**
   * Zeroes the unused bytes of these pages, or of all, and syncs the file. The caller has merged the journal into the file, so
   * that SQLite reads these pages from it, and makes SQLite forget the pages in its memory.
   */
  zero(pages: ReadonlySet<number> | 'all'): void;
  /** The caller closes the database first, because closing this drops the process's locks on the file. */
  close(): void;
}

/** @param file of a database that this process has open */
export function unusedBytesOf(file: string): UnusedBytes {
  const descriptor = openSync(file, 'r+');
  const read = (from: number, bytes: number, of = descriptor): Buffer => {
    const buffer = Buffer.alloc(bytes);
    return buffer.subarray(0, readSync(of, buffer, 0, bytes, from));
  };
  const pageBytes = (): number => {
    const bytes = read(16, 2).readUInt16BE();
    return bytes === 1 ? 65_536 : bytes;
  };

  /** Zeroes whole pages in a buffer, the first of which has this number, and writes those that change. */
  function zeroIn(buffer: Buffer, first: number, size: number): void {
    for (let at = 0; at + size <= buffer.length; at += size) {
      const number = first + at / size;
      const unused = unusedIn(buffer.subarray(at, at + size), number === 1 ? FILE_HEADER_BYTES : 0);
      if (unused === null || unused.equals(ZEROS.subarray(0, unused.length))) continue;
      unused.fill(0);
      writeSync(
        descriptor,
        unused,
        0,
        unused.length,
        (number - 1) * size + (unused.byteOffset - buffer.byteOffset - at),
      );
    }
  }

  return {
    journalPages() {
      const pages = new Set<number>();
      if (!existsSync(`${file}-wal`)) return pages;
      const size = pageBytes();
      const journal = openSync(`${file}-wal`, 'r');
      try {
        for (let at = JOURNAL_HEADER; ; at += FRAME_HEADER + size) {
          const frame = read(at, 4, journal);
          if (frame.length < 4) return pages;
          pages.add(frame.readUInt32BE());
        }
      } finally {
        closeSync(journal);
      }
    },
    zero(pages) {
      const size = pageBytes();
      if (pages !== 'all') for (const page of pages) zeroIn(read((page - 1) * size, size), page, size);
      for (let at = 0; pages === 'all'; at += CHUNK_BYTES) {
        const chunk = read(at, CHUNK_BYTES);
        if (chunk.length < size) break;
        zeroIn(chunk, at / size + 1, size);
      }
      fsyncSync(descriptor);
    },
    close: () => closeSync(descriptor),
  };
}

/** The bytes between the cell pointers and the cells of a page, or null if it is no page of a tree. */
function unusedIn(page: Buffer, header: number): Buffer | null {
  const headerBytes = PAGE_HEADERS[page.readUInt8(header)];
  if (headerBytes === undefined) return null;
  const from = header + headerBytes + 2 * page.readUInt16BE(header + 3);
  const until = page.readUInt16BE(header + 5) || 65_536;
  return from <= until && until <= page.length ? page.subarray(from, until) : null;
}

// The journal of a database whose rows are changed and deleted in the normal course.

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
  /** Empties the journal and zeroes what deleted rows have left in the file: reads all of it at the first call. */
  zero(): void;
  /** The caller closes the database first. */
  close(): void;
}

/**
 * The journal of a database with `wal_autocheckpoint = 0`. Remembers which pages it has held, because these may have copies
 * of rows in their unused bytes.
 */
export function journalOf(database: Database, file: string): Journal {
  const unused = unusedBytesOf(file);
  const length = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  let written: Set<number> | 'all' = 'all';
  const note = (): void => {
    if (written !== 'all') for (const page of unused.journalPages()) written.add(page);
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
      unused.zero(written);
      written = new Set();
    },
    close: () => unused.close(),
  };
}
