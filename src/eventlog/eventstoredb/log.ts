/** The event log on EventStoreDB or KurrentDB behind the EventLog port: for many processes at once. */
import { setMaxListeners } from 'node:events';
import type { System } from '../../system/system.js';
import { untilDeadline, wait, backoffMs } from '../../system/async/deadline.js';
import type { Backoff } from '../../system/async/deadline.js';
import { reasonOf } from '../../system/untrusted.js';
import { ConfigInvalid } from '../../errors.js';
import {
  AppendOutcomeUnknown,
  LogClosed,
  LogDenied,
  LogNameless,
  LogUnavailable,
  RevisionConflict,
} from '../errors.js';
import type {
  AllRange,
  Appended,
  EventLog,
  ExpectedRevision,
  Followed,
  NewEvent,
  Position,
  RecordedEvent,
  StreamRange,
  SubscribeOptions,
} from '../port.js';
import { LogUnreadable, categoryOf, checkAppend } from '../port.js';
import { LOG_VERSION, refusalOf } from '../log-version.js';
import { Appender, MAX_WAITING } from './appender.js';
import { Clients, isDeletedBefore, isDenied } from './clients.js';
import { addressIn } from './connection-string.js';
import { SERVER_BEGIN, streamNames, isOurs } from './names.js';
import type { LogName, Reader } from './reads.js';
import { assertWhole, nameIn, roundTrip, streamEvents, newestFirst } from './reads.js';
import type { CheckedAppend } from './streams-service.js';
import { allEvents, follow } from './subscription.js';

/**
 * Longest wait for an answer, in milliseconds. The server gives up a write after 2 s, so less would leave more outcomes
 * unknown; calls pending at a leader's death fail only after this time.
 */
export const DEADLINE_MS = 2_500;

export interface EventStoreOptions {
  /** Connection string: `esdb://` or `kurrentdb://`, with credentials and TLS settings where needed. */
  readonly url: string;
  /** Prefix of every stream's name, so that several logs can share a server; `[a-z0-9]*`, default none. */
  readonly prefix?: string;
  /** How many of its newest events a stream keeps, by category; set when a stream is created. Default: all. */
  readonly keepLast?: Readonly<Record<string, number>>;
  /** Streams that must never lose an event. */
  readonly lasting?: readonly string[];
  /** Categories of the streams of a log, to recognise a log without a name. */
  readonly categories?: readonly string[];
  /** How long the server may leave any call without an answer, in milliseconds. Default: 2,500. */
  readonly deadlineMs?: number;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'uuid'>;
}

/**
 * Opens the log. Connects on the first call: while the server is down, each call fails after its deadline. Sends each
 * append once; the caller repeats one whose outcome is unknown (`appendWithRetry` in port.ts).
 *
 * @throws {ConfigInvalid} the connection string cannot be used
 */
export function openEventStoreLog(options: EventStoreOptions): EventLog {
  return new EventStoreLog(options);
}

function clientsOf(url: string): Clients {
  try {
    return new Clients(addressIn(url));
  } catch (error) {
    throw new ConfigInvalid({
      variable: 'EVENTSTORE_URL',
      value: '(hidden)',
      accepted: `a connection string that can be used (${reasonOf(error)})`,
    });
  }
}

class EventStoreLog implements EventLog {
  readonly #reader: Reader;
  readonly #appender: Appender;
  readonly #keepLast: Readonly<Record<string, number>>;
  readonly #lasting: readonly string[];
  readonly #categories: readonly string[];
  readonly #newId: () => string;
  readonly #closing = new AbortController();
  #closed: Promise<void> | null = null;
  /** Appends that wait until the log's name is read or the settings of their stream are written. */
  readonly #prepared = new Set<Promise<Appended>>();
  /** The log's name, or null before the first call needs it. */
  #name: Promise<LogName> | null = null;
  #isNamed = false;
  #head: KnownHead | null = null;

  constructor(options: EventStoreOptions) {
    const {
      url,
      prefix = '',
      keepLast = {},
      lasting = [],
      categories = [],
      deadlineMs = DEADLINE_MS,
      system,
    } = options;
    // Each read and each subscription listens.
    setMaxListeners(0, this.#closing.signal);
    const clients = clientsOf(url);
    const reader = { clients, names: streamNames(prefix), system, deadlineMs, closing: this.#closing.signal };
    this.#reader = reader;
    this.#appender = new Appender({ clients, system, deadlineMs, roundTrip: () => roundTrip(reader) });
    this.#keepLast = keepLast;
    this.#lasting = lasting;
    this.#categories = categories;
    this.#newId = () => system.uuid();
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    const append = { stream, events, metadata: checkAppend(stream, events, expected), expected };
    const kept = expected === 'none' ? this.#keepLast[categoryOf(stream)] : undefined;
    if (this.#isNamed && kept === undefined) return await this.#append(append);
    if (this.#prepared.size >= MAX_WAITING) throw new LogUnavailable();
    const appended = this.#prepare(stream, kept).then(() => this.#append(append));
    this.#prepared.add(appended);
    return await appended.finally(() => this.#prepared.delete(appended));
  }

  async *readStream(stream: string, range: StreamRange = {}): AsyncIterable<RecordedEvent> {
    this.#checkOpen();
    yield* streamEvents(this.#reader, { stream, serverStream: this.#reader.names.toServer(stream) }, range);
  }

  async *readAll(after: Position | null, range: AllRange = {}): AsyncIterable<RecordedEvent> {
    this.#checkOpen();
    yield* allEvents(this.#reader, { after, begin: this.#begin }, range);
  }

  async remove(streams: readonly string[]): Promise<void> {
    this.#checkOpen();
    await Promise.all(streams.map((stream) => this.#tombstone(stream)));
  }

  async #tombstone(stream: string): Promise<void> {
    const { clients, names, deadlineMs } = this.#reader;
    const { client, release } = clients.borrow();
    try {
      await client.tombstone(names.toServer(stream), deadlineMs);
    } catch (error) {
      if (isDeletedBefore(error)) return;
      const cause = clients.redacted(error);
      throw isDenied(error) ? new LogDenied({ cause }) : new AppendOutcomeUnknown({ stream }, { cause });
    } finally {
      release();
    }
  }

  subscribe(after: Position | null, options: SubscribeOptions): AsyncIterable<Followed> {
    return follow(this.#reader, { after, begin: this.#begin }, options);
  }

  async identity(): Promise<string> {
    this.#checkOpen();
    return (await this.#named()).identity;
  }

  async head(): Promise<Position | null> {
    this.#checkOpen();
    const found = await newestHead(this.#reader, this.#head ?? { upTo: await this.#begin(), head: null });
    // Of two concurrent searches the later one has searched further.
    if (this.#head === null || found.upTo > this.#head.upTo) this.#head = found;
    return found.head;
  }

  /** The server keeps each event until its whole stream is deleted. */
  async hasGaps(): Promise<boolean> {
    this.#checkOpen();
    return false;
  }

  async ping(): Promise<void> {
    this.#checkOpen();
    await roundTrip(this.#reader);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { clients, system, deadlineMs } = this.#reader;
    await Promise.allSettled(this.#prepared);
    await this.#appender.stop();
    this.#closing.abort(new LogClosed());
    await clients.close(system, deadlineMs);
  }

  readonly #begin = async (): Promise<Position> => (await this.#named()).position;

  async #prepare(stream: string, kept: number | undefined): Promise<void> {
    await this.#named();
    this.#isNamed = true;
    if (kept !== undefined) await this.#setMaxCount(stream, kept);
  }

  async #append(append: CheckedAppend): Promise<Appended> {
    const { stream } = append;
    try {
      return await this.#appender.append(append, this.#reader.names.toServer(stream));
    } catch (error) {
      if (error instanceof RevisionConflict) await this.#untilReadable(stream, error.data.actual);
      throw error;
    }
  }

  /** Waits until the event that won a conflict can be read. @throws {LogUnavailable} not in time */
  async #untilReadable(stream: string, actual: number | 'none'): Promise<void> {
    if (actual === 'none') return;
    const read = async (): Promise<true | null> => {
      for await (const _ of this.readStream(stream, { from: actual, max: 1 })) return true;
      return null;
    };
    await untilVisible(read, this.#reader);
  }

  /** Sets how many events a stream keeps. Runs before the stream is created, so that it never holds more. */
  async #setMaxCount(stream: string, count: number): Promise<void> {
    const event = { id: this.#newId(), type: '$metadata', data: JSON.stringify({ $maxCount: count }), metadata: {} };
    const serverStream = `$$${this.#reader.names.toServer(stream)}`;
    try {
      await this.#appender.append({ stream, events: [event], metadata: ['{}'], expected: 'any' }, serverStream);
    } catch (cause) {
      throw new LogUnavailable({ cause });
    }
  }

  /** The log's name, read or written on first use. @throws {LogUnavailable | LogClosed} */
  async #named(): Promise<LogName> {
    this.#name ??= this.#readOrWriteName();
    try {
      return await this.#name;
    } catch (error) {
      this.#name = null;
      throw error instanceof AppendOutcomeUnknown ? new LogUnavailable({ cause: error }) : error;
    }
  }

  /**
   * The name is a random id in a stream of its own. The first process writes it before anything else: the log begins at
   * its position, whatever the server holds for others. A log that has events without a name has lost its name.
   *
   * @throws {StreamLost | LogNameless}
   */
  async #readOrWriteName(): Promise<LogName> {
    const reader = this.#reader;
    const found = await nameIn(reader);
    const name = found === null ? null : await this.#raised(found);
    const lasting = this.#lasting.map(reader.names.toServer);
    for (const stream of name === null ? [reader.names.identityStream, ...lasting] : lasting)
      await assertWhole(reader, stream);
    if (name !== null) return name;
    if (await this.#holdsEvents()) return await this.#nameGivenMeanwhile();
    const identity = this.#newId();
    try {
      const { position } = await this.#appendToName('LogNamed', { identity, version: LOG_VERSION }, 'none');
      return { identity, position, version: LOG_VERSION };
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
      return await this.#raised(await untilVisible(() => nameIn(reader), reader));
    }
  }

  /**
   * The name of a log that needs this version from now on. Several instances may record that; only the number matters.
   *
   * @throws {LogUnreadable} the log needs a newer version
   */
  async #raised(name: LogName): Promise<LogName> {
    const refusal = refusalOf(name.version);
    if (refusal !== null) throw new LogUnreadable({ file: 'EVENTSTORE_URL', reason: refusal });
    if (name.version < LOG_VERSION) await this.#appendToName('LogVersionRaised', { version: LOG_VERSION }, 'any');
    return { ...name, version: LOG_VERSION };
  }

  async #appendToName(type: string, data: object, expected: 'none' | 'any'): Promise<Appended> {
    const stream = this.#reader.names.identityStream;
    const event = { id: this.#newId(), type, data: JSON.stringify(data), metadata: {} };
    return await this.#appender.append({ stream, events: [event], metadata: ['{}'], expected }, stream);
  }

  async #holdsEvents(): Promise<boolean> {
    const begin = async (): Promise<Position> => SERVER_BEGIN;
    for await (const _ of allEvents(this.#reader, { after: null, begin }, { categories: this.#categories, max: 1 }))
      return true;
    return false;
  }

  /** The name that another process has given since, before the events that were found. @throws {LogNameless} */
  async #nameGivenMeanwhile(): Promise<LogName> {
    const name = await nameIn(this.#reader);
    if (name === null) throw new LogNameless({ stream: this.#reader.names.identityStream });
    return await this.#raised(name);
  }

  #checkOpen(): void {
    if (this.#closed !== null) throw new LogClosed();
  }
}

const VISIBLE: Backoff = { firstMs: 5, longestMs: 100 };

/**
 * Reads repeatedly until there is a result. The server reports a conflict with a write that reads find only later
 * (measured on 23.10.6: 79 ms on average under load, up to 333 ms).
 *
 * @throws {LogUnavailable} no result within the deadline: the write may have failed after all
 */
function untilVisible<T>(
  read: () => Promise<T | null>,
  { system, deadlineMs }: { readonly system: Pick<System, 'after'>; readonly deadlineMs: number },
): Promise<T> {
  return untilDeadline(
    async (signal) => {
      for (let tries = 1; !signal.aborted; tries += 1) {
        const found = await read();
        if (found !== null) return found;
        await wait(system, backoffMs(VISIBLE, tries), signal);
      }
      throw new LogUnavailable();
    },
    { system, maxMs: deadlineMs },
  );
}

/** The position up to which the server was searched, and the position of this log's newest event, or null if it has none. */
export interface KnownHead {
  readonly upTo: Position;
  readonly head: Position | null;
}

/**
 * The head after a search of what the server has recorded since.
 *
 * @throws {LogUnavailable | LogClosed}
 */
async function newestHead(reader: Reader, known: KnownHead): Promise<KnownHead> {
  for await (const newest of newestFirst(reader, 1)) {
    const { position: upTo } = newest;
    if (upTo <= known.upTo) return known;
    return { upTo, head: isOurs(newest) ? upTo : await searched(reader, known) };
  }
  return known;
}

/**
 * Searches from both ends at once. Forwards the server filters the events of other logs, which is fast if this log is
 * small; backwards it cannot, which is fast if the other logs have recorded little since.
 */
async function searched(reader: Reader, known: KnownHead): Promise<Position | null> {
  const over = new AbortController();
  const searching = { ...reader, closing: AbortSignal.any([reader.closing, over.signal]) };
  const searches = [backwards(searching, known), forwards(searching, known)];
  for (const search of searches) search.catch(() => undefined);
  try {
    return await Promise.race(searches);
  } finally {
    over.abort();
  }
}

async function backwards(reader: Reader, { upTo, head }: KnownHead): Promise<Position | null> {
  for await (const read of newestFirst(reader)) {
    if (read.position <= upTo) return head;
    if (isOurs(read)) return read.position;
  }
  return head;
}

async function forwards(reader: Reader, { upTo, head }: KnownHead): Promise<Position | null> {
  let last = head;
  const from = { after: upTo, begin: () => Promise.resolve(upTo) };
  for await (const { position } of allEvents(reader, from, {})) last = position;
  return last;
}
