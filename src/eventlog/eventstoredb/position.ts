/** Positions of EventStoreDB: commit and prepare position inside, fixed-width text outside, comparable with `<`. */
import type { Position } from '../port.js';
import type { Wide, WirePosition } from './wire.js';

/** Hex digits of half a 64-bit number. */
const DIGITS = 8;
const TEXT = /^[0-9a-f]{32}$/;

/** The position of an event at a place in the server's log. */
export function positionOf({ commit, prepare }: WirePosition): Position {
  const text = hex(commit);
  // The two differ only for events written in a transaction, which current clients do not use.
  const isOne = commit.low === prepare.low && commit.high === prepare.high;
  return (text + (isOne ? text : hex(prepare))) as Position;
}

/** The place at a position. @throws {TypeError} for a position of another kind of log */
export function serverPositionOf(position: Position): WirePosition {
  if (!TEXT.test(position)) throw new TypeError(`No position of this log: "${position}"`);
  return { commit: wideAt(position, 0), prepare: wideAt(position, 2 * DIGITS) };
}

/** 64 bits as fixed-width hex. */
export function hex({ low, high }: Wide): string {
  return half(high) + half(low);
}

const ZERO = '0'.repeat(DIGITS);

function half(bits: number): string {
  if (bits === 0) return ZERO;
  return (bits >>> 0).toString(16).padStart(DIGITS, '0');
}

function wideAt(position: string, from: number): Wide {
  const at = (digit: number): number => Number.parseInt(position.slice(digit, digit + DIGITS), 16);
  return { high: at(from), low: at(from + DIGITS) };
}
