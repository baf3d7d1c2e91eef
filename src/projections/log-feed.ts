/**
 * The events of all runs in the log's order, to readers that come and go. Each reader has a subscription of its own and
 * is served at its pace: nothing is kept for one that is slow, it is read from the log later.
 */
import type { System } from '../system/system.js';
import { ServiceStopping } from '../errors.js';
import { LogUnavailable, SubscriptionDropped } from '../eventlog/errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { RunCorrupt } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import { runIdOf, runStream } from '../run/events.js';
import { runEventOf } from '../run/stream.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { CorruptRuns } from './corrupt-runs.js';
import type { FeedCursors } from './feed-cursor.js';
import { keepSubscribed } from './keep-subscribed.js';

/** Runs whose blueprint is remembered; that of any other is read from its first event again. */
const MAX_REMEMBERED = 10_000;

/** Characters of the log in memory for a reader that may stop reading; one event may be larger. */
const PAGE_CHARS = 64 * 1024;

const RUNS = runStream('').replace('-', '');

/** An event of a run, and the place after it. */
export interface FeedEvent {
  readonly runId: string;
  readonly event: RunEvent;
  readonly cursor: string;
}

export interface FeedOptions {
  /** Where it begins, exclusive; null: at the first event. */
  readonly after: Position | null;
  /** Types of events that are wanted; null: all. */
  readonly types: ReadonlySet<string> | null;
  /** The blueprint whose runs are wanted; null: all runs. */
  readonly blueprintId: string | null;
  /** Called with the events in order, each exactly once; the next waits for the returned promise. */
  readonly onEvent: (event: FeedEvent) => Promise<void>;
  /** Called with a place that was reached without an event to show. */
  readonly onProgress: (cursor: string) => void;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Where a client wants to begin, or why it cannot: what it sent is no cursor, is of another log, or is past this one's end. */
export type FeedStart =
  | {
      readonly after: Position | null;
      /** The same as a cursor; null: before the first event. */
      readonly cursor: string | null;
    }
  | 'unreadable'
  | 'elsewhere'
  | 'ahead';

export interface LogFeedDeps {
  readonly log: Pick<EventLog, 'subscribe' | 'readStream' | 'head'>;
  readonly cursors: FeedCursors;
  readonly corruptRuns: Pick<CorruptRuns, 'has' | 'mark'>;
  readonly system: Pick<System, 'after'>;
  readonly onFault: (error: unknown) => void;
}

const BEGINNING = { after: null, cursor: null };

export class LogFeed {
  readonly #deps: LogFeedDeps;
  readonly #stopping = new AbortController();
  /** By run, the one asked for last at the end. Runs never change their blueprint. */
  readonly #blueprints = new BoundedMap<string, string | null>(MAX_REMEMBERED);

  constructor(deps: LogFeedDeps) {
    this.#deps = deps;
  }

  /** @param from a cursor, `head` for only later events, or null for all events @throws {LogUnavailable} */
  async start(from: string | null): Promise<FeedStart> {
    const { log, cursors } = this.#deps;
    const read = from === null || from === 'head' ? null : cursors.read(from);
    if (typeof read === 'string') return read;
    // Read even where it is not needed, so that a client learns at once that the log cannot be reached.
    const head = await log.head();
    if (read === null) return from === null || head === null ? BEGINNING : { after: head, cursor: cursors.of(head) };
    return head === null || read.position > head ? 'ahead' : { after: read.position, cursor: from };
  }

  /**
   * Follows the log until the signal, or until the feed has stopped. A subscription that drops is made again where it was.
   *
   * @throws {ServiceStopping} when the feed has stopped already
   */
  async follow(options: FeedOptions): Promise<void> {
    if (this.#stopping.signal.aborted) throw new ServiceStopping();
    const signal = AbortSignal.any([options.signal, this.#stopping.signal]);
    const reader = { ...options, signal, last: options.after };
    await keepSubscribed((arrived) => this.#read(reader, arrived), {
      ...this.#deps,
      signal,
      onError(error) {
        if (!(error instanceof SubscriptionDropped || error instanceof LogUnavailable)) throw error;
      },
    });
  }

  /** Ends every feed. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Gives what comes to the reader, to the end of a subscription; `arrived` is called after each event. */
  async #read(reader: Reader, arrived: () => void): Promise<void> {
    const { log, cursors } = this.#deps;
    const { last: after, types, signal } = reader;
    const wanted = { categories: [RUNS], pageChars: PAGE_CHARS, ...(types !== null && { types: [...types] }) };
    for await (const followed of log.subscribe(after, { ...wanted, signal })) {
      if (followed.kind === 'caughtUp') continue;
      const { position } = followed.kind === 'event' ? followed.event : followed;
      // A log delivers at least once.
      if (reader.last !== null && position <= reader.last) continue;
      const shown = followed.kind === 'event' ? await this.#shown(followed.event, reader) : null;
      if (shown === null) reader.onProgress(cursors.of(position));
      else await reader.onEvent({ ...shown, cursor: cursors.of(position) });
      reader.last = position;
      arrived();
    }
  }

  /** An event as it is shown; null when its run is not wanted, or its run is damaged, of which nothing is shown. */
  async #shown(recorded: RecordedEvent, { blueprintId }: Reader): Promise<Omit<FeedEvent, 'cursor'> | null> {
    const { corruptRuns } = this.#deps;
    const runId = runIdOf(recorded.stream);
    if (runId === null || corruptRuns.has(runId)) return null;
    try {
      if (blueprintId !== null && (await this.#blueprintOf(runId)) !== blueprintId) return null;
      return { runId, event: runEventOf(recorded) };
    } catch (error) {
      if (!(error instanceof RunCorrupt)) throw error;
      corruptRuns.mark(error);
      return null;
    }
  }

  /** As the run's first event has it. @throws {RunCorrupt} */
  async #blueprintOf(runId: string): Promise<string | null> {
    const known = this.#blueprints.get(runId);
    const blueprintId = known === undefined ? await this.#readBlueprint(runId) : known;
    this.#blueprints.set(runId, blueprintId);
    return blueprintId;
  }

  async #readBlueprint(runId: string): Promise<string | null> {
    for await (const recorded of this.#deps.log.readStream(runStream(runId), { max: 1 })) {
      const first = runEventOf(recorded);
      if (first.type === 'RunRequested') return first.data.blueprintId;
    }
    throw new RunCorrupt({ runId, seq: 0, reason: 'a run begins with RunRequested' });
  }
}

/** A reader, and how far it has come. */
interface Reader extends FeedOptions {
  last: Position | null;
}
