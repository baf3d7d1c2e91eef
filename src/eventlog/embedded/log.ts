/** The embedded log: SQLite in a worker thread behind the EventLog port. For one process, with nothing to install. */
import { existsSync } from 'node:fs';
import {
  DataDirHeld,
  LogClosed,
  LogCorrupt,
  LogFull,
  LogUnavailable,
  RevisionConflict,
  StreamRemoved,
  WriteFailed,
} from '../errors.js';
import type {
  AllRange,
  Appended,
  BackedUp,
  BackupOptions,
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
import type { CheckedAppend } from './append-queue.js';
import { AppendQueue } from './append-queue.js';
import type { BackupSource } from './backup.js';
import { backUp } from './backup.js';
import { LiveFeed, follow } from './subscription.js';
import type { AppendOutcome, FaultCode, LogReady, Page, PageQuery, ServedLog } from './messages.js';
import { ordinalOf, positionOf } from './messages.js';
import { PAGE_CHARS, allPages, streamPages } from './pages.js';
import { elementAt } from '../../system/element.js';
import { CallFailed, WorkerRpc } from '../../system/worker-rpc.js';
import { dirname } from 'node:path';

export interface EmbeddedLogOptions {
  /** Created when missing; its folder must exist. */
  readonly file: string;
  /** Folder of views that were folded from this log: then the log must exist. Null if the log may be missing. */
  readonly viewsOf?: string | null;
  /** Categories whose streams keep their last event alone, and only until the log is closed. Default: none. */
  readonly keepLast?: readonly string[];
  /** Called once when a write has failed or the thread has died: appends are refused until the file is opened again. */
  readonly onBroken?: (fault: LogUnavailable) => void;
  /** Called once when a stored record is found corrupt; the others are still served. */
  readonly onCorrupt?: (fault: LogCorrupt) => void;
  /** Called when the disk is found full, and when there is room again. */
  readonly onFull?: (isFull: boolean) => void;
}

/**
 * Opens the log in a file.
 *
 * @throws {DataDirHeld} another process has it open
 * @throws {LogUnreadable} the file is missing though it must exist, cannot be opened or holds something else
 */
export async function openEmbeddedLog(
  options: EmbeddedLogOptions,
): Promise<EventLog & Required<Pick<EventLog, 'backup'>>> {
  const { file, viewsOf = null } = options;
  if (viewsOf !== null && !existsSync(file)) {
    const reason = `it is missing, but "${viewsOf}" was folded from one: restore it, or delete that folder to start over`;
    throw new LogUnreadable({ file, reason });
  }
  const thread: LogThread = new WorkerRpc(new URL('./worker.js', import.meta.url), file, "The event log's thread");
  const ready = await thread.ready().catch((cause: unknown) => {
    throw new LogUnavailable({ cause });
  });
  if ('identity' in ready) return new EmbeddedLog(thread, ready, options);
  await thread.close();
  if (ready.isHeld) throw new DataDirHeld({ path: dirname(file), holder: 'another process' });
  throw new LogUnreadable({ file, reason: ready.refused });
}

type LogThread = WorkerRpc<LogReady, ServedLog>;

/** Most reads without an answer; further ones are refused. Appends come in batches, one at a time. */
const MAX_READS = 10_000;
/** Time between two checks that the file is in its place, in milliseconds. */
const FILE_CHECK_MS = 1_000;

type OpenedLog = Extract<LogReady, { identity: string }>;

class EmbeddedLog implements EventLog {
  readonly #thread: LogThread;
  readonly #opened: OpenedLog;
  readonly #options: EmbeddedLogOptions;
  readonly #feed = new LiveFeed();
  readonly #queue = new AppendQueue((batch) => this.#write(batch));
  readonly #lastEvents = new LastEvents();
  /** Ordinal of the newest event whose append has been acknowledged, 0 for none. */
  #head: number;
  /** Why calls are refused: closed, or failed. */
  #ended: Error | null = null;
  #isBroken = false;
  #closing: Promise<void> | null = null;
  /** The first corrupt record found. */
  #corrupt: LogCorrupt | null = null;
  #isFull = false;
  /** Reads without an answer. */
  #reads = 0;
  readonly #fileCheck: NodeJS.Timeout;

  constructor(thread: LogThread, opened: OpenedLog, options: EmbeddedLogOptions) {
    this.#thread = thread;
    this.#opened = opened;
    this.#options = options;
    this.#head = opened.head;
    void thread.stopped.then((cause) => this.#break(cause));
    // Checks also while the log is idle, because another process may create a log in the place of a removed file.
    this.#fileCheck = setInterval(() => void this.#checkFile(), FILE_CHECK_MS).unref();
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    const metadata = checkAppend(stream, events, expected);
    if (this.#keepsLast(stream))
      return this.#lastEvents.append(stream, events, { expected, position: positionOf(this.#head) });
    const rows = events.map(({ id, type, data }, index) => [id, type, data, elementAt(metadata, index)] as const);
    const outcome = await this.#queue.add({ stream, events, expected: expected === 'none' ? -1 : expected, rows });
    switch (outcome.kind) {
      case 'written':
      case 'repeated':
        return { revision: outcome.revision, position: positionOf(outcome.position) };
      case 'conflict':
        throw new RevisionConflict({ stream, expected, actual: outcome.actual });
      case 'removed':
        throw new StreamRemoved({ stream });
      case 'full':
        throw new LogFull();
      case 'corrupt':
        throw this.#corruptError('found by an append');
      default:
        return outcome satisfies never;
    }
  }

  async *readStream(stream: string, range: StreamRange = {}): AsyncIterable<RecordedEvent> {
    this.#checkOpen();
    if (this.#keepsLast(stream)) yield* this.#lastEvents.read(stream, range);
    else yield* streamPages((query) => this.#page(query), stream, range);
  }

  async remove(streams: readonly string[]): Promise<void> {
    const fault = await this.#readOpen(() => this.#thread.call('remove', streams));
    if (fault === 'full') throw new LogFull();
    if (fault === 'corrupt') throw this.#corruptError('found by a removal');
  }

  readAll(after: Position | null, range: AllRange = {}): AsyncIterable<RecordedEvent> {
    return allPages((query) => this.#page(query), { after: ordinalOf(after), until: this.#head }, range);
  }

  subscribe(after: Position | null, options: SubscribeOptions): AsyncIterable<Followed> {
    const { categories = null, pageChars: chars = PAGE_CHARS } = options;
    const page = { of: 'all', categories, max: Number.MAX_SAFE_INTEGER, chars } as const;
    const readPage = (range: { readonly after: number; readonly until: number }): Promise<Page> =>
      this.#page({ ...page, ...range });
    return follow({ feed: this.#feed, head: () => this.#head, readPage }, after, options);
  }

  async identity(): Promise<string> {
    this.#checkOpen();
    return this.#opened.identity;
  }

  async head(): Promise<Position | null> {
    this.#checkOpen();
    return this.#head === 0 ? null : positionOf(this.#head);
  }

  async hasGaps(): Promise<boolean> {
    this.#checkOpen();
    return this.#opened.hasGaps;
  }

  async ping(): Promise<void> {
    this.#checkOpen();
    await this.#read(() => this.#thread.call('ping'));
    this.#reportRoom(true);
    if (this.#corrupt !== null) throw this.#corrupt;
  }

  async backup(to: string, options: BackupOptions): Promise<BackedUp> {
    const source: BackupSource = {
      file: this.#options.file,
      extent: () => this.#readOpen(() => this.#thread.call('extent')),
      rows: (slice) => this.#readOpen(() => this.#thread.call('rows', slice)),
    };
    return await backUp(source, to, options);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearInterval(this.#fileCheck);
    this.#ended ??= new LogClosed();
    await this.#queue.idle();
    this.#feed.close(this.#ended);
    try {
      await this.#thread.close();
    } catch (error) {
      // The failure of a broken log was reported before.
      if (!this.#isBroken) throw new LogUnavailable({ cause: error });
    }
  }

  async #write(batch: readonly CheckedAppend[]): Promise<readonly AppendOutcome[]> {
    const appends = batch.map(({ stream, expected, rows }) => ({ stream, expected, rows }));
    const { outcomes, isFull } = await this.#answered(this.#thread.call('append', appends));
    this.#reportRoom(!isFull);
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.kind !== 'written') continue;
      this.#head = outcome.position;
      if (this.#feed.hasListeners) this.#feed.publish(recordedEvents(elementAt(batch, index), outcome));
    }
    return outcomes;
  }

  #page(query: PageQuery): Promise<Page> {
    return this.#readOpen(() => this.#thread.call('page', query));
  }

  async #readOpen<T>(call: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    return await this.#read(call);
  }

  async #checkFile(): Promise<void> {
    await this.#read(() => this.#thread.call('checkFile')).catch(() => undefined);
  }

  /** @throws {LogUnavailable} the read failed, or too many wait */
  async #read<T>(call: () => Promise<T>): Promise<T> {
    if (this.#reads >= MAX_READS) throw new LogUnavailable();
    this.#reads += 1;
    try {
      return await this.#answered(call());
    } finally {
      this.#reads -= 1;
    }
  }

  /** The thread's answer. @throws {LogUnavailable | LogCorrupt | LogFull} */
  async #answered<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw this.#errorOf(error);
    }
  }

  #errorOf(error: unknown): Error {
    if (!(error instanceof CallFailed)) return this.#break(error);
    const code = error.code as FaultCode;
    switch (code) {
      case 'corrupt':
        return this.#corruptError(error.reason);
      case 'full':
        return new LogFull();
      case 'failed':
        return new LogUnavailable({ cause: error });
      case 'fileReplaced':
        return this.#break(error);
      case 'writeFailed':
        return this.#break(new WriteFailed(error.reason));
      default:
        return code satisfies never;
    }
  }

  /** The error for a corrupt record; reports the first. */
  #corruptError(reason: string): LogCorrupt {
    const error = new LogCorrupt({ file: this.#options.file, reason });
    if (this.#corrupt === null) this.#options.onCorrupt?.(error);
    this.#corrupt ??= error;
    return error;
  }

  /** Refuses everything from now on: the thread has failed for good. */
  #break(cause: unknown): LogUnavailable {
    const fault = new LogUnavailable({ cause });
    if (this.#isBroken) return fault;
    this.#isBroken = true;
    this.#ended ??= fault;
    clearInterval(this.#fileCheck);
    this.#queue.refuse(fault);
    this.#feed.close(fault);
    if (this.#closing === null) this.#options.onBroken?.(fault);
    return fault;
  }

  #reportRoom(hasRoom: boolean): void {
    if (this.#isFull !== hasRoom) return;
    this.#isFull = !hasRoom;
    this.#options.onFull?.(this.#isFull);
  }

  #keepsLast(stream: string): boolean {
    return this.#options.keepLast?.includes(categoryOf(stream)) === true;
  }

  #checkOpen(): void {
    if (this.#ended !== null) throw this.#ended;
  }
}

/** The events of an append as they were recorded. Each field is named, because Node 20 is slow to spread an event. */
function recordedEvents(
  { stream, events }: CheckedAppend,
  last: { readonly revision: number; readonly position: number },
): readonly RecordedEvent[] {
  return events.map(({ id, type, data, metadata }, index) => {
    const fromLast = events.length - 1 - index;
    const position = positionOf(last.position - fromLast);
    return { id, type, data, metadata, stream, revision: last.revision - fromLast, position };
  });
}

/** The caller bounds the number of streams. */
export class LastEvents {
  /** The last event of each stream, and the ids of the append that wrote it. */
  readonly #last = new Map<string, { readonly event: RecordedEvent; readonly ids: readonly string[] }>();

  /** @param position of the log's newest event @throws {RevisionConflict} */
  append(
    stream: string,
    events: readonly NewEvent[],
    { expected, position }: { readonly expected: ExpectedRevision; readonly position: Position },
  ): Appended {
    const last = this.#last.get(stream);
    const actual = last?.event.revision ?? 'none';
    const revision = (expected === 'none' ? -1 : expected) + events.length;
    const ids = events.map(({ id }) => id);
    if (actual !== expected) {
      const isRepeated = actual === revision && last?.ids.join() === ids.join();
      if (!isRepeated) throw new RevisionConflict({ stream, expected, actual });
      return { revision, position: last.event.position };
    }
    const event = { ...elementAt(events, events.length - 1), stream, revision, position };
    this.#last.set(stream, { event, ids });
    return { revision, position };
  }

  *read(stream: string, { from, direction, max = 1 }: StreamRange): Iterable<RecordedEvent> {
    const event = this.#last.get(stream)?.event;
    if (event === undefined || max < 1) return;
    if (from === undefined || (direction === 'backwards' ? event.revision <= from : event.revision >= from))
      yield event;
  }
}
