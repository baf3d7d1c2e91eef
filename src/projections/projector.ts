/**
 * The only subscription of this process. Passes events to every read model in the order of the log, and knows the
 * position that they have reached.
 */
import type { System } from '../system/system.js';
import { orAborted, wait } from '../system/async/deadline.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { assertLinked, linkedEvent } from '../blueprint/stream.js';
import { LogClosed, LogCorrupt, SubscriptionDropped } from '../eventlog/errors.js';
import { RunCorrupt, RunErased } from '../run/errors.js';
import { ServiceStopping } from '../errors.js';
import { DocumentCorrupt } from '../documents/errors.js';
import { documentIdOf } from '../documents/events.js';
import { documentRecordOf, isDecisive } from '../documents/events.js';
import { LedgerCorrupt } from '../ledger/errors.js';
import { LEDGER_STREAM, leafOf } from '../ledger/events.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { categoryOf } from '../eventlog/port.js';
import { runIdOf } from '../run/events.js';
import type { RunStates } from '../run/runs/states.js';
import type { RunState } from '../run/state.js';
import type { RecordedLink } from '../run/stream.js';
import { assertRecordedFollows, runEventOf } from '../run/stream.js';
import { blueprintRowAfter } from './views/blueprint-row.js';
import type { History } from './run-history.js';
import { summaryOf } from './run-summary.js';

const CORRUPTIONS = [RunCorrupt, BlueprintCorrupt, DocumentCorrupt, LedgerCorrupt];

/**
 * Receives the events of the log. Its methods must not throw; after a dropped subscription they may receive an event
 * again.
 */
export interface EventConsumer {
  /** Categories of the streams whose events it receives. Default: all. */
  readonly categories?: readonly string[];
  /** Types of the events that it receives. Default: all. */
  readonly types?: readonly string[];
  /** Receives each event before it is folded. */
  onEventRecorded?(event: RecordedEvent): void;
  /** Receives each event of a run once it is folded, with the resulting run. */
  onRunFolded?(event: RecordedEvent, run: RunState): void;
  /** Receives each event once it is folded, or found corrupt, with the resulting run, or null if there is none. */
  onEventFolded?(event: RecordedEvent, run: RunState | null): void;
}

export interface ProjectorOptions {
  readonly log: EventLog;
  readonly states: RunStates;
  readonly history: History;
  readonly system: Pick<System, 'after'>;
  /** Verifies hash chains while history is folded. Default: does not verify them. */
  readonly sha256?: System['sha256'];
  readonly onFault: (error: unknown) => void;
}

interface Waiter {
  readonly position: Position;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class Projector {
  readonly #options: ProjectorOptions;
  readonly #stopping = new AbortController();
  readonly #waiters = new Set<Waiter>();
  #position: Position | null;
  #caughtUp = false;
  #running: Promise<void> = Promise.resolve();
  /** Ends the subscription, so that another begins. */
  #subscription = new AbortController();
  /** Whether another subscription is about to begin, so that events of the current one no longer count. */
  #isRestarting = false;
  #rebuilds = 0;
  #received = 0;
  readonly #consumers: EventConsumer[] = [];

  constructor(options: ProjectorOptions) {
    this.#options = options;
    this.#position = options.history.checkpoint;
  }

  /** Adds consumers of events. Each event goes to them in the order in which they were added. */
  subscribe(...consumers: readonly EventConsumer[]): void {
    this.#consumers.push(...consumers);
  }

  /** Whether the history of the log has been folded since the start, or since the last rebuild. */
  get isCaughtUp(): boolean {
    return this.#caughtUp;
  }

  /** How often the views were rebuilt: an answer of the views counts only if this number has not changed meanwhile. */
  get rebuilds(): number {
    return this.#rebuilds;
  }

  /**
   * Starts to fold. Resolves when all earlier events are folded.
   * @throws {LogCorrupt} the log cannot be read to its end
   */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#running = this.#run(resolve, reject);
    });
  }

  /** Folds everything again from the first event on, after the stored views are lost. */
  rebuild(): void {
    this.#caughtUp = false;
    this.#rebuilds += 1;
    this.#position = null;
    this.#options.history.setCheckpoint(null);
    this.#isRestarting = true;
    this.#subscription.abort();
  }

  /** Up to where everything is folded, or null if nothing is. */
  get position(): Position | null {
    return this.#position;
  }

  /** How many items the subscriptions have delivered. */
  get received(): number {
    return this.#received;
  }

  /** Ends the subscription and opens another one where it was. */
  resubscribe(): void {
    this.#subscription.abort();
  }

  /** Whether everything up to a position is folded. `null` is the position of an empty log. */
  hasReached(position: Position | null): boolean {
    return position === null || (this.#position !== null && this.#position >= position);
  }

  /**
   * Resolves when everything up to a position is folded. `null` is the position of an empty log.
   *
   * @param signal ends the wait
   * @throws {ServiceStopping} by the signal, or it will not be folded here any more
   */
  async waitFor(position: Position | null, signal?: AbortSignal): Promise<void> {
    if (position === null || this.hasReached(position)) return;
    if (this.#stopping.signal.aborted || signal?.aborted === true) throw new ServiceStopping();
    const folded = new Promise<void>((resolve, reject) => this.#waiters.add({ position, resolve, reject }));
    await (signal === undefined ? folded : orAborted(folded, signal, () => new ServiceStopping()));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#subscription.abort();
    await this.#running;
    for (const { reject } of this.#waiters) reject(new ServiceStopping());
    this.#waiters.clear();
  }

  async #run(onCaughtUp: () => void, onCorrupt: (error: LogCorrupt) => void): Promise<void> {
    const { system, onFault } = this.#options;
    const read = (arrived: () => void): Promise<void> => this.#read(arrived, onCaughtUp);
    const onError = (error: unknown): void => {
      if (error instanceof LogClosed) throw error;
      const corruption = corruptionIn(error);
      if (corruption !== null) onCorrupt(corruption);
    };
    try {
      await keepSubscribed(read, { system, signal: this.#stopping.signal, onError, onFault });
    } catch (error) {
      if (!(error instanceof LogClosed)) throw error;
    }
  }

  /** Folds the events of one subscription until it ends. */
  async #read(arrived: () => void, onCaughtUp: () => void): Promise<void> {
    this.#subscription = new AbortController();
    this.#isRestarting = false;
    const { signal } = this.#subscription;
    const { log, history } = this.#options;
    for await (const followed of log.subscribe(this.#position, { signal })) {
      if (signal.aborted) break;
      this.#received += 1;
      arrived();
      if (followed.kind === 'checkpoint') {
        this.#reach(followed.position);
      } else if (followed.kind === 'caughtUp') {
        this.#caughtUp = true;
        onCaughtUp();
      } else {
        const { event } = followed;
        this.#announce(event);
        // Most events are from this instance, and need no promise.
        const run = this.#foldedHere(event) ?? (await this.#fold(event));
        this.#passOn(event, run);
        if (history.isFull) await history.flush();
      }
    }
  }

  #announce(recorded: RecordedEvent): void {
    const category = categoryOf(recorded.stream);
    for (const consumer of this.#consumers)
      if (receives(consumer, category, recorded.type)) consumer.onEventRecorded?.(recorded);
  }

  /** Advances past every event, whatever its category, so that waiting for the log's head does not depend on runs. */
  #passOn(recorded: RecordedEvent, run: RunState | null): void {
    const category = categoryOf(recorded.stream);
    for (const consumer of this.#consumers) {
      if (!receives(consumer, category, recorded.type)) continue;
      if (run !== null) consumer.onRunFolded?.(recorded, run);
      consumer.onEventFolded?.(recorded, run);
    }
    this.#reach(recorded.position);
  }

  /** Folds an event. Returns the run after an event of a run, or null after any other or a corrupt one. */
  async #fold(recorded: RecordedEvent): Promise<RunState | null> {
    try {
      const category = categoryOf(recorded.stream);
      if (category === 'run') return await this.#foldRun(recorded);
      if (category === 'blueprint') await this.#foldBlueprint(recorded);
      if (category === 'document') this.#foldDocument(recorded);
      if (recorded.stream === LEDGER_STREAM) {
        const { kept } = recorded.metadata;
        const leaf = leafOf(recorded);
        if (leaf.kind === 'erasure' && leaf.what === 'document')
          this.#options.history.putDocument({ id: leaf.id, record: null });
        this.#options.history.putLeaf({ id: String(recorded.revision), leaf, ...(kept !== undefined && { kept }) });
      }
    } catch (error) {
      // A server delivers the events of erased runs until its next scavenge.
      if (error instanceof RunErased) return null;
      // A corrupt run, blueprint or document keeps its last valid state; others are not affected.
      if (!CORRUPTIONS.some((corruption) => error instanceof corruption)) throw error;
      this.#options.onFault(error);
    }
    return null;
  }

  async #foldRun(recorded: RecordedEvent): Promise<RunState | null> {
    const runId = runIdOf(recorded.stream);
    if (runId === null) return null;
    const { states, history } = this.#options;
    const link = this.#linkOf(recorded);
    const run = await states.fold(runId, runEventOf(recorded), link);
    if (run !== null) history.put(summaryOf(run));
    // Verified after the row is put, so that the list can show the run as corrupt.
    if (link !== null && recorded.revision === 0) assertRecordedFollows(runId, null, link);
    return run;
  }

  /** The run if this instance folded the event to append it. Null for an event whose link must be verified. */
  #foldedHere(recorded: RecordedEvent): RunState | null {
    const { states, history } = this.#options;
    const runId = runIdOf(recorded.stream);
    if (runId === null || this.#linkOf(recorded) !== null) return null;
    const run = states.folded(runId, recorded);
    if (run !== null) history.put(summaryOf(run));
    return run;
  }

  /** The link in the hash chain to verify, or null if the event is not verified. */
  #linkOf(recorded: RecordedEvent): RecordedLink | null {
    const { sha256 = null } = this.#options;
    return this.#caughtUp || sha256 === null ? null : { recorded, sha256 };
  }

  async #foldBlueprint(recorded: RecordedEvent): Promise<void> {
    const { log, sha256 = null } = this.#options;
    if (!this.#caughtUp && sha256 !== null) assertLinked(await linkedEvent(log, recorded), sha256);
    const row = blueprintRowAfter(recorded);
    if (row !== null) this.#options.history.putBlueprint(row);
  }

  #foldDocument(recorded: RecordedEvent): void {
    const id = documentIdOf(recorded.stream);
    if (id !== null && isDecisive(recorded))
      this.#options.history.putDocument({ id, record: documentRecordOf(recorded) });
  }

  #reach(position: Position): void {
    if (this.#isRestarting) return;
    this.#position = position;
    this.#options.history.setCheckpoint(position);
    for (const waiter of this.#waiters) {
      if (waiter.position > position) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

function receives({ categories, types }: EventConsumer, category: string, type: string): boolean {
  return categories?.includes(category) !== false && types?.includes(type) !== false;
}

/** The corruption of the log that ended a subscription, or null if something else ended it. */
function corruptionIn(error: unknown): LogCorrupt | null {
  const cause = error instanceof SubscriptionDropped ? error.cause : error;
  return cause instanceof LogCorrupt ? cause : null;
}

/** Wait before subscribing again after a drop, in milliseconds. */
const RESUBSCRIBE_MS = 250;

export interface SubscribedOptions {
  readonly system: Pick<System, 'after'>;
  /** Ends the subscription. */
  readonly signal: AbortSignal;
  /** Called with each error. Throws those after which the subscription must end. */
  readonly onError: (error: unknown) => void;
  /** Called with the first error of an outage, but not with errors of later attempts. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Reads one subscription after the other until the signal aborts.
 *
 * @param read reads a subscription from the end of the previous one, and calls `arrived` for each item
 * @throws what `onError` throws
 */
export async function keepSubscribed(
  read: (arrived: () => void) => Promise<void>,
  { system, signal, onError, onFault }: SubscribedOptions,
): Promise<void> {
  let isFailing = false;
  while (!signal.aborted) {
    try {
      await read(() => (isFailing = false));
    } catch (error) {
      onError(error);
      if (!isFailing) onFault(error);
      isFailing = true;
      await wait(system, RESUBSCRIBE_MS, signal);
    }
  }
}
