/**
 * A position in the feed of all runs as opaque text for clients, valid on every instance of the log. It contains a
 * hash of the position and of the log, which distinguishes an invalid cursor from a cursor of another log.
 */
import type { System } from '../system/system.js';
import type { Position } from '../eventlog/port.js';
import { positionFromText } from '../eventlog/port.js';

export interface FeedCursors {
  of(position: Position): string;
  /** `unreadable` if no service wrote the cursor, `elsewhere` if it belongs to another log. */
  read(cursor: string): { readonly position: Position } | 'unreadable' | 'elsewhere';
}

/** Hex digits of a shortened hash. */
const DIGITS = 12;
const FORM = new RegExp(`^([0-9a-f]{${DIGITS}})-([0-9a-f]{${DIGITS}})-([0-9a-f]{1,64})$`);

/** @param identity of the log */
export function feedCursors(identity: string, sha256: System['sha256']): FeedCursors {
  const shortHash = (text: string): string => sha256(text).slice(0, DIGITS);
  const log = shortHash(identity);
  const checkOf = (ofLog: string, position: string): string => shortHash(`feed ${ofLog} ${position}`);
  return {
    of: (position) => `${log}-${checkOf(log, position)}-${position}`,
    read(cursor) {
      const [, ofLog, check, position] = FORM.exec(cursor) ?? [];
      if (ofLog === undefined || position === undefined || check !== checkOf(ofLog, position)) return 'unreadable';
      // The hash proves that it is a position of a log.
      return ofLog === log ? { position: positionFromText(position) } : 'elsewhere';
    },
  };
}
