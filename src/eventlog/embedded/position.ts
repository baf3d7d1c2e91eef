/** Positions of the embedded log: numbers inside, zero-padded text outside, so that `<` compares them. */
import type { Position } from '../port.js';

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
