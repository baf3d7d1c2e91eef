import type { Position, RecordedEvent } from '../port.js';
import { flatMetadata } from '../port.js';
import type { FileFault } from './faults.js';
import { numberIn, textIn } from './cells.js';

/** The events on a page of the worker, in its order and in the port's shape. */
export function eventsOn({ streams, texts, numbers }: Page): readonly RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (let event = 0, text = 0, number = 0; text < texts.length; event += 1) {
    events.push({
      stream: typeof streams === 'string' ? streams : textIn(streams, event),
      id: textIn(texts, text),
      type: textIn(texts, text + 1),
      data: textIn(texts, text + 2),
      metadata: flatMetadata(textIn(texts, text + 3)),
      position: positionOf(numberIn(numbers, number)),
      revision: numberIn(numbers, number + 1),
    });
    text += TEXTS_PER_EVENT;
    number += NUMBERS_PER_EVENT;
  }
  return events;
}

/**
 * Appends for one transaction. Lists in messages to and from the worker are flat (the fields of one record after the
 * other), because the structured clone of many small objects costs more than the storage does.
 */
export interface AppendBatch {
  /** One entry of each list per append: stream name, expected revision (-1: none), number of events. */
  readonly streams: readonly string[];
  readonly expected: readonly number[];
  readonly counts: readonly number[];
  /** Four per event: id, type, data, metadata as JSON. */
  readonly texts: readonly string[];
}

/** Texts per event in a batch. */
export const TEXTS_PER_NEW_EVENT = 4;

/** What became of an append; by the last two it was not written. */
export const OUTCOME = { written: 0, repeated: 1, conflict: 2, full: 3, damage: 4 } as const;

/** Numbers per outcome: its code, last revision (at a conflict the stream's, -1: none), position of the last event. */
export const NUMBERS_PER_OUTCOME = 3;

/** A page of events: of one stream, or of all in global order. */
export type PageQuery =
  | {
      readonly of: 'stream';
      readonly stream: string;
      /** First revision, inclusive; null: the first, or backwards the last. */
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
  /** The stream of all events, or one per event. */
  readonly streams: string | readonly string[];
  /** Four per event: id, type, data, metadata as JSON. */
  readonly texts: readonly string[];
  /** Two per event: position, revision. */
  readonly numbers: readonly number[];
  /** Where reading stopped (position, or revision of a stream) when there may be more; null at the end. */
  readonly end: number | null;
}

/** Texts per event on a page. */
const TEXTS_PER_EVENT = 4;
/** Numbers per event on a page. */
const NUMBERS_PER_EVENT = 2;

/** What the worker sends once it has opened the file, or why it could not. */
export type LogReady =
  | { readonly identity: string; readonly head: number; readonly hasGaps: boolean }
  | {
      readonly refused: string;
      /** Another process has it open. */
      readonly isHeld: boolean;
    };

/** What became of a batch. */
export interface BatchOutcome {
  /** Numbers per append as `NUMBERS_PER_OUTCOME` says. */
  readonly outcomes: readonly number[];
  /** The disk has no room for every append. */
  readonly isFull: boolean;
}

/** What the worker serves, one call after the other. Its errors have a `FaultCode` as `code`. */
export interface ServedLog {
  append(batch: AppendBatch): BatchOutcome;
  page(query: PageQuery): Page;
  /** Fails with `full` while the disk has no room for every append. */
  ping(): void;
  /** Fails once the file is gone from its place. */
  look(): void;
  close(): void;
}

/**
 * Why a call failed. `broken`: a write failed and what the file holds is uncertain; `gone`: the file is gone from its
 * place. After these two nothing more is written and every call fails alike; after the others nothing else is affected.
 */
export type FaultCode = FileFault | 'failed' | 'broken' | 'gone';

// Positions of the embedded log: numbers inside, zero-padded text outside, so that `<` compares them.

/** Enough for every safe integer of JavaScript. */
const DIGITS = 16;
const TEXT = /^\d{16}$/;

/** The position of the n-th event of the log, from 1. */
export function positionOf(ordinal: number): Position {
  return String(ordinal).padStart(DIGITS, '0') as Position;
}

/** The ordinal at a position; null, the start, is 0. @throws {TypeError} for a position of another kind of log */
export function ordinalOf(position: Position | null): number {
  if (position === null) return 0;
  if (!TEXT.test(position)) throw new TypeError(`No position of this log: "${position}"`);
  return Number(position);
}
