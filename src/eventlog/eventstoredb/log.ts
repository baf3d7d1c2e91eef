/** The record on EventStoreDB or KurrentDB behind the EventLog port: for many processes at once. */
import type { System } from '../../system/system.js';
import { AppendOutcomeUnknown, ConfigInvalid, LogClosed, LogUnavailable, RevisionConflict } from '../../errors.js';
import { checkAppend } from '../append-check.js';
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
import type { CheckedAppend } from './append-message.js';
import { Appender, MAX_WAITING } from './appender.js';
import { Connection } from './connection.js';
import { follow } from './subscription.js';
import type { LogName, Reader } from './reads.js';
import { allEvents, headPosition, nameIn, roundTrip, streamEvents } from './reads.js';
import { streamNames } from './stream-names.js';
import { wait } from '../../system/async/wait.js';

/**
 * Longest wait for an answer, in milliseconds. The server gives up a write after 2 s, so that less would leave more
 * outcomes unknown; a leader's death is felt for this long at least.
 */
const DEADLINE_MS = 2_500;

/** Longest that the newest event is looked for among those of others, in milliseconds. */
const LONGEST_HEAD_MS = 30_000;

export interface EventStoreOptions {
  /** Connection string: `esdb://` or `kurrentdb://`, with credentials and TLS settings where needed. */
  readonly url: string;
  /** Put before every stream's name, so that several logs share a server; `[a-z0-9]*`, default none. */
  readonly prefix?: string;
  /** Events kept of each stream of a category, the newest ones; settled when a stream is begun. Default: all. */
  readonly keepLast?: Readonly<Record<string, number>>;
  /** How long any call may take to be answered, in milliseconds. Default: 2,500. */
  readonly deadlineMs?: number;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'uuid'>;
}

/**
 * Opens the log. Connects when first called: a server that is down makes calls fail, each after its deadline, until it
 * is up. Each append is sent once; what to do about an unknown outcome is the caller's to know (append-surely.ts).
 *
 * @throws {ConfigInvalid} nothing can be done with the connection string
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
  /** Appends that the server has to be asked or told something before. */
  readonly #prepared = new Set<Promise<Appended>>();
  #isNamed = false;
  /** How long the server may look for the newest event, in milliseconds. */
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

  /** A server that answers, but not this in time, is looking through what others have appended. */
  #extendHeadTimeout(): void {
    const next = Math.min(LONGEST_HEAD_MS, 2 * this.#headTimeoutMs);
    roundTrip(this.#reader).then(
      () => (this.#headTimeoutMs = next),
      () => undefined,
    );
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

  /** Whoever hears of a conflict reads what it lost to. @throws {LogUnavailable} when that cannot be read in time */
  async #untilReadable(stream: string, actual: number | 'none'): Promise<void> {
    if (actual === 'none') return;
    const read = async (): Promise<true | null> => {
      for await (const _ of this.readStream(stream, { from: actual, max: 1 })) return true;
      return null;
    };
    await untilVisible(read, this.#reader);
  }

  /** Told to the server before the stream is begun, so that there is no moment in which it keeps more. */
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
      accepted: `a connection string that can be used (${error instanceof Error ? error.message : String(error)})`,
    });
  }
}

// * The name of a log: a text of chance in a stream of its own, written by whoever comes first, and before
// anything else: the log begins there, however much a server holds for others.

/** Reads the name, or gives one, when first asked for it. `newId` makes version-4 UUIDs. */
export class Naming {
  readonly #name: () => Promise<LogName>;
  #known: Promise<LogName> | null = null;

  constructor(reader: Omit<Reader, 'naming'>, appender: Appender, newId: () => string) {
    this.#name = () => nameOf(reader, appender, newId);
  }

  /** @throws {LogUnavailable | LogClosed} it cannot be read or given now */
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

// * Waiting for what the server has told of to be readable: it answers "wrong revision" against a write that is
// under way, which a read finds only later (measured on 23.10.6: 79 ms on average under load, up to 333 ms).

const FIRST_WAIT_MS = 5;
const LONGEST_WAIT_MS = 100;

/**
 * Reads again and again until something is there.
 *
 * @throws {LogUnavailable} it was not there within the deadline: the write it belonged to may have come to nothing
 */
export async function untilVisible<T>(
  read: () => Promise<T | null>,
  { system, deadlineMs }: { readonly system: Pick<System, 'after'>; readonly deadlineMs: number },
): Promise<T> {
  const over = new AbortController();
  const cancel = system.after(deadlineMs, () => over.abort());
  try {
    for (let waitMs = FIRST_WAIT_MS; !over.signal.aborted; waitMs = Math.min(LONGEST_WAIT_MS, 2 * waitMs)) {
      const found = await read();
      if (found !== null) return found;
      await wait(system, waitMs, over.signal);
    }
    throw new LogUnavailable();
  } finally {
    cancel();
  }
}
