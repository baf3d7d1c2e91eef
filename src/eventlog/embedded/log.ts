/** The embedded log: SQLite in a worker thread behind the EventLog port. For one process, with nothing to install. */
import { existsSync } from 'node:fs';
import { DataDirHeld, LogClosed, LogCorrupt, LogFull, LogUnavailable, WriteFailed } from '../errors.js';
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
import { LogUnreadable, checkAppend } from '../port.js';
import { AppendQueue, recordedOf } from './append-queue.js';
import type { AppendBatch, FaultCode, LogReady, Page, PageQuery, ServedLog } from './messages.js';
import { eventsOn, ordinalOf, positionOf } from './messages.js';
import { follow, liveFeed } from './subscription.js';
import { PAGE_CHARS, allPages, streamPages } from './pages.js';
import type { StartThread } from '../../system/thread.js';
import { startThread } from '../../system/thread.js';
import { CallFailed, WorkerRpc } from '../../system/worker-rpc.js';
import { dirname } from 'node:path';

/**
 * Opens the log in a file, which is created when missing; its folder must exist.
 *
 * @throws {DataDirHeld} another process has it open
 * @throws {LogUnreadable} the file is missing though it must exist, cannot be opened or holds something else
 */
export async function openEmbeddedLog({
  file,
  viewsOf = null,
  startThread: start = startThread,
  onBroken = () => undefined,
  onCorrupt = () => undefined,
  onFull = () => undefined,
}: {
  readonly file: string;
  /** Folder of views that were folded from this log, which therefore must exist; null: it may be missing. */
  readonly viewsOf?: string | null;
  /** Default: a new one. */
  readonly startThread?: StartThread | undefined;
  /** Called once when a write has failed or the thread has died: appends are refused until the file is opened again. */
  readonly onBroken?: (fault: LogUnavailable) => void;
  /** Called once when something stored is found damaged: what is not touched by it is served on. */
  readonly onCorrupt?: (fault: LogCorrupt) => void;
  /** Called when the disk is found full, and when there is room again. */
  readonly onFull?: (isFull: boolean) => void;
}): Promise<EventLog> {
  if (viewsOf !== null && !existsSync(file)) {
    const reason = `there is no such file, but "${viewsOf}" was made from one: restore it, or delete that folder to begin anew`;
    throw new LogUnreadable({ file, reason });
  }
  const thread: LogThread = new WorkerRpc(
    start(new URL('./worker.js', import.meta.url), file),
    "The event log's thread",
  );
  const ready = await thread.ready().catch((cause: unknown) => {
    throw new LogUnavailable({ cause });
  });
  if ('identity' in ready) return new EmbeddedLog(thread, { file, ...ready, onBroken, onCorrupt, onFull });
  await thread.close();
  if (ready.isHeld) throw new DataDirHeld({ path: dirname(file), holder: 'another process' });
  throw new LogUnreadable({ file, reason: ready.refused });
}

type LogThread = WorkerRpc<LogReady, ServedLog>;

/** Most reads without an answer; further ones are refused. Appends come in batches, one at a time. */
const MAX_READS = 10_000;
/** Time between two looks at whether the file is still in its place, in milliseconds. */
const LOOK_MS = 1_000;

interface OpenedLog {
  readonly file: string;
  readonly identity: string;
  readonly head: number;
  readonly hasGaps: boolean;
  readonly onBroken: (fault: LogUnavailable) => void;
  readonly onCorrupt: (fault: LogCorrupt) => void;
  readonly onFull: (isFull: boolean) => void;
}

class EmbeddedLog implements EventLog {
  readonly #thread: LogThread;
  readonly #opened: OpenedLog;
  readonly #feed = liveFeed();
  readonly #queue: AppendQueue;
  /** Ordinal of the newest event whose append has been acknowledged, 0 for none. */
  #head: number;
  /** Why calls are refused: closed, or failed. */
  #ended: Error | null = null;
  #isBroken = false;
  #closing: Promise<void> | null = null;
  /** The first damage found. */
  #damage: LogCorrupt | null = null;
  #isFull = false;
  /** Reads without an answer. */
  #reads = 0;
  readonly #looking: NodeJS.Timeout;

  constructor(thread: LogThread, opened: OpenedLog) {
    this.#thread = thread;
    this.#opened = opened;
    this.#head = opened.head;
    this.#queue = new AppendQueue({
      write: (batch) => this.#write(batch),
      onWritten: (append, appended) => {
        this.#head = appended.ordinal;
        if (this.#feed.hasListeners()) this.#feed.publish(recordedOf(append, appended));
      },
      refusal: (fault) => (fault === 'full' ? new LogFull() : this.#damaged('an append met it')),
    });
    void thread.stopped.then((cause) => this.#break(cause));
    // Even while the log is idle, another process may create a log in the place of a removed file.
    this.#looking = setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    const metadata = checkAppend(stream, events, expected);
    return this.#queue.add({ stream, events, expected, metadata });
  }

  readStream(stream: string, range: StreamRange = {}): AsyncIterable<RecordedEvent> {
    return streamPages((query) => this.#page(query), stream, range);
  }

  readAll(after: Position | null, range: AllRange = {}): AsyncIterable<RecordedEvent> {
    return allPages((query) => this.#page(query), { after: ordinalOf(after), until: this.#head }, range);
  }

  subscribe(after: Position | null, following: SubscribeOptions): AsyncIterable<Followed> {
    const page = async (query: Omit<Extract<PageQuery, { of: 'all' }>, 'of' | 'max' | 'chars'>) => {
      const chars = following.pageChars ?? PAGE_CHARS;
      const found = await this.#page({ of: 'all', ...query, max: Number.MAX_SAFE_INTEGER, chars });
      return { events: eventsOn(found), end: found.end };
    };
    return follow({ feed: this.#feed, head: () => this.#head, page }, after, following);
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
    this.#noteRoom(true);
    if (this.#damage !== null) throw this.#damage;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearInterval(this.#looking);
    this.#ended ??= new LogClosed();
    await this.#queue.idle();
    this.#feed.close(this.#ended);
    try {
      await this.#thread.close();
    } catch (error) {
      // Of a broken log that is known already.
      if (!this.#isBroken) throw new LogUnavailable({ cause: error });
    }
  }

  async #write(batch: AppendBatch): Promise<readonly number[]> {
    const { outcomes, isFull } = await this.#answered(this.#thread.call('append', batch));
    this.#noteRoom(!isFull);
    return outcomes;
  }

  async #page(query: PageQuery): Promise<Page> {
    this.#checkOpen();
    return this.#read(() => this.#thread.call('page', query));
  }

  async #look(): Promise<void> {
    await this.#read(() => this.#thread.call('look')).catch(() => undefined);
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
      case 'damage':
        return this.#damaged(error.reason);
      case 'full':
        return new LogFull();
      case 'failed':
        return new LogUnavailable({ cause: error });
      case 'gone':
        return this.#break(error);
      case 'broken':
        return this.#break(new WriteFailed(error.reason));
      default:
        return code satisfies never;
    }
  }

  /** The error for what cannot be read. */
  #damaged(reason: string): LogCorrupt {
    const damage = new LogCorrupt({ file: this.#opened.file, reason });
    if (this.#damage === null) this.#opened.onCorrupt(damage);
    this.#damage ??= damage;
    return damage;
  }

  /** Refuses everything from now on: the thread has failed for good. */
  #break(cause: unknown): LogUnavailable {
    const fault = new LogUnavailable({ cause });
    if (this.#isBroken) return fault;
    this.#isBroken = true;
    this.#ended ??= fault;
    clearInterval(this.#looking);
    this.#queue.refuse(fault);
    this.#feed.close(fault);
    if (this.#closing === null) this.#opened.onBroken(fault);
    return fault;
  }

  #noteRoom(hasRoom: boolean): void {
    if (this.#isFull !== hasRoom) return;
    this.#isFull = !hasRoom;
    this.#opened.onFull(this.#isFull);
  }

  #checkOpen(): void {
    if (this.#ended !== null) throw this.#ended;
  }
}
