/** What a subscription of the client gives, collected in its order until the reader takes it. */
import type { AllStreamResolvedEvent, AllStreamSubscription } from '@eventstore/db-client';
import type { Position } from '../port.js';
import type { ReadEvent } from './names.js';

/** An event, the position of a checkpoint, or that all history has been delivered. */
export type Delivered = ReadEvent | Position | 'caughtUp';

/** Events, and UTF-16 units of their data, that wait here for a slow reader; the rest waits at the server. */
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
  /** What the client told beside events, and how many events before it the client still holds. */
  readonly #told: { ahead: number; readonly delivered: Position | 'caughtUp' }[] = [];
  #batch: Delivered[] = [];
  #chars = 0;
  #end: { readonly reason: unknown } | null = null;
  #wake = (): void => undefined;

  constructor(options: CollectedOptions) {
    this.#options = options;
    options.source
      .on('confirmation', options.onMessage)
      .on('caughtUp', () => this.tell('caughtUp'))
      .on('error', (error) => this.end(error))
      .on('end', () => this.end(new Error('The server ended the subscription')))
      .on('data', (resolved: AllStreamResolvedEvent) => this.#take(resolved));
  }

  /** What has come, at least one, for a single reader; or throws why nothing more comes. */
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

  /** The client tells of a checkpoint, or of the end of history, when it has read it, which is before events that it holds. */
  tell(delivered: Position | 'caughtUp'): void {
    const { source, onMessage } = this.#options;
    onMessage();
    this.#told.push({ ahead: source.readableLength, delivered });
    this.#putTold();
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
      // Thrown from here, it would reach no one but the process.
      return this.end(error);
    }
    for (const told of this.#told) told.ahead -= 1;
    this.#putTold();
    if (this.#batch.length >= MAX_EVENTS || this.#chars >= MAX_CHARS) source.pause();
  }

  #putTold(): void {
    for (let told = this.#told[0]; told !== undefined && told.ahead <= 0; told = this.#told[0]) {
      this.#told.shift();
      this.#put(told.delivered);
    }
  }

  #put(delivered: Delivered): void {
    // What comes with it is taken with it.
    if (this.#batch.push(delivered) === 1) setImmediate(() => this.#wake());
  }
}
