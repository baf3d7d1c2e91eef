/**
 * Limits of a council's work. A run records its limits of scores, executions and takeovers in `limits` of its first
 * event, so a change of these applies to new runs only. It does not record the limits in bytes, so a change of these
 * applies to all runs. A change of `MAX_ALL_FEEDBACK_BYTES` also changes the fold of older runs.
 */

/** A critic's scores after which its route counts as `approve`. Each more costs two model calls. */
export const MAX_ITERATIONS = 5;

/** The lowest score, of 0 to 10, that approves a draft. */
export const PASS_SCORE = 8;

/** Runs of a council at a time, unless it says how many. */
export const MAX_PARALLEL = 8;

/** Takeovers without a completed step before a run fails. */
export const MAX_TAKEOVERS = 5;

/** Largest draft in bytes of its JSON text. An event with two drafts must fit one append. */
export const MAX_DRAFT_BYTES = 128 * 1024;

/**
 * Longest feedback of one critic, in code points. Prompts name this limit, so a change of it changes the prompt hash of
 * older runs. In JSON it takes at most 24 KB.
 */
export const MAX_FEEDBACK_CHARS = 4000;

/** Feedback up to this size as JSON is accepted in an override even if it has more characters. */
export const MAX_FEEDBACK_BYTES = 8 * 1024;

/** Most feedback in a run's state, in bytes of its JSON text; the oldest is dropped. */
export const MAX_ALL_FEEDBACK_BYTES = 64 * 1024;

/** Longest topic of a run, in code points. */
export const MAX_TOPIC_CHARS = 10_000;

/** Largest material of a run, in bytes of UTF-8. Its event must fit one append, with its graph. */
export const MAX_MATERIAL_BYTES = 600_000;

/** Most node executions of a run, by the number of nodes in its graph. */
export function maxNodeExecutions(nodes: number): number {
  return Math.max(50, 3 * nodes);
}

/** The factor by which a fork may raise that limit. */
const MAX_RAISE = 10;

/** The highest limit of node executions of a fork, by the number of nodes in its graph. */
export function mostNodeExecutions(nodes: number): number {
  return MAX_RAISE * maxNodeExecutions(nodes);
}

/** Settings of the service that a run records in the nodes of its graph. */
export interface NodeDefaults {
  /** Deadline of one call to the model, in milliseconds. */
  readonly timeoutMs: number;
  /** Attempts before a node fails its run. */
  readonly maxAttempts: number;
}

/** Bytes of a text in UTF-8. */
export function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** ASCII that JSON does not escape. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Bytes of a value's JSON text in UTF-8. Plain texts are not encoded: a fold measures all feedback at each event. */
export function jsonBytes(value: unknown): number {
  if (typeof value === 'string' && PLAIN.test(value)) return value.length + 2;
  return utf8Bytes(JSON.stringify(value));
}

/** Whether a text's JSON form is longer than so many bytes; a UTF-16 code unit takes at most 6. */
export function isLonger(text: string, bytes: number): boolean {
  return text.length + 2 > bytes || (text.length * 6 + 2 > bytes && jsonBytes(text) > bytes);
}

/** Code points of a text; a lone surrogate counts as one. */
export function codePoints(text: string): number {
  return [...text].length;
}
