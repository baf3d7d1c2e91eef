/** Collects what a subscription of the client delivers, in its order, until the reader takes it. */
import type { AllStreamResolvedEvent, AllStreamSubscription } from '@eventstore/db-client';
import type { Position } from '../port.js';
import type { ReadEvent } from './names.js';

/** An event, the position of a checkpoint, or the end of history. */
export type Delivered = ReadEvent | Position | 'caughtUp';

/** Events, and UTF-16 units of their data, that wait here for a slow reader; the others wait at the server. */
const MAX_EVENTS = 250;
const MAX_CHARS = 1024 * 1024;

export interface CollectedOptions {
  readonly source: AllStreamSubscription;
  readonly eventIn: (resolved: AllStreamResolvedEvent) => ReadEvent | null;
  /** Called for each message of the server as it arrives. */
  readonly onMessage: () => void;
}

export class Collected {
  readonly #options: CollectedOptions;
  /** Checkpoints and the end of history, with the number of events before each that the client still holds. */
  readonly #marks: { ahead: number; readonly delivered: Position | 'caughtUp' }[] = [];
  #batch: Delivered[] = [];
  #chars = 0;
  #end: { readonly reason: unknown } | null = null;
  #wake = (): void => undefined;

  constructor(options: CollectedOptions) {
    this.#options = options;
    options.source
      .on('confirmation', options.onMessage)
      .on('caughtUp', () => this.mark('caughtUp'))
      .on('error', (error) => this.end(error))
      .on('end', () => this.end(new Error('The server ended the subscription')))
      .on('data', (resolved: AllStreamResolvedEvent) => this.#take(resolved));
  }

  /** Waits for at least one delivery; for a single reader. @throws the reason of `end` */
  async next(): Promise<readonly Delivered[]> {
    while (this.#batch.length === 0) {
      if (this.#end !== null) throw this.#end.reason;
      this.#options.source.resume();
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const batch = this.#batch;
    this.#batch = [];
    this.#chars = 0;
    return batch;
  }

  /** Nothing more comes. */
  end(reason: unknown): void {
    this.#end ??= { reason };
    this.#wake();
  }

  /** Keeps a checkpoint or the end of history for after the events that the client still holds: it reports them early. */
  mark(delivered: Position | 'caughtUp'): void {
    const { source, onMessage } = this.#options;
    onMessage();
    this.#marks.push({ ahead: source.readableLength, delivered });
    this.#putDueMarks();
  }

  #take(resolved: AllStreamResolvedEvent): void {
    if (this.#end !== null) return;
    const { source, eventIn, onMessage } = this.#options;
    onMessage();
    try {
      const event = eventIn(resolved);
      if (event !== null) this.#put(event);
      this.#chars += event?.data.length ?? 0;
    } catch (error) {
      // An error thrown in a listener would end the process.
      return this.end(error);
    }
    for (const mark of this.#marks) mark.ahead -= 1;
    this.#putDueMarks();
    if (this.#batch.length >= MAX_EVENTS || this.#chars >= MAX_CHARS) source.pause();
  }

  #putDueMarks(): void {
    for (let mark = this.#marks[0]; mark !== undefined && mark.ahead <= 0; mark = this.#marks[0]) {
      this.#marks.shift();
      this.#put(mark.delivered);
    }
  }

  #put(delivered: Delivered): void {
    // The reader also takes what arrives in this turn.
    if (this.#batch.push(delivered) === 1) setImmediate(() => this.#wake());
  }
}
