/**
 * The record: what every event log must offer. Two adapters stand behind it, embedded and eventstoredb; one
 * contract suite, test/log/event-log-contract.ts, holds every adapter to these sentences.
 */
import { CouncilError } from '../errors.js';

/** A place in the log's global order: opaque text, comparable with `<`. Never a number, in JSON neither. */
export type Position = string & { readonly brand: 'Position' };

/** An event as its writer hands it over. */
export interface NewEvent {
  /** Version-4 UUID chosen by the caller; the key of idempotent appends. */
  readonly id: string;
  readonly type: string;
  /** JSON text of an object, kept byte for byte by the embedded log and as a JSON value by every log. */
  readonly data: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** An event as the log gives it back. */
export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  /** Place in its stream, from 0. Test it against `null`, never for truth. */
  readonly revision: number;
  readonly position: Position;
}

/** What a stream's last event must be for an append to be accepted: no stream yet, or this revision. */
export type ExpectedRevision = 'none' | number;

export interface Appended {
  /** Revision of the last event of the append. */
  readonly revision: number;
  /** Position of the last event of the append. */
  readonly position: Position;
}

export interface StreamRange {
  /** First revision read, inclusive. Default: the first event, or backwards the last. */
  readonly from?: number;
  readonly direction?: 'forwards' | 'backwards';
  /** Most events given. Default: all. */
  readonly max?: number;
}

export interface AllRange {
  /** Stream names' text before their first dash; default: every stream. */
  readonly categories?: readonly string[];
  readonly max?: number;
}

export interface SubscribeOptions {
  readonly categories?: readonly string[];
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
}

/** `caughtUp` comes once history has been delivered; `checkpoint` tells of progress past events of other categories. */
export type Followed =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  | { readonly kind: 'caughtUp' }
  | { readonly kind: 'checkpoint'; readonly position: Position };

export interface EventLog {
  /**
   * Appends all events or none, after the expected revision. Resolves once they are durable. The same ids at the same
   * expected revision answer the first result, also after later events.
   *
   * @throws {RevisionConflict} surely not written; the event that it names can be read from then on
   * @throws {AppendTooLarge | AppendInvalid | LogClosed} surely not written
   * @throws {LogUnavailable} surely not sent
   * @throws {AppendOutcomeUnknown} may be written: retry with the same ids and revision until the answer is certain
   */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;

  /** A stream's events; a missing stream is empty. Reads in pages, so memory does not grow with the stream. */
  readStream(stream: string, range?: StreamRange): AsyncIterable<RecordedEvent>;

  /** Every event after a position (`null`: from the start) in global order, up to the head at the time of reading. */
  readAll(after: Position | null, range?: AllRange): AsyncIterable<RecordedEvent>;

  /**
   * History after a position (exclusive), then what is appended, in global order, without gap, at least once, through
   * a bounded buffer. Ends by the signal, or throws.
   *
   * @throws {SubscriptionDropped} with the last position delivered, from which to subscribe again
   */
  subscribe(after: Position | null, following: SubscribeOptions): AsyncIterable<Followed>;

  /** Names this log for as long as it lives: read models folded from another one are folded again. */
  identity(): Promise<string>;

  /** Position of the newest event, `null` when the log is empty. */
  head(): Promise<Position | null>;

  /** A real round trip to the storage. */
  ping(): Promise<void>;

  /** Lets appends under way finish, then refuses further calls. May be called twice. */
  close(): Promise<void>;
}

/** Largest append in bytes: the sum of its events' types, data and metadata as UTF-8. */
export const MAX_APPEND_BYTES = 512 * 1024;

/** The category of a stream: its name before the first dash. */
export function categoryOf(stream: string): string {
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : stream.slice(0, dash);
}

/** A log cannot be read where it was looked for, or not as one log. */
export class LogUnreadable extends CouncilError<{ readonly file: string }> {
  readonly code = 'log.unreadable';
  constructor({ file, reason }: { readonly file: string; readonly reason: string }, options?: ErrorOptions) {
    super(`Cannot read the event log "${file}": ${reason}`, { file }, options);
  }
}

// An event's metadata as it is read: flat texts.

/** Damaged metadata, or another program's, is read as none: the event then has no hash, and the chain names it. */
export function flatMetadata(json: string): Readonly<Record<string, string>> {
  try {
    const metadata: unknown = JSON.parse(json);
    return isFlat(metadata) ? metadata : {};
  } catch {
    return {};
  }
}

function isFlat(metadata: unknown): metadata is Readonly<Record<string, string>> {
  if (typeof metadata !== 'object' || metadata === null) return false;
  for (const name in metadata) if (typeof (metadata as Record<string, unknown>)[name] !== 'string') return false;
  return true;
}
