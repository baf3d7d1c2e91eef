/**
 * Feeds the chunk index: adds ingested documents and removes deleted ones, in the order of the log. Live events come
 * from the projector, which holds the only subscription; earlier ones are read here. The index is opened when there is
 * a document for the first time.
 */
import type { System } from '../system/system.js';
import { CouncilError, ServiceStopping } from '../errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { keptPosition } from '../eventlog/port.js';
import { abortReason, wait } from '../system/async/deadline.js';
import { REST_MS } from '../system/derived-file.js';
import { isDecisive } from '../documents/events.js';
import { IndexLost } from './errors.js';
import type { ChunksWrite, SearchIndex } from './index-client.js';
import type { IndexDocumentDeps, WritableIndex } from './index-document.js';
import { indexDocument } from './index-document.js';

/** Wait before a retry, in milliseconds. */
const RETRY_MS = 1_000;
/** Most events that wait to be indexed, by default; beyond, all are dropped and read from the log later. */
const MAX_WAITING = 1_000;

export interface SearchIndexerOptions extends IndexDocumentDeps {
  readonly log: EventLog;
  readonly system: Pick<System, 'after' | 'sha256'>;
  /** Opens the index. `onLost` must be called when it has failed, and a new file is created in its place. */
  readonly open: (onLost: () => void) => Promise<SearchIndex>;
  readonly maxWaiting?: number | undefined;
}

export class SearchIndexer {
  readonly #options: SearchIndexerOptions;
  readonly #stopping = new AbortController();
  readonly #waiting: RecordedEvent[] = [];
  /** Documents to remove before the next event is indexed. */
  readonly #dropped = new Set<string>();
  readonly #waiters = waiters();
  #index: SearchIndex | null = null;
  /** Aborted when the index is lost: what is under way then was meant for the lost file. */
  #kept = new AbortController();
  /** Everything up to here is in the index; null: unknown or nothing. */
  #position: Position | null = null;
  /** Up to here the log has no documents. */
  #emptyUntil: Position | null = null;
  /** Whether all events from before the start have been delivered. */
  #isHistoryDelivered = false;
  /** Position at which the index can be searched: it then holds everything from before the start, or a failure. */
  #goal: Position | null = null;
  #hasCaughtUp = false;
  /** Up to here the log has to be read; later events are delivered. Null: nothing has to be read. */
  #unread: Position | null = null;
  #running: Promise<void> | null = null;
  #wake: () => void = () => undefined;

  constructor(options: SearchIndexerOptions) {
    this.#options = options;
  }

  /** The index while it is open. */
  get index(): SearchIndex | null {
    return this.#index;
  }

  /** Whether all delivered and earlier events are indexed. */
  get isCaughtUp(): boolean {
    return this.#unread === null && this.#waiting.length === 0;
  }

  /** Whether all events from before the start have been indexed. */
  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  /** Whether there is any chunk to find; true while that is unknown and there has been a document. */
  get hasChunks(): boolean {
    return this.#isSearchable ? (this.#index?.count() ?? 0) > 0 : this.#running !== null;
  }

  /**
   * The index, once it is open and holds what was recorded before the start, and after a failure what it held before
   * that; null: there has never been a document.
   *
   * @throws {ServiceStopping}, or the signal's reason
   */
  async whenSearchable(signal: AbortSignal): Promise<SearchIndex | null> {
    await this.#waiters.until(() => this.#isSearchable, signal);
    return this.#index;
  }

  /** Starts indexing: the log up to this position, later events as they are delivered. */
  start(position: Position | null, { hasDocuments }: { readonly hasDocuments: boolean }): void {
    if (hasDocuments) this.#unread = position;
    else this.#position = this.#emptyUntil = position;
    if (hasDocuments) this.#running ??= this.#run();
  }

  /** Marks that all events from before the start have been delivered. */
  markHistoryDelivered(): void {
    this.#isHistoryDelivered = true;
    this.#goal = this.#waiting.at(-1)?.position ?? this.#unread ?? this.#position;
    this.#settle();
  }

  /** Delivers the next event of a document. */
  enqueue(event: RecordedEvent): void {
    if (!isDecisive(event)) return;
    this.#waiting.push(event);
    if (this.#waiting.length > (this.#options.maxWaiting ?? MAX_WAITING)) {
      this.#waiting.length = 0;
      this.#unread = event.position;
    }
    this.#running ??= this.#run();
    this.#wake();
  }

  /** Removes a corrupt document from the index. A later event of it adds it again. */
  removeCorrupt(documentId: string): void {
    if (this.#running === null) return;
    this.#dropped.add(documentId);
    this.#wake();
  }

  /**
   * Resolves once a delivered event is indexed.
   *
   * @throws {ServiceStopping} it will not be indexed here any more; or the signal's reason
   */
  async waitFor(position: Position, signal?: AbortSignal): Promise<void> {
    await this.#waiters.until(() => this.isCaughtUp || this.#holds(position), signal);
  }

  /** @param position of the projector: stored as checkpoint if everything up to it is indexed */
  async stop(position: Position | null): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#running;
    const isWhole = this.isCaughtUp;
    this.#waiters.end();
    const { onFault } = this.#options;
    const isBehind = position === null || (this.#position !== null && position < this.#position);
    if (isWhole && !isBehind) await this.#index?.write({ added: [], removed: [], checkpoint: position }).catch(onFault);
    await this.#index?.close().catch(onFault);
    this.#index = null;
  }

  async #run(): Promise<void> {
    const { system, onFault } = this.#options;
    const { signal } = this.#stopping;
    let isFailing = false;
    while (!signal.aborted) {
      try {
        await this.#takeIn(await this.#opened());
        isFailing = false;
      } catch (error) {
        // A write waits for the new file by itself, and the loss is reported.
        if (error instanceof IndexLost) continue;
        // A repeated failure is reported once.
        if (!isFailing && !this.#isStopping) onFault(error);
        isFailing = true;
        await wait(system, this.#index === null && !(error instanceof CouncilError) ? REST_MS : RETRY_MS, signal);
      }
    }
  }

  /** A getter, because the compiler would narrow `aborted` across awaits. */
  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #opened(): Promise<SearchIndex> {
    if (this.#index !== null) return this.#index;
    const index = await this.#options.open(() => this.#lose());
    this.#resume(index.checkpoint === null ? this.#emptyUntil : keptPosition(index.checkpoint));
    index.incomplete.forEach(this.#options.onIncomplete);
    return (this.#index = index);
  }

  #lose(): void {
    this.#resume(this.#emptyUntil);
    this.#kept.abort(new IndexLost());
    this.#kept = new AbortController();
    this.#wake();
  }

  /** Goes on from what the file holds. What it lacks (it was rebuilt, or lost its newest writes) is read again. */
  #resume(checkpoint: Position | null): void {
    const before = this.#position;
    this.#position = checkpoint;
    if (before === null || this.#holds(before)) return;
    this.#unread ??= before;
    if (this.#goal === null || this.#goal < before) this.#goal = before;
  }

  /** Indexes until it is stopped. @throws {IndexLost} */
  async #takeIn(index: SearchIndex): Promise<void> {
    const { signal: kept } = this.#kept;
    const write = async (change: ChunksWrite): Promise<void> => {
      kept.throwIfAborted();
      await index.write(change);
      kept.throwIfAborted();
    };
    this.#settle();
    while (!this.#isStopping) {
      kept.throwIfAborted();
      const [next] = this.#waiting;
      if (this.#dropped.size > 0) await this.#takeOut({ write });
      else if (this.#unread !== null) await this.#catchUp({ write }, this.#unread, kept);
      else if (next === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else {
        await this.#put({ write }, next);
        if (this.#waiting[0] === next) this.#waiting.shift();
      }
      this.#settle();
    }
  }

  /** Indexes the events before the first waiting one, from the log. */
  async #catchUp(index: WritableIndex, until: Position, kept: AbortSignal): Promise<void> {
    for await (const event of this.#options.log.readAll(this.#position, { categories: ['document'] })) {
      if (this.#isStopping) return;
      if (event.position > until) break;
      if (isDecisive(event)) await this.#put(index, event);
    }
    kept.throwIfAborted();
    if (!this.#holds(until)) this.#position = until;
    // Unless more has become unread meanwhile.
    if (this.#unread === until) this.#unread = null;
  }

  async #put(index: WritableIndex, event: RecordedEvent): Promise<void> {
    if (this.#holds(event.position)) return;
    await indexDocument(index, event, this.#options);
    this.#position = event.position;
  }

  async #takeOut(index: WritableIndex): Promise<void> {
    const removed = [...this.#dropped];
    await index.write({ added: [], removed, checkpoint: this.#position });
    for (const documentId of removed) this.#dropped.delete(documentId);
  }

  #settle(): void {
    this.#hasCaughtUp ||= this.#isSearchable;
    this.#waiters.check();
  }

  #holds(position: Position): boolean {
    return this.#position !== null && this.#position >= position;
  }

  get #isSearchable(): boolean {
    if (!this.#isHistoryDelivered) return false;
    if (this.#index === null) return this.#running === null;
    return this.#goal === null || this.#holds(this.#goal);
  }
}

/** Callers that wait until a condition holds. */
export interface Waiters {
  /**
   * Resolves once a condition holds, which is evaluated now and at each `check`.
   *
   * @throws {ServiceStopping} it was ended before; or the signal's reason
   */
  until(holds: () => boolean, signal?: AbortSignal): Promise<void>;
  check(): void;
  /** Rejects all that wait. */
  end(): void;
}

interface Waiter {
  readonly holds: () => boolean;
  readonly settle: (error?: Error) => void;
}

function waiters(): Waiters {
  const waiting = new Set<Waiter>();
  let isEnded = false;
  return {
    until(holds, signal) {
      if (holds()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const abort = (): void => {
          if (signal !== undefined) waiter.settle(abortReason(signal));
        };
        const waiter: Waiter = {
          holds,
          settle(error) {
            waiting.delete(waiter);
            signal?.removeEventListener('abort', abort);
            if (error === undefined) resolve();
            else reject(error);
          },
        };
        if (isEnded) return waiter.settle(new ServiceStopping());
        if (signal?.aborted === true) return abort();
        waiting.add(waiter);
        signal?.addEventListener('abort', abort);
      });
    },
    check() {
      for (const { holds, settle } of waiting) if (holds()) settle();
    },
    end() {
      isEnded = true;
      for (const { settle } of waiting) settle(new ServiceStopping());
    },
  };
}
