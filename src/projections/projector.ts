/** The one subscription of this process: feeds every read model, in the log's order, and knows how far it has come. */
import type { Ambient } from '../ambient.js';
import { LogClosed } from '../errors.js';
import { pause } from '../log/append-surely.js';
import type { EventLog, Position, RecordedEvent } from '../log/port.js';
import { runEventOf } from '../run/stream.js';
import type { History } from './history.js';
import type { RunViews } from './run-views.js';
import { summaryOf } from './run-summary.js';

/** Wait before subscribing again after a drop, in milliseconds. */
const RESUBSCRIBE_MS = 250;

export interface ProjectorOptions {
  readonly log: EventLog;
  readonly views: RunViews;
  readonly history: History;
  readonly ambient: Pick<Ambient, 'after'>;
  readonly onFault: (error: unknown) => void;
}

export class Projector {
  readonly #options: ProjectorOptions;
  readonly #stopping = new AbortController();
  readonly #waiters = new Set<{ readonly position: Position; readonly resolve: () => void }>();
  #position: Position | null;
  #caughtUp = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ProjectorOptions) {
    this.#options = options;
    this.#position = options.history.checkpoint;
  }

  /** Whether history has been folded since the start. */
  get isCaughtUp(): boolean {
    return this.#caughtUp;
  }

  /** Starts folding; resolves once history is caught up. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#running = this.#run(resolve);
    });
  }

  /** Resolves once everything up to a position is folded; `null` is everything of an empty log. */
  async reached(position: Position | null): Promise<void> {
    if (position === null || (this.#position !== null && this.#position >= position)) return;
    await new Promise<void>((resolve) => this.#waiters.add({ position, resolve }));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(onCaughtUp: () => void): Promise<void> {
    const { log, ambient, onFault } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        for await (const followed of log.subscribe(this.#position, { categories: ['run'], signal })) {
          if (followed.kind === 'event') await this.#fold(followed.event);
          else if (followed.kind === 'checkpoint') this.#reach(followed.position);
          else {
            this.#caughtUp = true;
            onCaughtUp();
          }
        }
      } catch (error) {
        if (error instanceof LogClosed) return;
        onFault(error);
        await pause(ambient, RESUBSCRIBE_MS, signal);
      }
    }
  }

  async #fold(recorded: RecordedEvent): Promise<void> {
    const { views, history } = this.#options;
    const runId = recorded.stream.slice(recorded.stream.indexOf('-') + 1);
    const run = await views.apply(runId, runEventOf(recorded));
    if (run !== null) await history.put(summaryOf(run));
    this.#reach(recorded.position);
  }

  #reach(position: Position): void {
    this.#position = position;
    this.#options.history.reached(position);
    for (const waiter of this.#waiters) {
      if (waiter.position > position) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
