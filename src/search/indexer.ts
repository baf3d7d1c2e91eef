/**
 * Feeds the chunk index: adds ingested documents and removes deleted ones, in the order of the log. The projector
 * delivers live events from its subscription; the indexer reads earlier ones from the log. It opens the index with
 * the first document.
 */
import type { System } from '../system/system.js';
import { CouncilError, ServiceStopping } from '../errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { positionFromText } from '../eventlog/port.js';
import { wait, orAborted } from '../system/async/deadline.js';
import { REST_MS } from '../system/derived-file.js';
import { isDecisive } from '../documents/events.js';
import { IndexLost } from './errors.js';
import type { ChunksWrite, SearchIndex } from './index-client.js';
import type { IndexDocumentDeps, WritableIndex } from './index-document.js';
import { indexDocument } from './index-document.js';

/** Wait before a retry, in milliseconds. */
const RETRY_MS = 1_000;
/**
 * Default of the largest number of waiting events. Above it, the indexer drops all of them and reads them from the log.
 */
const MAX_WAITING = 1_000;

export interface SearchIndexerOptions extends IndexDocumentDeps {
  readonly log: EventLog;
  readonly system: Pick<System, 'after' | 'sha256'>;
  /** Opens the index, which calls `onLost` when it has failed and is being replaced by an empty one. */
  readonly open: (onLost: () => void) => Promise<SearchIndex>;
  readonly maxWaiting?: number | undefined;
}

export class SearchIndexer {
  readonly #options: SearchIndexerOptions;
  readonly #stopping = new AbortController();
  readonly #waiting: RecordedEvent[] = [];
  /** Corrupt documents, to remove before the next event is indexed. */
  readonly #corrupt = new Set<string>();
  readonly #waiters = new Waiters();
  #index: SearchIndex | null = null;
  /** Aborted when the index is lost, so that no write meant for the old file reaches the new one. */
  #fileKept = new AbortController();
  /** Position up to which everything is indexed, or null if that is nothing or unknown. */
  #position: Position | null = null;
  /** Position up to which the log has no documents, or null if unknown. */
  #emptyUntil: Position | null = null;
  /** Whether all events from before the start have been delivered. */
  #isHistoryDelivered = false;
  /**
   * Position that the index must reach before searches, so that it contains everything from before the start or a
   * failure.
   */
  #searchableFrom: Position | null = null;
  #hasCaughtUp = false;
  /** Position up to which the log must be read, or null if nothing must be read. Later events are delivered. */
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

  /** Whether any chunk can be found. While that is unknown, true if there was ever a document. */
  get hasChunks(): boolean {
    return this.#isSearchable ? (this.#index?.count() ?? 0) > 0 : this.#running !== null;
  }

  /**
   * The index, once it holds everything from before the start or the last failure, or null if there has never been a
   * document.
   *
   * @throws {ServiceStopping}, or the signal's reason
   */
  async whenSearchable(signal: AbortSignal): Promise<SearchIndex | null> {
    await this.#waiters.until(() => this.#isSearchable, signal);
    return this.#index;
  }

  /** Starts to index the log up to this position, and later events as they are delivered. */
  start(position: Position | null, { hasDocuments }: { readonly hasDocuments: boolean }): void {
    if (hasDocuments) this.#unread = position;
    else this.#position = this.#emptyUntil = position;
    if (hasDocuments) this.#running ??= this.#run();
  }

  /** Marks that all events from before the start have been delivered. */
  markHistoryDelivered(): void {
    this.#isHistoryDelivered = true;
    this.#searchableFrom = this.#waiting.at(-1)?.position ?? this.#unread ?? this.#position;
    this.#checkWaiters();
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

  /** Removes a corrupt or erased document from the index. A later event of it adds it again. */
  removeCorrupt(documentId: string): void {
    if (this.#running === null) return;
    this.#corrupt.add(documentId);
    this.#wake();
  }

  /** Zeroes what removed documents have left in the file. @throws {ServiceStopping | IndexLost} */
  async zeroRemoved(): Promise<void> {
    await this.#waiters.until(() => this.#corrupt.size === 0);
    await this.#index?.zero();
  }

  /**
   * Resolves once a delivered event is indexed.
   *
   * @throws {ServiceStopping} if the indexer stops before; or the signal's reason
   */
  async waitFor(position: Position, signal?: AbortSignal): Promise<void> {
    await this.#waiters.until(() => this.isCaughtUp || this.#hasIndexed(position), signal);
  }

  /** @param position of the projector, to store as checkpoint if everything up to it is indexed */
  async stop(position: Position | null): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#running;
    const isComplete = this.isCaughtUp;
    this.#waiters.end();
    const { onFault } = this.#options;
    const isBehind = position === null || (this.#position !== null && position < this.#position);
    if (isComplete && !isBehind)
      await this.#index?.write({ added: [], removed: [], checkpoint: position }).catch(onFault);
    await this.#index?.close().catch(onFault);
    this.#index = null;
  }

  async #run(): Promise<void> {
    const { system, onFault } = this.#options;
    const { signal } = this.#stopping;
    let isFailing = false;
    while (!signal.aborted) {
      try {
        await this.#indexUntilStopped(await this.#opened());
        isFailing = false;
      } catch (error) {
        // The loss is reported, and the next write waits for the new file.
        if (error instanceof IndexLost) continue;
        // A failure that repeats is reported once.
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
    const index = await this.#options.open(() => this.#onIndexLost());
    this.#resume(index.checkpoint === null ? this.#emptyUntil : positionFromText(index.checkpoint));
    index.incomplete.forEach(this.#options.onIncomplete);
    return (this.#index = index);
  }

  #onIndexLost(): void {
    this.#resume(this.#emptyUntil);
    this.#fileKept.abort(new IndexLost());
    this.#fileKept = new AbortController();
    this.#wake();
  }

  /** Continues from the checkpoint of the file. Events that a rebuilt file lacks are read from the log again. */
  #resume(checkpoint: Position | null): void {
    const before = this.#position;
    this.#position = checkpoint;
    if (before === null || this.#hasIndexed(before)) return;
    this.#unread ??= before;
    if (this.#searchableFrom === null || this.#searchableFrom < before) this.#searchableFrom = before;
  }

  /** Indexes until it is stopped. @throws {IndexLost} */
  async #indexUntilStopped(index: SearchIndex): Promise<void> {
    const { signal: kept } = this.#fileKept;
    const write = async (change: ChunksWrite): Promise<void> => {
      kept.throwIfAborted();
      await index.write(change);
      kept.throwIfAborted();
    };
    this.#checkWaiters();
    while (!this.#isStopping) {
      kept.throwIfAborted();
      const [next] = this.#waiting;
      if (this.#corrupt.size > 0) await this.#writeRemovals({ write });
      else if (this.#unread !== null) await this.#catchUp({ write }, this.#unread, kept);
      else if (next === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else {
        await this.#indexEvent({ write }, next);
        if (this.#waiting[0] === next) this.#waiting.shift();
      }
      this.#checkWaiters();
    }
  }

  /** Indexes the events before the first waiting one, from the log. */
  async #catchUp(index: WritableIndex, until: Position, kept: AbortSignal): Promise<void> {
    for await (const event of this.#options.log.readAll(this.#position, { categories: ['document'] })) {
      if (this.#isStopping) return;
      if (event.position > until) break;
      if (isDecisive(event)) await this.#indexEvent(index, event);
    }
    kept.throwIfAborted();
    if (!this.#hasIndexed(until)) this.#position = until;
    // More events may have been dropped meanwhile.
    if (this.#unread === until) this.#unread = null;
  }

  async #indexEvent(index: WritableIndex, event: RecordedEvent): Promise<void> {
    if (this.#hasIndexed(event.position)) return;
    await indexDocument(index, event, this.#options);
    this.#position = event.position;
  }

  async #writeRemovals(index: WritableIndex): Promise<void> {
    const removed = [...this.#corrupt];
    await index.write({ added: [], removed, checkpoint: this.#position });
    for (const documentId of removed) this.#corrupt.delete(documentId);
  }

  #checkWaiters(): void {
    this.#hasCaughtUp ||= this.#isSearchable;
    this.#waiters.check();
  }

  #hasIndexed(position: Position): boolean {
    return this.#position !== null && this.#position >= position;
  }

  get #isSearchable(): boolean {
    if (!this.#isHistoryDelivered) return false;
    if (this.#index === null) return this.#running === null;
    return this.#searchableFrom === null || this.#hasIndexed(this.#searchableFrom);
  }
}

interface Waiter {
  readonly isMet: () => boolean;
  resolve: () => void;
  reject: (error: Error) => void;
}

/** Callers that wait until a condition holds. */
class Waiters {
  readonly #waiting = new Set<Waiter>();
  #isEnded = false;

  /**
   * Resolves once a condition is met, which is evaluated now and at each `check`.
   *
   * @throws {ServiceStopping} if the waiting was ended before; or the signal's reason
   */
  async until(isMet: () => boolean, signal?: AbortSignal): Promise<void> {
    if (isMet()) return;
    if (this.#isEnded) throw new ServiceStopping();
    const waiter: Waiter = { isMet, resolve: () => undefined, reject: () => undefined };
    const met = new Promise<void>((resolve, reject) => Object.assign(waiter, { resolve, reject }));
    this.#waiting.add(waiter);
    try {
      await (signal === undefined ? met : orAborted(met, signal));
    } finally {
      this.#waiting.delete(waiter);
    }
  }

  check(): void {
    for (const { isMet, resolve } of this.#waiting) if (isMet()) resolve();
  }

  /** Rejects all waiting callers. */
  end(): void {
    this.#isEnded = true;
    for (const { reject } of this.#waiting) reject(new ServiceStopping());
  }
}
