/**
 * Feeds the index of passages: what is ingested comes in, what is deleted goes, in the order of the log. It is told of
 * live events by the projector, which holds the one subscription; what was recorded before is read here. The index is
 * opened when there is a document for the first time.
 */
import type { System } from '../system/system.js';
import { CouncilError, ServiceStopping } from '../errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { wait } from '../system/async/wait.js';
import { isDecisive } from '../documents/events.js';
import type { SearchIndex } from './index-client.js';
import type { IndexDocumentDeps } from './index-document.js';
import { indexDocument } from './index-document.js';

/** Wait before what failed is tried again, in milliseconds. */
const RETRY_MS = 1_000;
/** Events that wait to be taken in; when more come they are forgotten, and read from the log later. */
const MAX_WAITING = 1_000;

export interface SearchIndexerOptions extends IndexDocumentDeps {
  readonly log: EventLog;
  readonly system: Pick<System, 'after' | 'sha256'>;
  /** Opens the index. */
  readonly open: () => Promise<SearchIndex>;
}

export class SearchIndexer {
  readonly #options: SearchIndexerOptions;
  readonly #stopping = new AbortController();
  readonly #waiting: RecordedEvent[] = [];
  /** Documents to be taken out, before what waits is taken in. */
  readonly #dropped = new Set<string>();
  readonly #waiters = waiters();
  #index: SearchIndex | null = null;
  /** Why there is none any more, should it have stopped by itself. */
  #failure = new Error('The index of passages is not open');
  /** Up to here everything is in the index, or there is nothing. */
  #position: Position | null = null;
  /** Up to here there is nothing to be found. */
  #emptyUntil: Position | null = null;
  /** Whether it was told of all that had been recorded before the start. */
  #isHistoryDelivered = false;
  /** From here on the index can be searched: it holds what was recorded before the start, or before it failed. */
  #goal: Position | null = null;
  #hasCaughtUp = false;
  /** Up to here the log is to be read; later events are told. Null: nothing is to be read. */
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

  /** Whether everything that it was told of and that was there before is in. */
  get isCaughtUp(): boolean {
    return this.#unread === null && this.#waiting.length === 0;
  }

  /** Whether everything that was recorded before the start has been in. */
  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  /** Whether there is any passage to find; true while that cannot be told yet and there has been a document. */
  get hasChunks(): boolean {
    return this.#isSearchable ? (this.#index?.count() ?? 0) > 0 : this.#running !== null;
  }

  /**
   * The index, once it is open and holds what was recorded before the start, and after a failure what it held before
   * that; null: there has never been a document.
   *
   * @throws {ServiceStopping}, and why the signal was aborted
   */
  async searchable(signal: AbortSignal): Promise<SearchIndex | null> {
    await this.#waiters.until(() => this.#isSearchable, signal);
    return this.#index;
  }

  /** Takes in what was recorded up to a position, from which on it is told of what comes. */
  start(position: Position | null, { hasDocuments }: { readonly hasDocuments: boolean }): void {
    if (hasDocuments) this.#unread = position;
    else this.#position = this.#emptyUntil = position;
    if (hasDocuments) this.#running ??= this.#run();
  }

  /** Says that it was told of all that had been recorded before the start. */
  markHistoryDelivered(): void {
    this.#isHistoryDelivered = true;
    this.#goal = this.#waiting.at(-1)?.position ?? this.#unread ?? this.#position;
    this.#settle();
  }

  /** Takes the next event of a document. */
  take(event: RecordedEvent): void {
    if (!isDecisive(event)) return;
    this.#waiting.push(event);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.length = 0;
      this.#unread = event.position;
    }
    this.#running ??= this.#run();
    this.#wake();
  }

  /** Takes a document out: it is damaged. An event of it that comes later counts again. */
  drop(documentId: string): void {
    if (this.#running === null) return;
    this.#dropped.add(documentId);
    this.#wake();
  }

  /**
   * Resolves once an event it was told of is in.
   *
   * @throws {ServiceStopping} when it will not come in here any more, and why the signal was aborted
   */
  async reached(position: Position, signal?: AbortSignal): Promise<void> {
    await this.#waiters.until(() => this.isCaughtUp || this.#holds(position), signal);
  }

  /** @param position up to which the projector has come: none of it is read again, if all of it is in */
  async stop(position: Position | null): Promise<void> {
    const isWhole = this.isCaughtUp;
    this.#stopping.abort();
    this.#wake();
    await this.#running;
    this.#waiters.end();
    const { onFault } = this.#options;
    const isBehind = position === null || (this.#position !== null && position < this.#position);
    if (isWhole && !isBehind) await this.#index?.write({ added: [], removed: [], checkpoint: position }).catch(onFault);
    await this.#close();
  }

  async #close(): Promise<void> {
    const index = this.#index;
    this.#index = null;
    await index?.close().catch(this.#options.onFault);
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
        // What fails again and again is told once. An index that fails is opened anew.
        if (!isFailing && !this.#isStopping) onFault(error);
        isFailing = true;
        if (!(error instanceof CouncilError)) await this.#close();
        await wait(system, RETRY_MS, signal);
      }
    }
  }

  /** As asked for between waits: the compiler takes a signal's first answer for its last. */
  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #opened(): Promise<SearchIndex> {
    if (this.#index !== null) return this.#index;
    const index = await this.#options.open();
    const checkpoint = (index.checkpoint as Position | null) ?? this.#emptyUntil;
    const before = this.#position;
    this.#position = checkpoint;
    // What the file does not hold (it was begun anew, or lost its newest writes) is read again.
    if (before !== null && !this.#holds(before)) {
      this.#unread ??= before;
      if (this.#goal === null || this.#goal < before) this.#goal = before;
    }
    void index.stopped.then((error) => this.#lose(index, error));
    index.incomplete.forEach(this.#options.onIncomplete);
    return (this.#index = index);
  }

  /** An index that has stopped by itself is nobody's any more. */
  #lose(index: SearchIndex, error: Error): void {
    if (this.#index !== index) return;
    this.#index = null;
    this.#failure = error;
    this.#wake();
  }

  async #takeIn(index: SearchIndex): Promise<void> {
    this.#settle();
    while (!this.#isStopping) {
      if (this.#index !== index) throw this.#failure;
      const [next] = this.#waiting;
      if (this.#unread !== null) await this.#catchUp(index, this.#unread);
      else if (this.#dropped.size > 0) await this.#takeOut(index);
      else if (next === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else {
        await this.#put(index, next);
        if (this.#waiting[0] === next) this.#waiting.shift();
      }
      this.#settle();
    }
  }

  /** Reads what was recorded before the first event that waits. */
  async #catchUp(index: SearchIndex, until: Position): Promise<void> {
    for await (const event of this.#options.log.readAll(this.#position, { categories: ['document'] })) {
      if (this.#isStopping) return;
      if (event.position > until) break;
      if (isDecisive(event)) await this.#put(index, event);
    }
    if (!this.#holds(until)) this.#position = until;
    // Unless there is more by now.
    if (this.#unread === until) this.#unread = null;
  }

  async #put(index: SearchIndex, event: RecordedEvent): Promise<void> {
    if (this.#holds(event.position)) return;
    await indexDocument(index, event, this.#options);
    this.#position = event.position;
  }

  async #takeOut(index: SearchIndex): Promise<void> {
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

// Those who wait until something holds.

export interface Waiters {
  /**
   * Resolves once a condition holds, which is looked at now and at each `look`.
   *
   * @throws {ServiceStopping} when it is ended before, and why the signal was aborted
   */
  until(holds: () => boolean, signal?: AbortSignal): Promise<void>;
  check(): void;
  /** Nobody's condition comes to hold any more. */
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
        const abort = (): void => waiter.settle(reasonOf(signal));
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

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('The wait was aborted');
}
