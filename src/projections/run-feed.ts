/**
 * Streams a run's events to its watchers: from the log up to its head, then live from the projector's subscription. A
 * watcher gets the next piece of the record only when it has taken the one before; meanwhile the feed holds nothing for it.
 */
import type { System } from '../system/system.js';
import { Broadcast } from '../system/async/broadcast.js';
import { RunCorrupt } from '../run/errors.js';
import { ServiceStopping } from '../errors.js';
import { checkLink } from '../eventsourcing/hash-chain.js';
import type { RecordedEvent } from '../eventlog/port.js';
import type { RunEvent } from '../run/events.js';
import { runIdOf } from '../run/events.js';
import { runEventOf } from '../run/stream.js';
import { RecentPieces } from './recent-pieces.js';
import type { RunReader } from './run-reader.js';

export interface FollowOptions {
  /** Revision of the first event wanted. */
  readonly from: number;
  /**
   * Called with the events in order, each exactly once. The next piece of the record waits until the returned promises
   * of this one have resolved; live events do not wait. The promise must not reject.
   */
  readonly onEvent: (event: RunEvent) => void | Promise<void>;
  /** Called whenever all events that were recorded have been read. */
  readonly onCaughtUp?: () => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

/** An event as the subscription delivers it. */
interface LiveEvent {
  readonly revision: number;
  /** The event, if it follows the one with this hash. */
  after(hash: string | null): RunEvent | null;
}

/** The watchers of a run. */
interface Audience {
  /** Highest revision seen by the subscription since the first of them came. */
  heard: number;
  readonly watchers: Set<Watcher>;
  /** Delivers live events to the watchers that have read everything up to `heard`. */
  readonly live: Broadcast<LiveEvent>;
}

interface Watcher {
  readonly onEvent: FollowOptions['onEvent'];
  /** Revision of the next event to be given. */
  next: number;
  /** Hash of the last event given; null before the first. */
  hash: string | null;
  /** Ends the receiving of live events; null while it reads the log. */
  live: (() => void) | null;
  isOver: boolean;
  /** Ends the wait for live events: it is over, or there is something to read. */
  wake: () => void;
  /** Ends the watching with what its `onEvent` has thrown. */
  fail: (error: unknown) => void;
}

export interface RunFeedDeps {
  readonly reader: Pick<RunReader, 'assertReaches' | 'piece'>;
  readonly sha256: System['sha256'];
}

export class RunFeed {
  readonly #deps: RunFeedDeps;
  readonly #pieces: RecentPieces;
  readonly #audiences = new Map<string, Audience>();
  #isStopped = false;

  constructor(deps: RunFeedDeps) {
    this.#deps = deps;
    this.#pieces = new RecentPieces(deps.reader);
  }

  /** Runs being watched. */
  get size(): number {
    return this.#audiences.size;
  }

  /** Takes one event of the log, of whatever stream, from the subscription. */
  deliver(recorded: RecordedEvent): void {
    const runId = runIdOf(recorded.stream);
    const audience = runId === null ? undefined : this.#audiences.get(runId);
    if (audience !== undefined) tell(audience, liveEvent(recorded, this.#deps.sha256));
  }

  /**
   * Follows a run from a revision on; an unknown run is waited for.
   *
   * @returns once the terminal event was delivered, the signal aborted or the feed has stopped
   * @throws {RunCorrupt | LogUnavailable | LogClosed} when the run cannot be read
   * @throws {ServiceStopping} when the feed has stopped already
   */
  async follow(runId: string, { from, onEvent, onCaughtUp = () => undefined, signal }: FollowOptions): Promise<void> {
    if (this.#isStopped) throw new ServiceStopping();
    const watcher = newWatcher({ from, onEvent, signal });
    const onAbort = (): void => end(watcher);
    signal.addEventListener('abort', onAbort);
    const { audience, leave } = this.#enter(runId, watcher);
    try {
      while (!watcher.isOver) {
        await this.#readOn(runId, watcher, audience.heard);
        onCaughtUp();
        await liveNews(watcher, audience);
      }
    } catch (error) {
      if (!watcher.isOver) throw error;
    } finally {
      leave();
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Makes the watchers of a run that was found corrupt read on, which fails for them. */
  notifyCorrupt({ data: { runId } }: RunCorrupt): void {
    const audience = this.#audiences.get(runId);
    if (audience !== undefined) tell(audience, UNREADABLE);
  }

  /** Ends every watching. */
  stop(): void {
    this.#isStopped = true;
    for (const { watchers } of this.#audiences.values()) watchers.forEach(end);
  }

  #enter(runId: string, watcher: Watcher): { readonly audience: Audience; readonly leave: () => void } {
    const audience = this.#audiences.get(runId) ?? newAudience();
    this.#audiences.set(runId, audience);
    audience.watchers.add(watcher);
    const leave = (): void => {
      audience.watchers.delete(watcher);
      if (audience.watchers.size === 0 && this.#audiences.get(runId) === audience) this.#audiences.delete(runId);
    };
    return { audience, leave };
  }

  /** Delivers the log's events after the last one; it must hold all that the subscription has heard. */
  async #readOn(runId: string, watcher: Watcher, heard: number): Promise<void> {
    while (!watcher.isOver) {
      const given = await this.#giveNext(runId, watcher);
      if (given === null) return await this.#assertWhole(runId, watcher, heard);
      await given.taken;
    }
  }

  /** Checks, at the head, that the record has lost no events. A record with the run's last event needs no check. */
  async #assertWhole(runId: string, watcher: Watcher, heard: number): Promise<void> {
    if (watcher.isOver) return;
    await this.#deps.reader.assertReaches(runId);
    if (watcher.next > heard) return;
    throw new RunCorrupt({ runId, seq: watcher.next, reason: 'the log told of this event and does not give it' });
  }

  /**
   * Gives the next piece of the record, or returns null if there is none. A separate function, so that no event stays in
   * memory while the watcher takes the piece.
   */
  async #giveNext(runId: string, watcher: Watcher): Promise<Given | null> {
    const { events } = await this.#pieces.read(runId, watcher);
    if (events.length === 0) return null;
    const taken: Promise<void>[] = [];
    for (const event of events) {
      const given = watcher.isOver ? undefined : give(watcher, event);
      if (given !== undefined) taken.push(given);
    }
    return { taken: Promise.all(taken) };
  }
}

/** A piece of the record on its way to a watcher. */
interface Given {
  /** Resolves once the watcher has taken the piece. */
  readonly taken: Promise<unknown>;
}

function newAudience(): Audience {
  return { heard: -1, watchers: new Set(), live: new Broadcast() };
}

/** Follows no event that a watcher may have, so every watcher that receives it reads the log. */
const UNREADABLE: LiveEvent = { revision: Number.POSITIVE_INFINITY, after: () => null };

function tell(audience: Audience, event: LiveEvent): void {
  // Before the event is delivered: a watcher that reads the log meanwhile has to read up to it.
  audience.heard = Math.max(audience.heard, event.revision);
  audience.live.tell(event);
}

function newWatcher({ from, onEvent, signal }: Omit<FollowOptions, 'onRead'>): Watcher {
  const idle = { live: null, wake: () => undefined, fail: () => undefined };
  return { onEvent, next: from, hash: null, isOver: signal.aborted, ...idle };
}

function give(watcher: Watcher, event: RunEvent): void | Promise<void> {
  watcher.next = event.seq + 1;
  watcher.hash = event.hash;
  const taken = watcher.onEvent(event);
  if (event.type === 'RunCompleted' || event.type === 'RunFailed') end(watcher);
  return taken;
}

/** Resolves once there is something to read, or nothing more to come. */
async function liveNews(watcher: Watcher, audience: Audience): Promise<void> {
  if (watcher.isOver || audience.heard >= watcher.next) return;
  await new Promise<void>((resolve, reject) => {
    watcher.wake = resolve;
    watcher.fail = reject;
    // At once: the next delivered event is the one after `heard`.
    watcher.live = audience.live.listen((event) => hear(watcher, event));
  });
}

/** An event that does not follow the last one is read from the log instead, where corruption is detected. */
function hear(watcher: Watcher, { revision, after }: LiveEvent): void {
  if (revision < watcher.next) return;
  const event = revision === watcher.next ? after(watcher.hash) : null;
  if (event === null) rouse(watcher);
  else giveLive(watcher, event);
}

/** An error of one watcher must not end the telling of all others. */
function giveLive(watcher: Watcher, event: RunEvent): void {
  try {
    void give(watcher, event);
  } catch (error) {
    leaveLive(watcher);
    watcher.fail(error);
  }
}

function rouse(watcher: Watcher): void {
  leaveLive(watcher);
  watcher.wake();
}

function leaveLive(watcher: Watcher): void {
  watcher.live?.();
  watcher.live = null;
}

function end(watcher: Watcher): void {
  watcher.isOver = true;
  rouse(watcher);
}

/** An event for many watchers, parsed and verified once. */
function liveEvent(recorded: RecordedEvent, sha256: System['sha256']): LiveEvent {
  let previous: string | null = null;
  let event: RunEvent | null = null;
  return {
    revision: recorded.revision,
    after(hash) {
      if (hash === null || hash === previous) return hash === null ? null : event;
      previous = hash;
      event = linked(recorded, { hash, sha256 });
      return event;
    },
  };
}

function linked(
  recorded: RecordedEvent,
  { hash, sha256 }: { readonly hash: string; readonly sha256: System['sha256'] },
): RunEvent | null {
  try {
    const event = runEventOf(recorded);
    return checkLink(hash, event, sha256) ? event : null;
  } catch (error) {
    if (error instanceof RunCorrupt) return null;
    throw error;
  }
}
