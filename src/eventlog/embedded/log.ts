/** The embedded log: SQLite in a worker thread behind the EventLog port. For one process, with nothing to install. */
import { existsSync } from 'node:fs';
import { DataDirHeld, LogClosed, LogDamaged, LogFull, LogUnavailable, WriteFailed } from '../errors.js';
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
import type { AppendBatch, Page, PageQuery, Reply, Request } from './messages.js';
import { eventsOn, isReply, ordinalOf, positionOf } from './messages.js';
import { follow, liveFeed } from './subscription.js';
import { PAGE_CHARS, allPages, streamPages } from './pages.js';
import type { StartThread, Thread } from '../../system/thread.js';
import { startThread } from '../../system/thread.js';
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
  onDamaged = () => undefined,
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
  readonly onDamaged?: (fault: LogDamaged) => void;
  /** Called when the disk is found full, and when there is room again. */
  readonly onFull?: (isFull: boolean) => void;
}): Promise<EventLog> {
  if (viewsOf !== null && !existsSync(file)) {
    const reason = `there is no such file, but "${viewsOf}" was made from one: restore it, or delete that folder to begin anew`;
    throw new LogUnreadable({ file, reason });
  }
  const link = new EmbeddedLink(file, start(new URL('./worker.js', import.meta.url), file));
  const { identity, head, hasGaps } = await link.opened();
  return new EmbeddedLog(link, { identity, head, hasGaps, onBroken, onDamaged, onFull });
}

interface OpenedLog {
  readonly identity: string;
  readonly head: number;
  readonly hasGaps: boolean;
  readonly onBroken: (fault: LogUnavailable) => void;
  readonly onDamaged: (fault: LogDamaged) => void;
  readonly onFull: (isFull: boolean) => void;
}

class EmbeddedLog implements EventLog {
  readonly #link: EmbeddedLink;
  readonly #identity: string;
  readonly #hasGaps: boolean;
  readonly #feed = liveFeed();
  readonly #queue: AppendQueue;
  /** Ordinal of the newest event whose append has been acknowledged, 0 for none. */
  #head: number;
  /** Why calls are refused: closed, or failed. */
  #ended: Error | null = null;
  #closing: Promise<void> | null = null;
  /** The first damage found. */
  #damage: LogDamaged | null = null;
  readonly #onFull: (isFull: boolean) => void;
  #isFull = false;

  constructor(link: EmbeddedLink, { identity, head, hasGaps, onBroken, onDamaged, onFull }: OpenedLog) {
    this.#link = link;
    this.#identity = identity;
    this.#hasGaps = hasGaps;
    this.#head = head;
    this.#onFull = onFull;
    this.#queue = new AppendQueue({
      write: (batch) => this.#write(batch),
      onWritten: (append, appended) => {
        this.#head = appended.ordinal;
        if (this.#feed.hasListeners()) this.#feed.publish(recordedOf(append, appended));
      },
      refusal: (fault) => (fault === 'full' ? new LogFull() : link.damaged('an append met it')),
    });
    link.onDamage((damage) => {
      this.#damage = damage;
      onDamaged(damage);
    });
    link.onFault((fault) => {
      this.#ended ??= fault;
      this.#queue.refuse(fault);
      this.#feed.close(fault);
      onBroken(fault);
    });
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
    return this.#identity;
  }

  async head(): Promise<Position | null> {
    this.#checkOpen();
    return this.#head === 0 ? null : positionOf(this.#head);
  }

  async hasGaps(): Promise<boolean> {
    this.#checkOpen();
    return this.#hasGaps;
  }

  async ping(): Promise<void> {
    this.#checkOpen();
    await this.#link.request({ kind: 'ping' });
    this.#noteRoom(true);
    if (this.#damage !== null) throw this.#damage;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#ended ??= new LogClosed();
    await this.#queue.idle();
    this.#feed.close(this.#ended);
    await this.#link.close();
  }

  async #write(batch: AppendBatch): Promise<readonly number[]> {
    const reply = await this.#link.request({ kind: 'append', batch });
    if (reply.kind !== 'appended') throw new Error(`The event log's thread answered an append with "${reply.kind}"`);
    this.#noteRoom(!reply.isFull);
    return reply.outcomes;
  }

  async #page(query: PageQuery): Promise<Page> {
    this.#checkOpen();
    const reply = await this.#link.request({ kind: 'page', query });
    if (reply.kind !== 'page') throw new Error(`The event log's thread answered a read with "${reply.kind}"`);
    return reply.page;
  }

  #noteRoom(hasRoom: boolean): void {
    if (this.#isFull !== hasRoom) return;
    this.#isFull = !hasRoom;
    this.#onFull(this.#isFull);
  }

  #checkOpen(): void {
    if (this.#ended !== null) throw this.#ended;
  }
}

// The embedded log's connection to its thread: requests go out, replies come back in the same order.

/** Most requests without a reply; further reads are refused. Appends come in batches, one at a time. */
const MAX_REQUESTS = 10_000;

interface Awaited {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

/** Owns the thread. Once it has failed, all requests, pending and later ones, are refused for good. */
class EmbeddedLink {
  readonly #file: string;
  readonly #thread: Thread;
  #awaited: Awaited[] = [];
  #fault: LogUnavailable | null = null;
  #onFault: (fault: LogUnavailable) => void = () => undefined;
  #onDamage: (damage: LogDamaged) => void = () => undefined;
  #resolveExited: () => void = () => undefined;
  readonly #exited = new Promise<void>((resolve) => (this.#resolveExited = resolve));

  constructor(file: string, thread: Thread) {
    this.#file = file;
    this.#thread = thread;
    this.#thread.on('message', (message) => this.#receive(message));
    this.#thread.on('error', (cause) => this.#fail(cause));
    this.#thread.on('exit', () => {
      this.#resolveExited();
      this.#fail(new Error("The event log's thread has ended"));
    });
  }

  /**
   * Resolves once the worker has opened the file.
   *
   * @throws {DataDirHeld} another process has it open
   * @throws {LogUnreadable} it is unusable
   */
  async opened(): Promise<Extract<Reply, { kind: 'opened' }>> {
    const reply = await this.#next();
    const file = this.#file;
    if (reply.kind === 'opened') return reply;
    await this.#exited;
    if (reply.kind !== 'refused') throw new Error(`Cannot open the event log "${file}": ${reply.kind}`);
    if (reply.held) throw new DataDirHeld({ path: dirname(file), holder: 'another process' });
    throw new LogUnreadable({ file, reason: reply.reason });
  }

  /** Calls back when the worker or its storage fails. */
  onFault(callback: (fault: LogUnavailable) => void): void {
    this.#onFault = callback;
  }

  /** Calls back when something stored is found damaged, the first time. */
  onDamage(callback: (damage: LogDamaged) => void): void {
    this.#onDamage = callback;
  }

  /** The error for what cannot be read. */
  damaged(reason: string): LogDamaged {
    const damage = new LogDamaged({ file: this.#file, reason });
    this.#onDamage(damage);
    this.#onDamage = () => undefined;
    return damage;
  }

  /**
   * @throws {LogUnavailable} the read failed, too many requests wait, or the log has failed for good
   * @throws {LogDamaged} what is asked for is damaged
   * @throws {LogFull} to a ping: there is still no room
   */
  async request(request: Request): Promise<Reply> {
    if (this.#fault !== null) throw this.#fault;
    const isRead = request.kind === 'page' || request.kind === 'ping';
    if (isRead && this.#awaited.length >= MAX_REQUESTS) throw new LogUnavailable();
    this.#thread.postMessage(request);
    const reply = await this.#next();
    if (reply.kind === 'failed') throw this.#errorOf(reply);
    return reply;
  }

  #errorOf({ fault, reason }: Extract<Reply, { kind: 'failed' }>): Error {
    switch (fault) {
      case 'damage':
        return this.damaged(reason);
      case 'full':
        return new LogFull();
      case null:
        return new LogUnavailable({ cause: new Error(reason) });
      default:
        return fault satisfies never;
    }
  }

  /**
   * Lets the thread close the file, once all that was asked for is answered, and resolves once it has ended. It ends by
   * itself: one that is terminated while it is in native code takes the process with it.
   *
   * @throws {LogUnavailable} the file could not be closed
   */
  async close(): Promise<void> {
    this.#onFault = () => undefined;
    try {
      if (this.#fault === null) await this.request({ kind: 'close' });
      else this.#thread.postMessage({ kind: 'close' } satisfies Request);
    } finally {
      await this.#exited;
    }
  }

  #next(): Promise<Reply> {
    return new Promise((resolve, reject) => this.#awaited.push({ resolve, reject }));
  }

  #receive(message: unknown): void {
    if (!isReply(message)) return this.#fail(new TypeError("The event log's thread sent no answer"));
    if (message.kind === 'broken')
      return this.#fail(message.isGone ? new Error(message.reason) : new WriteFailed(message.reason));
    this.#awaited.shift()?.resolve(message);
  }

  #fail(cause: unknown): void {
    if (this.#fault !== null) return;
    this.#fault = new LogUnavailable({ cause });
    const awaited = this.#awaited;
    this.#awaited = [];
    for (const { reject } of awaited) reject(this.#fault);
    this.#onFault(this.#fault);
  }
}
