/**
 * The event log port. It has two adapters, embedded and eventstoredb; one contract suite,
 * test/eventlog/event-log-contract.ts, checks both.
 */
import { CouncilError } from '../errors.js';
import type { Backoff, Retries } from '../system/async/deadline.js';
import { backoffMs, retry } from '../system/async/deadline.js';
import { AppendInvalid, AppendOutcomeUnknown, AppendTooLarge, LogFull, LogUnavailable } from './errors.js';

/** A place in the log's global order: opaque text, comparable with `<`. Never a number, not even in JSON. */
export type Position = string & { readonly brand: 'Position' };

/** A position from its text, such as a stored checkpoint; the text must come from a log. */
export function positionFromText(text: string): Position {
  return text as Position;
}

/** An event to be appended. */
export interface NewEvent {
  /** Version-4 UUID chosen by the caller; the key of idempotent appends. */
  readonly id: string;
  readonly type: string;
  /** JSON text of an object, kept byte for byte by the embedded log and as a JSON value by every log. */
  readonly data: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** An event as the log returns it. */
export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  /** Place in its stream, from 0: compare it with `null`, never test its truthiness. */
  readonly revision: number;
  readonly position: Position;
  /** When the server recorded it, by its clock, in milliseconds since 1970. The embedded log has none. */
  readonly recordedAtMs?: number;
}

/** The revision that a stream's last event must have for an append, or `none` if the stream must not exist. */
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
  /** Most events returned. Default: all. */
  readonly max?: number;
  /**
   * Most characters of stored events in memory ahead of the reader, roughly. The log reads at least one event, and
   * ignores this if it reads one event at a time. Default: the log's own page.
   */
  readonly pageChars?: number;
}

export interface AllRange {
  /** Categories of the streams that are read; default: all. */
  readonly categories?: readonly string[];
  readonly max?: number;
}

export interface SubscribeOptions {
  readonly categories?: readonly string[];
  /** Types of the events that are delivered; each of letters alone. Default: all. */
  readonly types?: readonly string[];
  /** See `StreamRange`. */
  readonly pageChars?: number;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
}

/** `caughtUp` follows the last event of history; `checkpoint` reports progress past events that are not wanted. */
export type Followed =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  | { readonly kind: 'caughtUp' }
  | { readonly kind: 'checkpoint'; readonly position: Position };

/** The position that a subscriber has reached with a delivery, or null for `caughtUp`. */
export function reachedPosition(followed: Followed): Position | null {
  if (followed.kind === 'caughtUp') return null;
  return followed.kind === 'event' ? followed.event.position : followed.position;
}

export interface BackupOptions {
  /** Ends the backup with the signal's reason. */
  readonly signal: AbortSignal;
  /** Called first when the target has been accepted, with 0 events, then after each slice. */
  readonly onProgress: (progress: BackupProgress) => void;
}

export interface BackupProgress {
  readonly state: 'copying' | 'verifying';
  /** Events that are copied, then verified, of those in the log. */
  readonly events: number;
  readonly of: number;
}

export interface BackedUp {
  /** Events of the copy. */
  readonly events: number;
}

export interface EventLog {
  /**
   * Appends all events or none, after the expected revision. Resolves once they are durable. The same ids at the same
   * expected revision return the first result, also after later events.
   *
   * @throws {RevisionConflict} certainly not written; the event that won can be read from then on
   * @throws {AppendTooLarge | AppendInvalid | StreamRemoved | LogClosed} certainly not written
   * @throws {LogUnavailable} certainly not sent
   * @throws {AppendOutcomeUnknown} may be written: retry with the same ids and revision until the outcome is certain
   */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;

  /**
   * A stream's events; a missing stream is empty. Reads in pages, so memory does not grow with the stream.
   *
   * @throws {StreamRemoved} it was removed, perhaps since the read began
   */
  readStream(stream: string, range?: StreamRange): AsyncIterable<RecordedEvent>;

  /** Every event after a position (`null`: from the start) in global order, up to the head at the time of reading. */
  readAll(after: Position | null, range?: AllRange): AsyncIterable<RecordedEvent>;

  /**
   * History after a position (exclusive), then new appends, in global order, without gap, at least once, through a
   * bounded buffer. Ends with the signal, or throws.
   *
   * @throws {SubscriptionDropped} with the last position delivered, from which to subscribe again
   */
  subscribe(after: Position | null, options: SubscribeOptions): AsyncIterable<Followed>;

  /**
   * Removes streams for good: reads of them throw, and their ids take no events any more, also of a stream that does not
   * exist. The positions of other events stay. Once it resolves, no byte of the events is in the embedded log's files. A
   * server keeps them on its disk, and delivers them in reads of all events, until its next scavenge. May be repeated.
   *
   * @throws {LogClosed | LogUnavailable | LogFull | LogCorrupt | AppendOutcomeUnknown} some may be removed: repeat it
   */
  remove(streams: readonly string[]): Promise<void>;

  /** The log's lasting id: a read model that was folded from another log must be rebuilt. */
  identity(): Promise<string>;

  /** Position of the newest event, or null if the log is empty. */
  head(): Promise<Position | null>;

  /**
   * Whether events were missing in the middle of the log when it was opened. If so, a stream may have lost its last
   * events.
   */
  hasGaps(): Promise<boolean>;

  /** A real round trip to the storage. */
  ping(): Promise<void>;

  /**
   * Copies the log, with every append acknowledged so far, as `log.sqlite` into a new folder, which the service then accepts
   * as its DATA_DIR. The copy is verified before the folder gets its name; a backup that fails leaves nothing. Appends go on,
   * and wait at most for the read of one slice (rows.ts). Only the embedded log has this: a server has a backup of its own.
   *
   * @param to the folder to create: an absolute path outside of DATA_DIR, in an existing folder
   * @throws {BackupRefused} the folder cannot be used, or its disk has too little room
   * @throws {BackupFailed} the copy cannot be written or differs
   * @throws {LogCorrupt | LogUnavailable} the log cannot be read
   */
  readonly backup?: (to: string, options: BackupOptions) => Promise<BackedUp>;

  /** Lets pending appends finish, then refuses further calls. May be called twice. */
  close(): Promise<void>;
}

/**
 * Largest append in bytes: the sum of its events' types, data and metadata as UTF-8. A server of EventStoreDB takes 1 MiB by
 * default, with its own framing.
 */
export const MAX_APPEND_BYTES = 1_000_000;

/** The category of a stream: its name before the first dash. */
export function categoryOf(stream: string): string {
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : stream.slice(0, dash);
}

/** Whether a type is among the wanted types; undefined stands for all. */
export function isOfTypes(type: string, types: readonly string[] | undefined): boolean {
  return types === undefined || types.includes(type);
}

/** The log in this file is missing, unreadable or inconsistent. */
export class LogUnreadable extends CouncilError<{ readonly file: string }> {
  readonly code = 'log.unreadable';
  constructor({ file, reason }: { readonly file: string; readonly reason: string }, options?: ErrorOptions) {
    super(`Cannot read the event log "${file}": ${reason}`, { file }, options);
  }
}

/** What to do about a log that has lost events. */
export const ACCEPT_LOSS = 'restore all of it, or accept the loss with `council check --accept-loss`';

const BACKOFF: Backoff = { firstMs: 50, longestMs: 2_000 };

/** When the retries end, the last error is thrown, and the outcome may stay unknown. */
export interface RetryPolicy extends Retries {
  /** Whether to wait for a full disk too, for an append that no caller would repeat. */
  readonly waitsForRoom?: boolean;
}

/** One append to one stream. */
export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision;
}

/** An append that the log has acknowledged. */
export interface Acknowledged extends Appended {
  /** Whether it took more than one try: then others may have appended after it. */
  readonly isRepeated: boolean;
}

/**
 * Appends with the same ids and revision until the log acknowledges or refuses, waiting between tries: an unknown outcome is
 * not a failure.
 *
 * @throws {RevisionConflict | AppendTooLarge | AppendInvalid | LogFull | LogCorrupt | LogClosed} certainly not written
 */
export async function appendWithRetry(
  log: Pick<EventLog, 'append'>,
  { stream, events, expected }: StreamAppend,
  retryPolicy: RetryPolicy,
): Promise<Acknowledged> {
  let tries = 0;
  const { revision, position } = await retryWhileUnavailable(() => {
    tries += 1;
    return log.append(stream, events, expected);
  }, retryPolicy);
  return { revision, position, isRepeated: tries > 1 };
}

/** Repeats a call with growing waits while the log is unavailable, or while its disk is full if the policy waits for that. */
export function retryWhileUnavailable<T>(ask: () => Promise<T>, retryPolicy: RetryPolicy): Promise<T> {
  const waitMs = (error: unknown, failures: number): number | null => {
    const isUncertain = error instanceof AppendOutcomeUnknown || error instanceof LogUnavailable;
    return isUncertain || (retryPolicy.waitsForRoom === true && error instanceof LogFull)
      ? backoffMs(BACKOFF, failures)
      : null;
  };
  return retry(ask, waitMs, retryPolicy);
}

/** The last event of a stream, or the last up to a revision, or null if there is none. */
export async function lastEvent(
  log: Pick<EventLog, 'readStream'>,
  stream: string,
  upTo?: number,
): Promise<RecordedEvent | null> {
  const range = { direction: 'backwards', max: 1, ...(upTo !== undefined && { from: upTo }) } as const;
  for await (const event of log.readStream(stream, range)) return event;
  return null;
}

/**
 * Whether a stream may have lost its last events, if a view has seen later ones. If not, the view is wrong.
 *
 * @param last revision of the last event, -1 if it has none
 */
export async function mayHaveLostEnd(log: Pick<EventLog, 'hasGaps'>, last: number): Promise<boolean> {
  return last < 0 || (await log.hasGaps());
}

/**
 * An event's metadata as flat texts. Corrupt metadata, or that of another program, counts as empty: the event then has
 * no hash, which the check of the hash chain detects.
 */
export function flatMetadata(json: string): Readonly<Record<string, string>> {
  try {
    return flatTexts(JSON.parse(json));
  } catch {
    return {};
  }
}

/** Metadata as flat texts, or empty if it is anything else. */
function flatTexts(metadata: unknown): Readonly<Record<string, string>> {
  return isFlat(metadata) ? metadata : {};
}

function isFlat(metadata: unknown): metadata is Readonly<Record<string, string>> {
  if (typeof metadata !== 'object' || metadata === null) return false;
  return Object.values(metadata).every((value: unknown) => typeof value === 'string');
}

// Checks that every log makes before it sends an append.

/**
 * Stream names and event types: 1 to 512 characters, no control characters or unpaired surrogates, no leading `$`
 * (EventStoreDB's own streams).
 */
const NAME = /^[^$\p{Cc}\p{Cs}][^\p{Cc}\p{Cs}]{0,511}$/u;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Checks an append's form and size; returns each event's metadata as JSON text. Checks only the first character of the
 * data, because it runs on the hot path: the caller ensures that it is valid JSON.
 *
 * @throws {AppendInvalid} no events, an id twice or no UUID, an unusable name, data that cannot be a JSON object
 * @throws {AppendTooLarge} more than MAX_APPEND_BYTES
 */
export function checkAppend(
  stream: string,
  events: readonly NewEvent[],
  expected: ExpectedRevision,
): readonly string[] {
  const refused = (reason: string): AppendInvalid => new AppendInvalid({ stream, reason });
  if (!NAME.test(stream)) throw refused('the stream name is unusable');
  if (expected !== 'none' && !(Number.isSafeInteger(expected) && expected >= 0)) {
    throw refused('no such revision can be expected');
  }
  if (events.length === 0) throw refused('it holds no events');
  for (const { id, type, data } of events) {
    if (!UUID.test(id)) throw refused(`"${id}" is no lower-case UUID`);
    if (!NAME.test(type)) throw refused(`the type of event ${id} is unusable`);
    if (!data.startsWith('{') || !data.isWellFormed()) throw refused(`the data of event ${id} is no JSON object`);
  }
  if (new Set(events.map(({ id }) => id)).size < events.length) throw refused('two of its events have the same id');
  const metadata = events.map((event) => JSON.stringify(event.metadata));
  checkSize(stream, events, metadata);
  return metadata;
}

function checkSize(stream: string, events: readonly NewEvent[], metadata: readonly string[]): void {
  let bytes = 0;
  for (const text of metadata) bytes += Buffer.byteLength(text);
  for (const { type, data } of events) bytes += Buffer.byteLength(type) + Buffer.byteLength(data);
  if (bytes > MAX_APPEND_BYTES) throw new AppendTooLarge({ stream, bytes, limit: MAX_APPEND_BYTES });
}
