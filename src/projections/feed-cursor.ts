/**
 * A place in the feed of all runs, as clients hold it: opaque text that every instance of the log honours. It names its
 * log and covers both by a hash, so that an invalid cursor and one of another log are distinguished.
 */
import type { System } from '../system/system.js';
import type { Position } from '../eventlog/port.js';
import { keptPosition } from '../eventlog/port.js';

export interface FeedCursors {
  of(position: Position): string;
  /** `unreadable`: no service wrote it; `elsewhere`: one did, of another log. */
  read(cursor: string): { readonly position: Position } | 'unreadable' | 'elsewhere';
}

/** Hex digits of a hash that are kept. */
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
      // As it was given out: only positions of a log are.
      return ofLog === log ? { position: keptPosition(position) } : 'elsewhere';
    },
  };
}
