/** The event log on EventStoreDB or KurrentDB behind the EventLog port: for many processes at once. */
import type { System } from '../../system/system.js';
import { AppendOutcomeUnknown, LogClosed, LogUnavailable, RevisionConflict } from '../errors.js';
import { ConfigInvalid } from '../../errors.js';
import { checkAppend } from '../port.js';
import type {
  AllRange,
  Appended,
  EventLog,
  ExpectedRevision,
  Followed,
  SubscribeOptions,
  NewEvent,
  Position,
  RecordedEvent,
  StreamRange,
} from '../port.js';
import { categoryOf } from '../port.js';
import type { CheckedAppend } from './appender.js';
import { Appender, MAX_WAITING } from './appender.js';
import { Connection } from './connection.js';
import { follow } from './subscription.js';
import type { LogName, Reader } from './reads.js';
import { allEvents, headPosition, nameIn, roundTrip, streamEvents } from './reads.js';
import { streamNames } from './read-message.js';
import { untilDeadline } from '../../system/async/deadline.js';
import type { Backoff } from '../../system/async/retry.js';
import { backoffMs } from '../../system/async/retry.js';
import { wait } from '../../system/async/deadline.js';
import { reasonOf } from '../../system/untrusted.js';

/**
 * Longest wait for an answer, in milliseconds. The server gives up a write after 2 s, so less would leave more outcomes
 * unknown; calls pending at a leader's death fail only after this time.
 */
export const DEADLINE_MS = 2_500;

/** Longest time to find this log's newest event among those of other logs, in milliseconds. */
const LONGEST_HEAD_MS = 30_000;

export interface EventStoreOptions {
  /** Connection string: `esdb://` or `kurrentdb://`, with credentials and TLS settings where needed. */
  readonly url: string;
  /** Prefix of every stream's name, so that several logs can share a server; `[a-z0-9]*`, default none. */
  readonly prefix?: string;
  /** How many of its newest events a stream keeps, by category; set when a stream is created. Default: all. */
  readonly keepLast?: Readonly<Record<string, number>>;
  /** How long any call may take to be answered, in milliseconds. Default: 2,500. */
  readonly deadlineMs?: number;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'uuid'>;
}

/**
 * Opens the log. Connects on the first call: while the server is down, each call fails after its deadline. Each append
 * is sent once; the caller repeats one whose outcome is unknown (eventsourcing/append-with-retry.ts).
 *
 * @throws {ConfigInvalid} the connection string cannot be used
 */
export function openEventStoreLog(options: EventStoreOptions): EventLog {
  const { url, prefix = '', keepLast = {}, deadlineMs = DEADLINE_MS, system } = options;
  const connection = connectionTo(url, { system, deadlineMs });
  const deps = { connection, names: streamNames(prefix), system, deadlineMs };
  const appender = new Appender({ connection, system, deadlineMs });
  const newId = (): string => system.uuid();
  const reader: Reader = { ...deps, naming: new Naming(deps, appender, newId) };
  return new EventStoreLog(reader, appender, { keepLast, newId });
}

interface StreamSettings {
  readonly keepLast: Readonly<Record<string, number>>;
  readonly newId: () => string;
}

class EventStoreLog implements EventLog {
  readonly #reader: Reader;
  readonly #appender: Appender;
  readonly #settings: StreamSettings;
  #closing: Promise<void> | null = null;
  /** Appends that wait for the log's name to be read or for their stream's settings to be written. */
  readonly #prepared = new Set<Promise<Appended>>();
  #isNamed = false;
  /** How long the server may take to find the newest event, in milliseconds. */
  #headTimeoutMs: number;

  constructor(reader: Reader, appender: Appender, settled: StreamSettings) {
    this.#reader = reader;
    this.#headTimeoutMs = reader.deadlineMs;
    this.#appender = appender;
    this.#settings = settled;
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    const append = { stream, events, expected, metadata: checkAppend(stream, events, expected) };
    const kept = expected === 'none' ? this.#settings.keepLast[categoryOf(stream)] : undefined;
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
    yield* allEvents(this.#reader, after, range);
  }

  subscribe(after: Position | null, following: SubscribeOptions): AsyncIterable<Followed> {
    return follow(this.#reader, after, following);
  }

  async identity(): Promise<string> {
    this.#checkOpen();
    return (await this.#reader.naming.name()).identity;
  }

  async head(): Promise<Position | null> {
    this.#checkOpen();
    try {
      const head = await headPosition({ ...this.#reader, deadlineMs: this.#headTimeoutMs });
      this.#headTimeoutMs = this.#reader.deadlineMs;
      return head;
    } catch (error) {
      this.#extendHeadTimeout();
      throw error;
    }
  }

  /** A server that answers other calls in time is busy skipping the events of other logs: it gets more time. */
  #extendHeadTimeout(): void {
    const next = Math.min(LONGEST_HEAD_MS, 2 * this.#headTimeoutMs);
    roundTrip(this.#reader).then(
      () => (this.#headTimeoutMs = next),
      () => undefined,
    );
  }

  /** The server keeps each event until its whole stream is deleted. */
  async hasGaps(): Promise<boolean> {
    return false;
  }

  async ping(): Promise<void> {
    this.#checkOpen();
    await roundTrip(this.#reader);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#prepared);
    await this.#appender.stop();
    this.#reader.connection.close();
  }

  async #prepare(stream: string, kept: number | undefined): Promise<void> {
    await this.#reader.naming.name();
    this.#isNamed = true;
    if (kept !== undefined) await this.#keepLast(stream, kept);
  }

  async #append(append: CheckedAppend & { readonly expected: ExpectedRevision }): Promise<Appended> {
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

  /** Written before the stream is created, so that it never holds more events than this. */
  async #keepLast(stream: string, count: number): Promise<void> {
    const settings = { id: this.#settings.newId(), type: '$metadata', data: JSON.stringify({ $maxCount: count }) };
    const events = [{ ...settings, metadata: {} }];
    const serverStream = `$$${this.#reader.names.toServer(stream)}`;
    try {
      await this.#appender.append({ stream, events, expected: 'any', metadata: ['{}'] }, serverStream);
    } catch (cause) {
      throw new LogUnavailable({ cause });
    }
  }

  #checkOpen(): void {
    if (this.#closing !== null) throw new LogClosed();
  }
}

function connectionTo(url: string, options: Omit<ConstructorParameters<typeof Connection>[0], 'url'>): Connection {
  try {
    return new Connection({ ...options, url });
  } catch (error) {
    throw new ConfigInvalid({
      variable: 'EVENTSTORE_URL',
      value: '(hidden)',
      accepted: `a connection string that can be used (${reasonOf(error)})`,
    });
  }
}

/**
 * Reads the log's name on first use, or writes one. The name is a random id in a stream of its own, written before
 * anything else by the first process: the log begins at its position, whatever the server holds for others. `newId`
 * makes version-4 UUIDs.
 */
class Naming {
  readonly #name: () => Promise<LogName>;
  #known: Promise<LogName> | null = null;

  constructor(reader: Omit<Reader, 'naming'>, appender: Appender, newId: () => string) {
    this.#name = () => nameOf(reader, appender, newId);
  }

  /** @throws {LogUnavailable | LogClosed} it cannot be read or written now */
  async name(): Promise<LogName> {
    this.#known ??= this.#name();
    try {
      return await this.#known;
    } catch (error) {
      this.#known = null;
      throw error instanceof AppendOutcomeUnknown ? new LogUnavailable({ cause: error }) : error;
    }
  }
}

async function nameOf(reader: Omit<Reader, 'naming'>, appender: Appender, newId: () => string): Promise<LogName> {
  const found = await nameIn(reader);
  if (found !== null) return found;
  const identity = newId();
  const event = { id: newId(), type: 'LogNamed', data: JSON.stringify({ identity }), metadata: {} };
  const stream = reader.names.identityStream;
  try {
    const append = { stream, events: [event], expected: 'none', metadata: ['{}'] } as const;
    return { identity, position: (await appender.append(append, stream)).position };
  } catch (error) {
    if (!(error instanceof RevisionConflict)) throw error;
    return await untilVisible(() => nameIn(reader), reader);
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
