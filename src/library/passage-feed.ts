/**
 * Feeds the index of passages: what is ingested comes in, what is deleted goes, in the order of the log. It is told of
 * live events by the projector, which holds the one subscription; what was recorded before is read here. The index is
 * opened when there is a document for the first time.
 */
import type { Ambient } from '../ambient.js';
import { CouncilError, ServiceStopping } from '../errors.js';
import type { EventLog, Position, RecordedEvent } from '../log/port.js';
import { wait } from '../wait.js';
import { DocumentDamaged } from './document-errors.js';
import { documentEventOf, documentIdOf } from './document-events.js';
import { isDecisive } from './document-record.js';
import type { PassagesIndex } from './passages-index.js';
import { recordedPassages } from './recorded-passages.js';

/** Wait before what failed is tried again, in milliseconds. */
const RETRY_MS = 1_000;
/** Events that wait to be taken in; when more come they are forgotten, and read from the log later. */
const MAX_WAITING = 1_000;

export interface FeedOptions {
  readonly log: EventLog;
  readonly ambient: Pick<Ambient, 'after' | 'sha256'>;
  /** Opens the index. */
  readonly open: () => Promise<PassagesIndex>;
  /** Whose vectors the index takes from the log; null: it computes them. */
  readonly model: string | null;
  /** Told of each document that lacks vectors of the model: it cannot be found. */
  readonly onIncomplete: (documentId: string) => void;
  readonly onFault: (error: unknown) => void;
}

interface Waiter {
  readonly position: Position;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class PassageFeed {
  readonly #options: FeedOptions;
  readonly #stopping = new AbortController();
  readonly #waiting: RecordedEvent[] = [];
  readonly #waiters = new Set<Waiter>();
  #index: PassagesIndex | null = null;
  /** Up to here everything is in the index, or there is nothing. */
  #position: Position | null = null;
  /** Up to here the log is to be read; later events are told. Null: nothing is to be read. */
  #unread: Position | null = null;
  #running: Promise<void> | null = null;
  #wake: () => void = () => undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** The index while it is open. */
  get index(): PassagesIndex | null {
    return this.#index;
  }

  /** Whether everything that it was told of and that was there before is in. */
  get isCaughtUp(): boolean {
    return this.#unread === null && this.#waiting.length === 0;
  }

  /** Takes in what was recorded up to a position, from which on it is told of what comes. */
  start(position: Position | null, { hasDocuments }: { readonly hasDocuments: boolean }): void {
    if (hasDocuments) this.#unread = position;
    else this.#position = position;
    if (hasDocuments) this.#begin();
  }

  /** Takes the next event of a document. */
  take(event: RecordedEvent): void {
    if (!isDecisive(event)) return;
    this.#waiting.push(event);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.length = 0;
      this.#unread = event.position;
    }
    this.#begin();
    this.#wake();
  }

  /** Resolves once an event it was told of is in. @throws {ServiceStopping} when it will not come in here any more */
  async reached(position: Position): Promise<void> {
    if (this.isCaughtUp || (this.#position !== null && this.#position >= position)) return;
    if (this.#stopping.signal.aborted) throw new ServiceStopping();
    await new Promise<void>((resolve, reject) => this.#waiters.add({ position, resolve, reject }));
  }

  /** @param position up to which the projector has come: none of it is read again, if all of it is in */
  async stop(position: Position | null): Promise<void> {
    const isWhole = this.isCaughtUp;
    this.#stopping.abort();
    this.#wake();
    await this.#running;
    for (const { reject } of this.#waiters) reject(new ServiceStopping());
    this.#waiters.clear();
    const { onFault } = this.#options;
    const isNews = position !== null && (this.#position === null || position > this.#position);
    if (isWhole && isNews) await this.#index?.write({ added: [], removed: [], checkpoint: position }).catch(onFault);
    await this.#close();
  }

  async #close(): Promise<void> {
    const index = this.#index;
    this.#index = null;
    await index?.close().catch(this.#options.onFault);
  }

  #begin(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    const { ambient, onFault } = this.#options;
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
        await wait(ambient, RETRY_MS, signal);
      }
    }
  }

  /** As asked for between waits: the compiler takes a signal's first answer for its last. */
  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #opened(): Promise<PassagesIndex> {
    if (this.#index !== null) return this.#index;
    const index = await this.#options.open();
    // An index that has been there may have missed events that this process has not been told of.
    const checkpoint = index.checkpoint as Position | null;
    if (checkpoint !== null && this.#position !== null && checkpoint < this.#position) this.#unread = this.#position;
    if (checkpoint !== null || this.#unread !== null) this.#position = checkpoint;
    return (this.#index = index);
  }

  async #takeIn(index: PassagesIndex): Promise<void> {
    while (!this.#isStopping) {
      const [next] = this.#waiting;
      if (this.#unread !== null) await this.#catchUp(index, this.#unread);
      else if (next === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else {
        await this.#put(index, next);
        if (this.#waiting[0] === next) this.#waiting.shift();
      }
      this.#settle();
    }
  }

  /** Reads what was recorded before the first event that waits. */
  async #catchUp(index: PassagesIndex, until: Position): Promise<void> {
    for await (const event of this.#options.log.readAll(this.#position, { categories: ['document'] })) {
      if (this.#isStopping) return;
      if (event.position > until) break;
      if (isDecisive(event)) await this.#put(index, event);
    }
    // Unless there is more by now.
    if (this.#unread === until) this.#unread = null;
  }

  async #put(index: PassagesIndex, event: RecordedEvent): Promise<void> {
    if (this.#position !== null && event.position <= this.#position) return;
    const document = documentIdOf(event.stream) ?? '';
    try {
      await this.#replace(index, document, event);
    } catch (error) {
      if (!(error instanceof DocumentDamaged)) throw error;
      // A damaged document cannot be found; the others go on.
      this.#options.onFault(error);
      await index.write({ added: [], removed: [document], checkpoint: event.position });
    }
    this.#position = event.position;
  }

  /** The document as the event leaves it takes the place of what was found of it before. */
  async #replace(index: PassagesIndex, document: string, recorded: RecordedEvent): Promise<void> {
    const { log, ambient, model, onIncomplete } = this.#options;
    const event = documentEventOf(recorded);
    let removed: readonly string[] = [document];
    let found = 0;
    if (event.type === 'DocumentIngested') {
      const span = { from: event.data.since, to: event.seq };
      for await (const added of recordedPassages(document, span, { log, sha256: ambient.sha256, model })) {
        await index.write({ added, removed, checkpoint: null });
        removed = [];
        found += added.length;
      }
      if (found < event.data.chunks) {
        removed = [document];
        onIncomplete(document);
      }
    }
    await index.write({ added: [], removed, checkpoint: recorded.position });
  }

  #settle(): void {
    for (const waiter of this.#waiters) {
      if (!this.isCaughtUp && (this.#position === null || this.#position < waiter.position)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
