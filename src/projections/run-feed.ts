/**
 * Streams a run's events to its watchers: from the log up to its head, then live from the projector's subscription.
 * Nothing is buffered for a watcher: one that falls behind reads from the log again.
 */
import type { System } from '../system/system.js';
import { RunCorrupt } from '../run/errors.js';
import { ServiceStopping } from '../errors.js';
import { checkLink } from '../eventsourcing/hash-chain.js';
import type { RecordedEvent } from '../eventlog/port.js';
import type { RunEvent } from '../run/events.js';
import { runIdOf } from '../run/events.js';
import { runEventOf } from '../run/stream.js';
import type { RunReader } from './run-reader.js';

export interface FollowOptions {
  /** Revision of the first event wanted. */
  readonly from: number;
  /**
   * Called with the events in order, each exactly once. Events from the log wait for the returned promise; live ones do
   * not. The promise must not reject.
   */
  readonly onEvent: (event: RunEvent) => void | Promise<void>;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

interface Watcher {
  readonly onEvent: FollowOptions['onEvent'];
  /** Revision of the next event to be given. */
  next: number;
  /** Hash of the last event given; null before the first. */
  hash: string | null;
  /** Highest revision seen by the subscription; events up to it that are not delivered yet are in the log. */
  heard: number;
  isLive: boolean;
  isOver: boolean;
  /** Ends the wait for live events: it is over, or there is something to read. */
  wake: () => void;
  /** Ends the watching with what its `onEvent` has thrown. */
  fail: (error: unknown) => void;
}

export class RunFeed {
  readonly #reader: Pick<RunReader, 'events'>;
  readonly #sha256: System['sha256'];
  readonly #watchers = new Map<string, Set<Watcher>>();
  #isStopped = false;

  constructor(reader: Pick<RunReader, 'events'>, sha256: System['sha256']) {
    this.#reader = reader;
    this.#sha256 = sha256;
  }

  /** Runs being watched. */
  get size(): number {
    return this.#watchers.size;
  }

  /** Takes one event of the log, of whatever stream, from the subscription. */
  recorded(recorded: RecordedEvent): void {
    const runId = runIdOf(recorded.stream);
    const watchers = runId === null ? undefined : this.#watchers.get(runId);
    if (watchers === undefined) return;
    const live = liveEvent(recorded, this.#sha256);
    for (const watcher of watchers) {
      watcher.heard = Math.max(watcher.heard, recorded.revision);
      if (!watcher.isLive || recorded.revision < watcher.next) continue;
      const event = recorded.revision === watcher.next ? live.after(watcher.hash) : null;
      // An event that does not follow the last one is read from the log instead, where corruption is detected.
      if (event === null) rouse(watcher);
      else giveLive(watcher, event);
    }
  }

  /**
   * Follows a run from a revision on; an unknown run is waited for.
   *
   * @returns once the terminal event was delivered, the signal aborted or the feed has stopped
   * @throws {RunCorrupt | LogUnavailable | LogClosed} when the run cannot be read
   * @throws {ServiceStopping} when the feed has stopped already
   */
  async follow(runId: string, { from, onEvent, signal }: FollowOptions): Promise<void> {
    if (this.#isStopped) throw new ServiceStopping();
    const watcher = newWatcher({ from, onEvent, signal });
    const onAbort = (): void => end(watcher);
    signal.addEventListener('abort', onAbort);
    const leave = this.#enter(runId, watcher);
    try {
      while (!watcher.isOver) {
        await this.#readOn(runId, watcher);
        await liveNews(watcher);
      }
    } catch (error) {
      if (!watcher.isOver) throw error;
    } finally {
      leave();
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Makes the watchers of a run that was found corrupt read on, which fails for them. */
  refuse({ data: { runId } }: RunCorrupt): void {
    for (const watcher of this.#watchers.get(runId) ?? []) {
      watcher.heard = Number.POSITIVE_INFINITY;
      rouse(watcher);
    }
  }

  /** Ends every watching. */
  stop(): void {
    this.#isStopped = true;
    for (const watchers of this.#watchers.values()) watchers.forEach(end);
  }

  #enter(runId: string, watcher: Watcher): () => void {
    const watchers = this.#watchers.get(runId) ?? new Set();
    this.#watchers.set(runId, watchers.add(watcher));
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(runId) === watchers) this.#watchers.delete(runId);
    };
  }

  /** Delivers the log's events after the last one; it must hold all that the subscription has seen. */
  async #readOn(runId: string, watcher: Watcher): Promise<void> {
    const { next: from, heard } = watcher;
    for await (const event of this.#reader.events(runId, { from })) {
      if (watcher.isOver) return;
      await give(watcher, event);
    }
    if (watcher.isOver || watcher.next > heard) return;
    throw new RunCorrupt({ runId, seq: watcher.next, reason: 'the log told of this event and does not give it' });
  }
}

function newWatcher({ from, onEvent, signal }: FollowOptions): Watcher {
  const idle = { isLive: false, wake: () => undefined, fail: () => undefined };
  return { onEvent, next: from, hash: null, heard: -1, isOver: signal.aborted, ...idle };
}

function give(watcher: Watcher, event: RunEvent): void | Promise<void> {
  watcher.next = event.seq + 1;
  watcher.hash = event.hash;
  const taken = watcher.onEvent(event);
  if (event.type === 'RunCompleted' || event.type === 'RunFailed') end(watcher);
  return taken;
}

/** An error of one watcher must not end the subscription that feeds all of them. */
function giveLive(watcher: Watcher, event: RunEvent): void {
  try {
    void give(watcher, event);
  } catch (error) {
    watcher.isLive = false;
    watcher.fail(error);
  }
}

/** Resolves once there is something to read, or nothing more to come. */
async function liveNews(watcher: Watcher): Promise<void> {
  if (watcher.isOver || watcher.heard >= watcher.next) return;
  watcher.isLive = true;
  await new Promise<void>((resolve, reject) => {
    watcher.wake = resolve;
    watcher.fail = reject;
  });
}

function rouse(watcher: Watcher): void {
  watcher.isLive = false;
  watcher.wake();
}

function end(watcher: Watcher): void {
  watcher.isOver = true;
  rouse(watcher);
}

/** An event for many watchers, parsed and verified once; null for a watcher whose last event it does not follow. */
function liveEvent(
  recorded: RecordedEvent,
  sha256: System['sha256'],
): { readonly after: (hash: string | null) => RunEvent | null } {
  let previous: string | null = null;
  let event: RunEvent | null = null;
  return {
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
