/**
 * The one subscription of this process: feeds every read model, in the log's order, and knows how far it has come. While
 * nobody looks, the log leaves out the events within runs, most of all; when somebody does, they are subscribed to again
 * from before the first that was left out.
 */
import type { System } from '../system/system.js';
import { blueprintIdOf } from '../blueprint/events.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { assertLinked, linkedEvent } from '../blueprint/stream.js';
import { LogClosed, LogDamaged, SubscriptionDropped } from '../eventlog/errors.js';
import { RunCorrupt } from '../run/errors.js';
import { ServiceStopping } from '../errors.js';
import { DocumentCorrupt } from '../documents/errors.js';
import { documentIdOf } from '../documents/events.js';
import { documentRecordOf, isDecisive } from '../documents/events.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { runIdOf } from '../run/events.js';
import type { OwnAppends } from '../run/live/own-appends.js';
import type { RunState } from '../run/state.js';
import { assertFollows, runEventOf } from '../run/stream.js';
import { blueprintRowAfter } from './views/blueprint-row.js';
import { keepSubscribed } from './keep-subscribed.js';
import type { History } from './run-history.js';
import type { RunViews } from './run-views.js';
import { summaryOf } from './run-summary.js';
import { isWithinRun, WITHIN_RUNS } from './unfolded-runs.js';

const CORRUPTIONS = [RunCorrupt, BlueprintCorrupt, DocumentCorrupt];

/** For how many events of the log one stands while those within runs are left out. */
const EVENTS_EACH = 4;

export interface QuietOptions {
  /** How long nobody must have looked, in milliseconds. */
  readonly afterMs: number;
  /** Whether somebody watches a run here. */
  readonly isWatched: () => boolean;
}

export interface ProjectorOptions {
  readonly log: EventLog;
  readonly views: RunViews;
  readonly history: History;
  /** What this instance appends, and has folded already. Absent: nothing. */
  readonly ownAppends?: Pick<OwnAppends, 'stateAfter'>;
  readonly system: Pick<System, 'after'>;
  /** Called with each event before it is folded; after a drop perhaps again. Must not throw. */
  readonly onArrived?: (event: RecordedEvent) => void;
  /** Called with each event once it is folded or found corrupt; after a drop perhaps again. Must not throw. */
  readonly onRecorded?: (event: RecordedEvent) => void;
  /** Called with each event once it is folded, with the resulting run if it is a run's. */
  readonly onFolded?: (event: RecordedEvent, run: RunState | null) => void;
  /** Called with each event of a document before it is listed; after a drop perhaps again. Must not throw. */
  readonly onDocument?: (event: RecordedEvent) => void;
  /**
   * If given, hash chains are verified while history is folded; otherwise they are not checked.
   */
  readonly sha256?: System['sha256'];
  /** When events within runs are left out. Default: never. */
  readonly quiet?: QuietOptions | null;
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
  /** Whether the subscription is about to restart: events of the present one no longer count. */
  #isRestarting = false;
  #refolds = 0;
  /** Whether events within runs are left out. */
  #isQuiet = false;
  /** Whether somebody has looked since it was last checked. */
  #isLookedAt = false;
  /** Position up to which only what was left out has not been taken before; null: nothing was. */
  #takenUpTo: Position | null = null;
  #cancelCheck: () => void = () => undefined;

  constructor(options: ProjectorOptions) {
    this.#options = options;
    this.#position = options.history.checkpoint;
  }

  /** Whether history has been folded since the start, or since it was lost. */
  get isCaughtUp(): boolean {
    return this.#caughtUp;
  }

  /** Whether events within runs are left out, because nobody looks. */
  get isQuiet(): boolean {
    return this.#isQuiet;
  }

  /** How often what was stored was lost: an answer of the views counts only when this is as it was before the question. */
  get refolds(): number {
    return this.#refolds;
  }

  /** Starts folding; resolves once history is caught up. @throws {LogDamaged} it cannot be read to its end */
  start(): Promise<void> {
    const { quiet = null } = this.#options;
    if (quiet !== null) this.#checkQuiet(quiet);
    return new Promise((resolve, reject) => {
      this.#running = this.#run(resolve, reject);
    });
  }

  /** Folds everything again, from the first event on: what was stored of it is lost. */
  refold(): void {
    this.#position = null;
    this.#caughtUp = false;
    this.#refolds += 1;
    this.#isQuiet = false;
    this.#leftOutTaken();
    this.#restart();
  }

  #restart(): void {
    this.#isRestarting = true;
    this.#subscription.abort();
  }

  /** Somebody looks at runs: nothing is left out any more, and what was left out is taken. */
  look(): void {
    this.#isLookedAt = true;
    if (!this.#isQuiet) return;
    this.#isQuiet = false;
    const since = this.#options.views.putOffSince;
    if (since === undefined) this.#options.views.closeGaps();
    else {
      this.#takenUpTo = this.#position;
      this.#position = since;
    }
    this.#restart();
  }

  #leftOutTaken(): void {
    this.#takenUpTo = null;
    this.#options.views.closeGaps();
  }

  async #lookAway(quiet: QuietOptions): Promise<void> {
    const { views, history } = this.#options;
    const mayBe = this.#mayBeQuiet(quiet);
    this.#isLookedAt = false;
    if (!mayBe) return;
    // Not all are in memory after a start.
    const unfinished = await history.unfinished();
    if (!this.#mayBeQuiet(quiet)) return;
    this.#isQuiet = true;
    views.leaveOutAll(unfinished, this.#position);
    this.#restart();
  }

  #mayBeQuiet({ isWatched }: QuietOptions): boolean {
    const isSeen = this.#isLookedAt || this.#waiters.size > 0 || isWatched();
    const isSettled = this.#caughtUp && this.#position !== null && !this.#isRestarting && this.#takenUpTo === null;
    return !isSeen && isSettled && !this.#isQuiet && !this.#options.views.isCrowded;
  }

  #checkQuiet(quiet: QuietOptions): void {
    this.#cancelCheck = this.#options.system.after(quiet.afterMs, () => {
      // What fails there is told by whoever asks for the rows.
      this.#lookAway(quiet).catch(() => undefined);
      this.#checkQuiet(quiet);
    });
  }

  /**
   * Looks, and resolves once everything up to a position is folded; `null` is everything of an empty log.
   *
   * @param signal ends the wait
   * @throws {ServiceStopping} by the signal, or it will not be folded here any more
   */
  async reached(position: Position | null, signal?: AbortSignal): Promise<void> {
    this.look();
    await this.passed(position, signal);
  }

  /** The same without looking: while nobody does, of what is folded events may be left out. */
  async passed(position: Position | null, signal?: AbortSignal): Promise<void> {
    if (position === null || (this.#position !== null && this.#position >= position)) return;
    if (this.#stopping.signal.aborted || signal?.aborted === true) throw new ServiceStopping();
    await new Promise<void>((resolve, reject) => {
      const waiter = { position, resolve, reject };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', () => {
        this.#waiters.delete(waiter);
        reject(new ServiceStopping());
      });
    });
  }

  async stop(): Promise<void> {
    this.#cancelCheck();
    this.#stopping.abort();
    await this.#running;
    for (const { reject } of this.#waiters) reject(new ServiceStopping());
    this.#waiters.clear();
  }

  async #run(onCaughtUp: () => void, onDamage: (damage: LogDamaged) => void): Promise<void> {
    const { system, onFault } = this.#options;
    const read = (arrived: () => void): Promise<void> => this.#read(arrived, onCaughtUp);
    const onError = (error: unknown): void => {
      if (error instanceof LogClosed) throw error;
      const damage = damageIn(error);
      if (damage !== null) onDamage(damage);
    };
    try {
      await keepSubscribed(read, { system, signal: this.#stopping.signal, onError, onFault });
    } catch (error) {
      if (!(error instanceof LogClosed)) throw error;
    }
  }

  /** Folds what a subscription brings, to its end. */
  async #read(arrived: () => void, onCaughtUp: () => void): Promise<void> {
    this.#subscription = new AbortController();
    this.#isRestarting = false;
    const signal = AbortSignal.any([this.#stopping.signal, this.#subscription.signal]);
    const types = this.#isQuiet ? { types: { except: WITHIN_RUNS } } : {};
    for await (const followed of this.#options.log.subscribe(this.#position, { ...types, signal })) {
      if (signal.aborted) break;
      arrived();
      if (followed.kind === 'checkpoint') {
        this.#reach(followed.position);
      } else if (followed.kind === 'caughtUp') {
        this.#caughtUp = true;
        if (!this.#isQuiet) this.#leftOutTaken();
        onCaughtUp();
      } else if (this.#isTaken(followed.event)) {
        this.#reach(followed.event.position);
      } else {
        this.#options.onArrived?.(followed.event);
        if (!this.#takeHeld(followed.event)) await this.#take(followed.event);
        const overdue = this.#options.views.overdueGap;
        if (overdue !== null) await this.#fill(overdue);
      }
    }
  }

  /** Whether an event that comes once more was not left out the first time, or is of a run that has ended since. */
  #isTaken({ stream, type, position }: RecordedEvent): boolean {
    if (this.#takenUpTo === null || position > this.#takenUpTo) return false;
    const runId = isWithinRun(type) ? runIdOf(stream) : null;
    return runId === null || !this.#options.views.mayLack(runId);
  }

  /** Reads what was left out of a run for too long. */
  async #fill(runId: string): Promise<void> {
    const { views, history } = this.#options;
    const since = this.#position;
    const run = await views.fill(runId);
    if (run === null) return;
    await history.put(summaryOf(run));
    if (this.#isQuiet) views.leaveOut(runId, since);
  }

  /** Advances past every event, whatever its category, so that waiting for the log's head does not depend on runs. */
  async #take(recorded: RecordedEvent): Promise<void> {
    try {
      const runId = runIdOf(recorded.stream);
      const run = runId === null ? null : await this.#fold(runId, recorded);
      if (blueprintIdOf(recorded.stream) !== null) await this.#foldBlueprint(recorded);
      const documentId = documentIdOf(recorded.stream);
      if (documentId !== null) await this.#foldDocument(documentId, recorded);
      this.#options.onFolded?.(recorded, run);
    } catch (error) {
      this.#passOver(error);
    }
    this.#taken(recorded);
  }

  /**
   * Takes an event of a run that was folded here before it was appended, or folds one of a run in memory, synchronously,
   * since awaiting costs more than folding; false: use `#take`.
   */
  #takeHeld(recorded: RecordedEvent): boolean {
    const { views, history, onFolded } = this.#options;
    const runId = runIdOf(recorded.stream);
    if (runId === null || !this.#caughtUp || !history.hasRoom) return false;
    try {
      const own = this.#foldedHere(runId, recorded);
      if (own !== null) {
        history.note(summaryOf(own));
        onFolded?.(recorded, own);
      } else if (!this.#takeForeign(runId, recorded)) return false;
      const overdue = views.overdue(this.#isQuiet ? EVENTS_EACH : 1);
      if (overdue !== null) history.note(summaryOf(overdue));
    } catch (error) {
      this.#passOver(error);
    }
    this.#taken(recorded);
    return true;
  }

  /** Takes an event that was not folded here before; defers it if only rows need it. */
  #takeForeign(runId: string, recorded: RecordedEvent): boolean {
    const { views, history, onFolded } = this.#options;
    if (views.putOff(runId, recorded, this.#position)) return true;
    const run = views.applyHeld(runId, runEventOf(recorded));
    if (run === null) return false;
    if (!views.putOffRow(run, this.#position)) history.note(summaryOf(run));
    onFolded?.(recorded, run);
    return true;
  }

  /** Null also for a watched run, whose watchers are shown every state. */
  #foldedHere(runId: string, recorded: RecordedEvent): RunState | null {
    const run = this.#options.ownAppends?.stateAfter(runId, recorded) ?? null;
    return run !== null && this.#options.views.moveOn(runId, run) ? run : null;
  }

  /** A corrupt run, blueprint or document keeps its last valid state; others are not affected. */
  #passOver(error: unknown): void {
    if (!CORRUPTIONS.some((damage) => error instanceof damage)) throw error;
    this.#options.onFault(error);
  }

  #taken(recorded: RecordedEvent): void {
    this.#options.onRecorded?.(recorded);
    const { views } = this.#options;
    const runId = this.#isQuiet ? runIdOf(recorded.stream) : null;
    if (runId !== null) views.leaveOut(runId, this.#position);
    this.#reach(recorded.position);
    if (this.#isQuiet && views.isCrowded) this.look();
  }

  async #fold(runId: string, recorded: RecordedEvent): Promise<RunState | null> {
    const { views, history, sha256 = null } = this.#options;
    const event = runEventOf(recorded);
    const check = this.#caughtUp ? null : sha256;
    const run = await views.apply(runId, event, check);
    if (run !== null) await history.put(summaryOf(run));
    // Checked after its row is stored, so that the list can show the run as corrupt.
    if (check !== null && event.seq === 0) assertFollows(runId, null, { event, sha256: check });
    return run;
  }

  async #foldBlueprint(recorded: RecordedEvent): Promise<void> {
    const { log, sha256 = null } = this.#options;
    if (!this.#caughtUp && sha256 !== null) assertLinked(await linkedEvent(log, recorded), sha256);
    const row = blueprintRowAfter(recorded);
    if (row !== null) await this.#options.history.putBlueprint(row);
  }

  async #foldDocument(id: string, recorded: RecordedEvent): Promise<void> {
    this.#options.onDocument?.(recorded);
    if (isDecisive(recorded)) await this.#options.history.putDocument({ id, record: documentRecordOf(recorded) });
  }

  #reach(position: Position): void {
    if (this.#isRestarting) return;
    this.#position = position;
    if (this.#takenUpTo !== null && position >= this.#takenUpTo) this.#leftOutTaken();
    this.#options.history.reached(position);
    for (const waiter of this.#waiters) {
      if (waiter.position > position) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

/** The damage that ended a subscription; null: it was something else. */
function damageIn(error: unknown): LogDamaged | null {
  const cause = error instanceof SubscriptionDropped ? error.cause : error;
  return cause instanceof LogDamaged ? cause : null;
}
