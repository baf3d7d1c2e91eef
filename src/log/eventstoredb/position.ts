/** Positions of an EventStoreDB: commit and prepare position within, fixed-width text without, so that `<` compares them. */
import type { Position } from '../port.js';

/** A place in the server's transaction log, both numbers as decimal text (they are 64 bits wide). */
export interface ServerPosition {
  readonly commit: string;
  readonly prepare: string;
}

/** Hex digits of a 64-bit number. */
const DIGITS = 16;
const TEXT = /^[0-9a-f]{32}$/;

/** The position of an event at a place in the server's log. */
export function positionOf({ commit, prepare }: ServerPosition): Position {
  return `${wide(commit)}${wide(prepare)}` as Position;
}

/** The place at a position. @throws {TypeError} for a position of another kind of log */
export function serverPositionOf(position: Position): ServerPosition {
  if (!TEXT.test(position)) throw new TypeError(`No position of this log: "${position}"`);
  return { commit: decimal(position.slice(0, DIGITS)), prepare: decimal(position.slice(DIGITS)) };
}

function wide(number: string): string {
  return BigInt(number).toString(16).padStart(DIGITS, '0');
}

function decimal(hex: string): string {
  return BigInt(`0x${hex}`).toString();
}
