/** What the embedded log and its thread send each other. */
import type { Position, RecordedEvent } from '../port.js';
import type { FileFault } from './faults.js';

/** An event as columns of its table: id, type, data, metadata as JSON. */
export type EventRow = readonly [id: string, type: string, data: string, metadata: string];

/** An append as the thread writes it. */
export interface StoredAppend {
  readonly stream: string;
  /** Revision of the stream's last event, -1 if it has none. */
  readonly expected: number;
  readonly rows: readonly EventRow[];
}

/** The outcome of an append; all but the first kinds say that it was not written. */
export type AppendOutcome =
  | { readonly kind: 'written' | 'repeated'; readonly revision: number; readonly position: number }
  | { readonly kind: 'conflict'; readonly actual: number | 'none' }
  | { readonly kind: 'removed' }
  | { readonly kind: FileFault };

/** A page of events: of one stream, or of all in global order. */
export type PageQuery =
  | {
      readonly of: 'stream';
      readonly stream: string;
      /** First revision, inclusive, or null for the first event, backwards the last. */
      readonly from: number | null;
      readonly backwards: boolean;
      readonly max: number;
      /** Most characters on the page; a larger event has a page of its own. */
      readonly chars: number;
    }
  | {
      readonly of: 'all';
      /** Position, exclusive; 0 is before the first. */
      readonly after: number;
      /** Last position, inclusive. */
      readonly until: number;
      readonly categories: readonly string[] | null;
      readonly max: number;
      readonly chars: number;
    };

export interface Page {
  readonly events: readonly RecordedEvent[];
  /** Position, or revision of a stream, after which there may be more, or null at the end. */
  readonly end: number | null;
  /** Whether the stream was removed. */
  readonly isRemoved?: boolean;
}

/** What a log holds at a moment: a copy has every event up to `position`. */
export interface LogExtent {
  readonly identity: string;
  /** Position of the newest event, 0 for none. */
  readonly position: number;
  /** Key of the newest stream, 0 for none. */
  readonly lastStream: number;
  /** Key of the newest removal, 0 for none. */
  readonly lastRemoved: number;
  /** Size of the file with its journal merged, in bytes. */
  readonly bytes: number;
  /** Whether events are missing in the middle of it. */
  readonly hasGaps: boolean;
}

/** A row of a table as it is stored, its key first. */
export type StoredRow = readonly (string | number)[];

/** In the order of a copy: a removed stream's rows must be there before it is removed from the copy. */
export const TABLES = ['streams', 'events', 'removed'] as const;

/** A range of a table, by its key. */
export interface RowSlice {
  readonly table: (typeof TABLES)[number];
  /** Exclusive; 0 is before the first. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
}

/** The thread's first message: that the file is open, or why it is not. */
export type LogReady =
  | { readonly identity: string; readonly head: number; readonly hasGaps: boolean }
  | {
      readonly refused: string;
      /** Another process has it open. */
      readonly isHeld: boolean;
    };

/** What the thread (worker.ts) serves, one call after the other. Its errors have a `FaultCode` as `code`. */
export interface ServedLog {
  append(batch: readonly StoredAppend[]): {
    readonly outcomes: readonly AppendOutcome[];
    /** The disk has no room for every append. */
    readonly isFull: boolean;
  };
  page(query: PageQuery): Page;
  /** Removes streams with every byte of their texts; returns why not, or null. */
  remove(streams: readonly string[]): FileFault | null;
  /** What the log holds now. */
  extent(): LogExtent;
  /** The first rows of a slice, none if it is empty. */
  rows(slice: RowSlice): readonly StoredRow[];
  /** Fails with `full` while the disk has no room for every append. */
  ping(): void;
  /** Fails if the file was removed or replaced. */
  checkFile(): void;
  close(): void;
}

/** What the thread of a backup (backup-worker.ts) is started with. */
export interface BackupTask {
  /** The folder to create. */
  readonly to: string;
  /** The folder of the log. */
  readonly dataDir: string;
  readonly extent: LogExtent;
}

/** Its first message: why the folder cannot be used, or null if it can. */
export interface BackupReady {
  readonly refused: string | null;
}

/** What it serves: `insert` until all rows are copied, `verify` until null, then `name`. */
export interface ServedBackup {
  insert(table: RowSlice['table'], rows: readonly StoredRow[]): void;
  /** Verifies the next rows; returns the position that it has reached, or null if the whole copy is verified. */
  /** @param extent what the log held when the last row was copied */
  verify(extent: LogExtent): number | null;
  /** Gives the copy its final name. */
  name(): void;
  /** Removes a copy without a name. */
  close(): void;
}

/**
 * Why a call failed. `writeFailed`: a write failed and what the file holds is uncertain; `fileReplaced`: the file was
 * removed or replaced. After these two the thread writes nothing more and fails every call; after the others nothing
 * else is affected.
 */
export type FaultCode = FileFault | 'failed' | 'writeFailed' | 'fileReplaced';

// Positions of the embedded log: numbers inside, zero-padded text outside, so that `<` compares them.

/** Enough for every safe integer of JavaScript. */
const DIGITS = 16;
const TEXT = /^\d{16}$/;

/** The position of the n-th event of the log, from 1. */
export function positionOf(ordinal: number): Position {
  return String(ordinal).padStart(DIGITS, '0') as Position;
}

/** The ordinal at a position; 0 for null, the start. @throws {TypeError} for a position of another kind of log */
export function ordinalOf(position: Position | null): number {
  if (position === null) return 0;
  if (!TEXT.test(position)) throw new TypeError(`No position of this log: "${position}"`);
  return Number(position);
}
