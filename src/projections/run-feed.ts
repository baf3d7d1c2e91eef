/**
 * Streams a run's events to its watchers: from the log up to its head, then live from the projector's subscription. A
 * watcher gets the next piece of the record only when it has taken the previous one. Meanwhile the feed buffers
 * nothing for it.
 */
import type { System } from '../system/system.js';
import { RunCorrupt } from '../run/errors.js';
import { ServiceStopping } from '../errors.js';
import type { RecordedEvent } from '../eventlog/port.js';
import type { RunEvent } from '../run/events.js';
import { runIdOf } from '../run/events.js';
import type { RunReader } from './run-reader.js';
import { checkLink } from '../eventsourcing/hash-chain.js';
import { runEventOf } from '../run/stream.js';

/** Smallest number of characters of stored data in a piece of the record, unless the record ends. */
const PIECE_CHARS = 64 * 1024;

export interface FollowOptions extends WatcherOptions {
  /** Called whenever all recorded events have been read. */
  readonly onCaughtUp?: () => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

/** The watchers of a run. */
interface Audience {
  /** Highest revision that the subscription has delivered since the first watcher came. */
  lastDelivered: number;
  readonly watchers: Set<RunWatcher>;
}

export interface RunFeedDeps {
  readonly reader: Pick<RunReader, 'assertReaches' | 'piece'>;
  readonly sha256: System['sha256'];
}

export class RunFeed {
  readonly categories = ['run'];
  readonly #deps: RunFeedDeps;
  readonly #audiences = new Map<string, Audience>();
  #isStopped = false;

  constructor(deps: RunFeedDeps) {
    this.#deps = deps;
  }

  /** Runs being watched. */
  get size(): number {
    return this.#audiences.size;
  }

  /** The number of watchers of a run. */
  watchersOf(runId: string): number {
    return this.#audiences.get(runId)?.watchers.size ?? 0;
  }

  /** Takes the next event of the subscription, of any stream. */
  onEventFolded(recorded: RecordedEvent): void {
    const runId = runIdOf(recorded.stream);
    const audience = runId === null ? undefined : this.#audiences.get(runId);
    if (audience === undefined) return;
    // Set first, because a watcher that reads the log must read up to this event.
    audience.lastDelivered = Math.max(audience.lastDelivered, recorded.revision);
    const event = new LiveEvent(recorded, this.#deps.sha256);
    for (const watcher of audience.watchers) watcher.deliver(event);
  }

  /**
   * Follows a run from a revision. Waits for an unknown run. Resolves when the last event of the run was delivered, the
   * signal has aborted or the feed has stopped.
   *
   * @throws {RunCorrupt | LogUnavailable | LogClosed} when the run cannot be read
   * @throws {ServiceStopping} when the feed has stopped already
   */
  async follow(runId: string, { onCaughtUp = () => undefined, signal, ...options }: FollowOptions): Promise<void> {
    if (this.#isStopped) throw new ServiceStopping();
    const watcher = new RunWatcher(options);
    const onAbort = (): void => watcher.end();
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) watcher.end();
    const audience = this.#audiences.get(runId) ?? { lastDelivered: -1, watchers: new Set() };
    this.#audiences.set(runId, audience);
    audience.watchers.add(watcher);
    try {
      while (!watcher.isOver) {
        await this.#readToHead(runId, watcher, audience.lastDelivered);
        onCaughtUp();
        if (audience.lastDelivered < watcher.next) await watcher.receiveLive();
      }
    } catch (error) {
      if (!watcher.isOver) throw error;
    } finally {
      audience.watchers.delete(watcher);
      if (audience.watchers.size === 0 && this.#audiences.get(runId) === audience) this.#audiences.delete(runId);
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Makes the watchers of a corrupt run read its record, so that they get the error. */
  onRunCorrupt({ data: { runId } }: RunCorrupt): void {
    const audience = this.#audiences.get(runId);
    if (audience === undefined) return;
    audience.lastDelivered = Number.POSITIVE_INFINITY;
    for (const watcher of audience.watchers) watcher.stopLive();
  }

  /** Ends every watching. */
  stop(): void {
    this.#isStopped = true;
    for (const { watchers } of this.#audiences.values()) for (const watcher of watchers) watcher.end();
  }

  /** @throws {RunCorrupt} the log lacks an event that the subscription has delivered */
  async #readToHead(runId: string, watcher: RunWatcher, lastDelivered: number): Promise<void> {
    while (await this.#givePiece(runId, watcher));
    if (watcher.isOver) return;
    await this.#deps.reader.assertReaches(runId);
    if (watcher.next > lastDelivered) return;
    throw new RunCorrupt({
      runId,
      seq: watcher.next,
      reason: 'the subscription delivered this event, the log lacks it',
    });
  }

  /** Gives the next piece of the record and waits until the watcher has taken it. Returns false if there is none. */
  async #givePiece(runId: string, watcher: RunWatcher): Promise<boolean> {
    if (watcher.isOver) return false;
    const piece = await this.#startPiece(runId, watcher);
    await piece?.taken;
    return piece !== null;
  }

  /** A separate function, so that no event stays in memory while the watcher takes the piece. */
  async #startPiece(runId: string, watcher: RunWatcher): Promise<{ readonly taken: Promise<unknown> } | null> {
    const place = { from: watcher.next, previousHash: watcher.hash, maxChars: PIECE_CHARS };
    const events = await this.#deps.reader.piece(runId, place);
    const taken: Promise<void>[] = [];
    for (const event of events) {
      const given = watcher.isOver ? undefined : watcher.give(event);
      if (given !== undefined) taken.push(given);
    }
    return events.length === 0 ? null : { taken: Promise.all(taken) };
  }
}

/** An event that the subscription delivers to many watchers. It is parsed and verified once for all of them. */
class LiveEvent {
  readonly #recorded: RecordedEvent;
  readonly #sha256: System['sha256'];
  #verified: { readonly after: string; readonly event: RunEvent | null } | null = null;

  constructor(recorded: RecordedEvent, sha256: System['sha256']) {
    this.#recorded = recorded;
    this.#sha256 = sha256;
  }

  get revision(): number {
    return this.#recorded.revision;
  }

  /** The event, or null if it does not follow the event with this hash or cannot be read. */
  after(hash: string | null): RunEvent | null {
    if (hash === null) return null;
    if (this.#verified?.after !== hash) this.#verified = { after: hash, event: this.#verify(hash) };
    return this.#verified.event;
  }

  #verify(hash: string): RunEvent | null {
    try {
      const event = runEventOf(this.#recorded);
      return checkLink(hash, event, this.#sha256) ? event : null;
    } catch (error) {
      if (error instanceof RunCorrupt) return null;
      throw error;
    }
  }
}

export interface WatcherOptions {
  /** Revision of the first event wanted. */
  readonly from: number;
  /**
   * Called with the events in order, each exactly once. The next piece of the record waits until the returned promises
   * of this one have resolved; live events do not wait. The promise must not reject.
   */
  readonly onEvent: (event: RunEvent) => void | Promise<void>;
}

/** One watcher of a run in the feed: its next event, and whether it receives live events. */
class RunWatcher {
  readonly #onEvent: WatcherOptions['onEvent'];
  #next: number;
  #hash: string | null = null;
  #isOver = false;
  /** Settles the wait in `receiveLive`, or null while the watcher reads the log. */
  #live: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | null = null;

  constructor({ from, onEvent }: WatcherOptions) {
    this.#next = from;
    this.#onEvent = onEvent;
  }

  /** Revision of the next event to give. */
  get next(): number {
    return this.#next;
  }

  /** Hash of the last event given, or null before the first. */
  get hash(): string | null {
    return this.#hash;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Gives the next event; the run's last one ends the watching. */
  give(event: RunEvent): void | Promise<void> {
    this.#next = event.seq + 1;
    this.#hash = event.hash;
    const taken = this.#onEvent(event);
    if (event.type === 'RunCompleted' || event.type === 'RunFailed') this.end();
    return taken;
  }

  /** Receives live events until the watching ends or the log must be read again. Rejects with what `onEvent` throws. */
  async receiveLive(): Promise<void> {
    if (this.#isOver) return;
    await new Promise<void>((resolve, reject) => (this.#live = { resolve, reject }));
  }

  /**
   * Gives a live event, if the watcher receives these. One that does not follow the last is read from the log instead.
   */
  deliver(live: LiveEvent): void {
    const waiting = this.#live;
    if (waiting === null || live.revision < this.#next) return;
    const event = live.revision === this.#next ? live.after(this.#hash) : null;
    if (event === null) return this.stopLive();
    try {
      void this.give(event);
    } catch (error) {
      // The other watchers must get the event.
      this.#live = null;
      waiting.reject(error);
    }
  }

  /** Makes the watcher read the log again. */
  stopLive(): void {
    this.#live?.resolve();
    this.#live = null;
  }

  end(): void {
    this.#isOver = true;
    this.stopLive();
  }
}
