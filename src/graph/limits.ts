/** The bounds of a council's work. They are frozen into each run, so a change touches only runs started after it. */

/** Drafts before the writer takes over whatever the score. Each more costs two model calls. */
export const MAX_ITERATIONS = 5;

/** The lowest score, of 0 to 10, that approves a draft. */
export const PASS_SCORE = 8;

/** Largest draft in bytes of its JSON text. An event with two drafts must fit one append. */
export const MAX_DRAFT_BYTES = 128 * 1024;

/** Largest feedback of one critic in bytes of its JSON text. */
export const MAX_FEEDBACK_BYTES = 8 * 1024;

/** Most feedback kept in a run's state, in bytes of its JSON text; the oldest goes first. */
export const MAX_ALL_FEEDBACK_BYTES = 64 * 1024;

/** Node executions after which a run fails, by the number of nodes in its graph. */
export function maxNodeExecutions(nodes: number): number {
  return Math.max(50, 3 * nodes);
}

/** The factor by which a fork may at most raise that bound. */
const MAX_RAISE = 10;

/** The most node executions that a fork may be allowed, by the number of nodes in its graph. */
export function mostNodeExecutions(nodes: number): number {
  return MAX_RAISE * maxNodeExecutions(nodes);
}

/** Settings of the service that are frozen into the nodes of a graph. */
export interface NodeDefaults {
  /** Deadline of one call to the model, in milliseconds. */
  readonly timeoutMs: number;
  /** Tries before a node fails its run. */
  readonly maxAttempts: number;
}

/** Length of a text's JSON form in bytes of UTF-8, quotes and escapes included. Builds no copy of the text. */
export function jsonBytes(text: string): number {
  let bytes = 2;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit <= 0xdbff && isLowSurrogate(text.charCodeAt(at + 1))) {
      bytes += 4;
      at += 1;
    } else bytes += bytesOfUnit(unit);
  }
  return bytes;
}

/** The most that `jsonBytes` can come to: six bytes a UTF-16 code unit, and the quotes. */
export function mostJsonBytes({ length }: string): number {
  return length * 6 + 2;
}

/** Whether a text's JSON form is longer than so many bytes; counts only texts long enough to be. */
export function isLonger(text: string, bytes: number): boolean {
  return mostJsonBytes(text) > bytes && jsonBytes(text) > bytes;
}

/** Code points of a text, counted without a copy of it; a lone surrogate counts as one. */
export function codePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1, count += 1) {
    const point = text.codePointAt(at);
    if (point !== undefined && point > 0xffff) at += 1;
  }
  return count;
}

function bytesOfUnit(unit: number): number {
  if (unit < 0x20) return HAS_SHORT_ESCAPE.has(unit) ? 2 : 6;
  if (unit === QUOTE || unit === BACKSLASH) return 2;
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit <= 0xdfff ? 6 : 3;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** \b \t \n \f \r; the other control characters are written as \u00xx. */
const HAS_SHORT_ESCAPE: ReadonlySet<number> = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);
