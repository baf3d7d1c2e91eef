/**
 * Streams a run's events, or the states after them, to its watchers: from the log up to its head, then live from the
 * projector's subscription. A watcher gets the next piece of the record only when it has taken the previous one. Meanwhile
 * the feed buffers nothing for it.
 */
import type { RecordedEvent } from '../../eventlog/port.js';
import { ServiceStopping } from '../../errors.js';
import { checkLink } from '../../eventsourcing/hash-chain.js';
import type { System } from '../../system/system.js';
import { RunCorrupt, RunUnknown } from '../errors.js';
import type { RunEvent } from '../events.js';
import { runIdOf } from '../events.js';
import type { RunState } from '../state.js';
import { isFinished } from '../state.js';
import { foldNext, runEventOf } from '../stream.js';
import type { RunReader } from './reader.js';
import type { RunStates } from './states.js';

/** Smallest number of characters of stored data in a piece of the record, unless the record ends. */
const PIECE_CHARS = 64 * 1024;

interface Following {
  /** Called whenever all recorded events have been read. */
  readonly onCaughtUp?: () => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

/**
 * What a watcher wants, in order and each exactly once. The next piece of the record waits until the returned promises of
 * this one have resolved; live events do not wait. The promises must not reject.
 */
export type FollowOptions =
  | FollowEvents
  /** The state at the head, then the state after each later event. */
  | (Following & { readonly from: 'now'; readonly onState: (run: RunState) => void })
  /** The state after each event of the run. */
  | (Following & {
      readonly from: 'first';
      readonly onState: (run: RunState, event: RunEvent) => void | Promise<void>;
    });

/** The events of a run from a revision on. */
export interface FollowEvents extends Following {
  readonly from: number;
  readonly onEvent: (event: RunEvent) => void | Promise<void>;
}

/** The watchers of a run. */
interface Audience {
  /** Highest revision that the subscription has delivered since the first watcher came. */
  lastDelivered: number;
  readonly watchers: Set<RunWatcher>;
}

export interface RunFeedDeps {
  readonly reader: Pick<RunReader, 'assertReaches' | 'piece'>;
  readonly states: Pick<RunStates, 'hold' | 'newest'>;
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

  /**
   * Takes the next event of the subscription, of any stream.
   *
   * @param run the run after the event or after later ones, or null if it is not known
   */
  onEventFolded(recorded: RecordedEvent, run: RunState | null): void {
    const runId = runIdOf(recorded.stream);
    const audience = runId === null ? undefined : this.#audiences.get(runId);
    if (runId === null || audience === undefined) return;
    // Set first, because a watcher that reads the log must read up to this event.
    audience.lastDelivered = Math.max(audience.lastDelivered, recorded.revision);
    const event = new LiveEvent(recorded, { runId, run, sha256: this.#deps.sha256 });
    for (const watcher of audience.watchers) watcher.deliver(event);
  }

  /**
   * Follows a run. Waits for an unknown run, unless the watcher begins now. Resolves when the last event of the run was
   * delivered, the signal has aborted or the feed has stopped.
   *
   * @returns the last state given, or null for a watcher of events and for one that left before the first state
   * @throws {RunUnknown} when a watcher begins now and there is no such run
   * @throws {RunCorrupt | LogUnavailable | LogClosed} when the run cannot be read
   * @throws {ServiceStopping} when the feed has stopped already
   */
  async follow(runId: string, options: FollowOptions): Promise<RunState | null> {
    if (this.#isStopped) throw new ServiceStopping();
    const { from, onCaughtUp = () => undefined, signal } = options;
    const watcher = new RunWatcher(runId, options);
    // 1. The watcher joins the audience, which knows how far the subscription is. Its first state stays in memory.
    const onAbort = (): void => watcher.end();
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) watcher.end();
    const audience = this.#join(watcher);
    const release = from === 'now' ? this.#deps.states.hold(runId) : null;
    try {
      // 2. A watcher from now on begins with the state at the head.
      if (from === 'now') await this.#giveNewest(watcher);
      // 3. The record up to its head, then live events; again after a live event that does not follow.
      for (let isAtHead = from === 'now'; !watcher.isOver; isAtHead = false) {
        if (!isAtHead) {
          await this.#readToHead(watcher, audience.lastDelivered);
          onCaughtUp();
        }
        if (audience.lastDelivered < watcher.next) await watcher.receiveLive();
      }
    } catch (error) {
      if (!watcher.isOver) throw error;
    } finally {
      // 4. The watcher has left, or the run has ended.
      release?.();
      this.#leave(watcher, audience);
      signal.removeEventListener('abort', onAbort);
    }
    return watcher.run;
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

  #join(watcher: RunWatcher): Audience {
    const audience = this.#audiences.get(watcher.runId) ?? { lastDelivered: -1, watchers: new Set() };
    this.#audiences.set(watcher.runId, audience);
    audience.watchers.add(watcher);
    return audience;
  }

  #leave(watcher: RunWatcher, audience: Audience): void {
    audience.watchers.delete(watcher);
    if (audience.watchers.size === 0) this.#audiences.delete(watcher.runId);
  }

  async #giveNewest(watcher: RunWatcher): Promise<void> {
    const { reader, states } = this.#deps;
    await reader.assertReaches(watcher.runId);
    const run = await states.newest(watcher.runId);
    if (run === null) throw new RunUnknown({ runId: watcher.runId });
    if (!watcher.isOver) watcher.begin(run);
  }

  /** @throws {RunCorrupt} the log lacks an event that the subscription has delivered */
  async #readToHead(watcher: RunWatcher, lastDelivered: number): Promise<void> {
    while (await this.#givePiece(watcher));
    if (watcher.isOver) return;
    const { runId, next: seq } = watcher;
    await this.#deps.reader.assertReaches(runId);
    if (seq <= lastDelivered)
      throw new RunCorrupt({ runId, seq, reason: 'the subscription delivered this event, the log lacks it' });
  }

  /** Gives the next piece of the record and waits until the watcher has taken it. Returns false if there is none. */
  async #givePiece(watcher: RunWatcher): Promise<boolean> {
    if (watcher.isOver) return false;
    const piece = await this.#startPiece(watcher);
    await piece?.taken;
    return piece !== null;
  }

  /** A separate function, so that no event stays in memory while the watcher takes the piece. */
  async #startPiece(watcher: RunWatcher): Promise<{ readonly taken: Promise<unknown> } | null> {
    const place = { from: watcher.next, previousHash: watcher.hash, maxChars: PIECE_CHARS };
    const events = await this.#deps.reader.piece(watcher.runId, place);
    const taken: Promise<void>[] = [];
    for (const event of events) {
      const given = watcher.isOver ? undefined : watcher.give(event);
      if (given !== undefined) taken.push(given);
    }
    return events.length === 0 ? null : { taken: Promise.all(taken) };
  }
}

/** An event that the subscription delivers to many watchers. It is parsed, verified and folded once for all of them. */
class LiveEvent {
  readonly #recorded: RecordedEvent;
  readonly #sha256: System['sha256'];
  readonly #runId: string;
  #verified: { readonly after: string; readonly event: RunEvent | null } | null = null;
  /** The run after the event, or after a later one of the same append. */
  #run: RunState | null;

  constructor(
    recorded: RecordedEvent,
    { runId, run, sha256 }: { runId: string; run: RunState | null; sha256: System['sha256'] },
  ) {
    this.#recorded = recorded;
    this.#runId = runId;
    this.#run = run;
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

  /** The run after the event, if it follows this state. @throws {RunCorrupt} */
  runAfter(before: RunState | null, event: RunEvent): RunState {
    if (this.#run?.head.hash !== event.hash) this.#run = foldNext(this.#runId, before, event);
    return this.#run;
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

/** One watcher of a run in the feed: its next event, its last state, and whether it receives live events. */
class RunWatcher {
  readonly runId: string;
  readonly #options: FollowOptions;
  #next: number;
  #hash: string | null = null;
  #run: RunState | null = null;
  #isOver = false;
  /** Settles the wait in `receiveLive`, or null while the watcher reads the log. */
  #live: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | null = null;

  constructor(runId: string, options: FollowOptions) {
    this.runId = runId;
    this.#next = typeof options.from === 'number' ? options.from : 0;
    this.#options = options;
  }

  /** Revision of the next event to give. */
  get next(): number {
    return this.#next;
  }

  /** Hash of the last event given, or null before the first. */
  get hash(): string | null {
    return this.#hash;
  }

  /** The last state given, or null before the first and for a watcher of events. */
  get run(): RunState | null {
    return this.#run;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Gives the state that the watching begins with. */
  begin(run: RunState): void {
    this.#moveTo(run.head);
    this.#run = run;
    if (this.#options.from === 'now') this.#options.onState(run);
    if (isFinished(run)) this.end();
  }

  /**
   * Gives the next event, or the state after it; the run's last one ends the watching.
   *
   * @param live the event as the subscription delivered it, or null if it is read from the log
   */
  give(event: RunEvent, live: LiveEvent | null = null): void | Promise<void> {
    this.#moveTo(event);
    let taken: void | Promise<void>;
    if ('onEvent' in this.#options) {
      taken = this.#options.onEvent(event);
    } else {
      const before = this.#run;
      this.#run = live === null ? foldNext(this.runId, before, event) : live.runAfter(before, event);
      taken = this.#options.onState(this.#run, event);
    }
    if (event.type === 'RunCompleted' || event.type === 'RunFailed') this.end();
    return taken;
  }

  #moveTo({ seq, hash }: Pick<RunEvent, 'seq' | 'hash'>): void {
    this.#next = seq + 1;
    this.#hash = hash;
  }

  /** Receives live events until the watching ends or the log must be read again. Rejects with what the watcher throws. */
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
      void this.give(event, live);
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
