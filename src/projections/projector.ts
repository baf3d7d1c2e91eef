/**
 * The one subscription of this process: feeds every read model, in the log's order, and knows how far it has come.
 *
 * Where instances share a log, each pays for the events of the others' runs, though nobody may look at them there. So
 * while nobody lists or watches runs it is quiet: it subscribes to all events but those of steps, which are most. Claims,
 * pauses, ends and heartbeats still come. A run that may lack events has a gap (unfolded-runs.ts); its stream is read
 * when one of its other events comes after a gap, or when the gap is old. `RunCompleted` needs none of what is before.
 *
 * Whoever lists or watches runs ends that: all events are subscribed to again from before the oldest gap. Up to where it
 * had come, only events of steps are taken, of runs that may lack them. Whoever waits for a position waits for that as
 * well, so a list counts all that was recorded before it; and the stored checkpoint stays before the oldest gap, so a
 * kill loses nothing.
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
import { isOfStep, runIdOf, STEP_FACTS } from '../run/events.js';
import type { OwnAppends } from '../run/live/own-appends.js';
import type { RunState } from '../run/state.js';
import { assertFollows, runEventOf } from '../run/stream.js';
import { blueprintRowAfter } from './views/blueprint-row.js';
import { keepSubscribed } from './keep-subscribed.js';
import type { History } from './run-history.js';
import type { RunViews } from './run-views.js';
import { summaryOf } from './run-summary.js';

const CORRUPTIONS = [RunCorrupt, BlueprintCorrupt, DocumentCorrupt];

/** For how many events one stands that comes while it is quiet: a run of the built-in council has 18, 4 come. */
const EVENTS_EACH = 4;

/** What is subscribed to; `again`: all, and up to a position only what was left out counts. */
type Mode = 'all' | 'quiet' | { readonly again: Position };

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
  /** Called with each event of a run once it is folded, with the resulting run. */
  readonly onFolded?: (event: RecordedEvent, run: RunState) => void;
  /** Called with each event of a document before it is listed; after a drop perhaps again. Must not throw. */
  readonly onDocument?: (event: RecordedEvent) => void;
  /**
   * If given, hash chains are verified while history is folded; otherwise they are not checked.
   */
  readonly sha256?: System['sha256'];
  /** How long nobody must have looked before it is quiet, and at most twice that, in milliseconds. Null: it never is. */
  readonly quietAfterMs?: number | null;
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
  #mode: Mode = 'all';
  /** Those who look now. */
  readonly #looking = new Set<object>();
  /** Whether somebody has looked since it was last checked. */
  #wasLookedAt = false;
  #cancelCheck: () => void = () => undefined;

  constructor(options: ProjectorOptions) {
    this.#options = options;
    this.#position = options.history.checkpoint;
  }

  /** Whether history has been folded since the start, or since it was lost. */
  get isCaughtUp(): boolean {
    return this.#caughtUp;
  }

  /** `again`: it takes what was left out while it was quiet. */
  get mode(): 'all' | 'quiet' | 'again' {
    return typeof this.#mode === 'string' ? this.#mode : 'again';
  }

  /** How often what was stored was lost: an answer of the views counts only when this is as it was before the question. */
  get refolds(): number {
    return this.#refolds;
  }

  /** Starts folding; resolves once history is caught up. @throws {LogDamaged} it cannot be read to its end */
  start(): Promise<void> {
    const { quietAfterMs = null } = this.#options;
    if (quietAfterMs !== null && !this.#stopping.signal.aborted) this.#becomeQuietAfter(quietAfterMs);
    return new Promise((resolve, reject) => {
      this.#running = this.#run(resolve, reject);
    });
  }

  /** Folds everything again, from the first event on: what was stored of it is lost. */
  refold(): void {
    this.#caughtUp = false;
    this.#refolds += 1;
    this.#allTaken();
    this.#restart(null);
  }

  #restart(from: Position | null): void {
    this.#position = from;
    if (from === null) this.#options.history.lost();
    else this.#options.history.reached(from);
    this.#isRestarting = true;
    this.#subscription.abort();
  }

  /** Somebody looks at runs, until the returned function is called. */
  watched(): () => void {
    const looking = {};
    this.#looking.add(looking);
    this.#wasLookedAt = true;
    this.#takeAll();
    return () => void this.#looking.delete(looking);
  }

  /** Is quiet no more: what was left out is taken. */
  #takeAll(): void {
    if (this.#mode !== 'quiet' || this.#position === null) return;
    const { since = this.#position } = this.#options.views.unfolded;
    this.#mode = { again: this.#position };
    this.#restart(since);
  }

  #allTaken(): void {
    this.#mode = 'all';
    this.#options.views.closeGaps();
  }

  #becomeQuietAfter(ms: number): void {
    this.#cancelCheck = this.#options.system.after(ms, () => {
      this.#becomeQuiet().catch(this.#options.onFault);
      this.#becomeQuietAfter(ms);
    });
  }

  async #becomeQuiet(): Promise<void> {
    const { views, history } = this.#options;
    const mayBe = this.#mayBeQuiet();
    this.#wasLookedAt = false;
    if (!mayBe) return;
    // Not all are in memory after a start. Rows that cannot be read are told of by whoever asks for them.
    const unfinished = await history.unfinished().catch(() => null);
    if (unfinished === null || !this.#mayBeQuiet()) return;
    this.#mode = 'quiet';
    views.noteGaps(unfinished, this.#position);
    this.#restart(this.#position);
  }

  #mayBeQuiet(): boolean {
    if (this.#wasLookedAt || this.#looking.size > 0 || this.#waiters.size > 0) return false;
    const isAtRest = this.#caughtUp && this.#mode === 'all' && !this.#isRestarting && !this.#stopping.signal.aborted;
    return isAtRest && this.#position !== null && !this.#options.views.isOverBounds;
  }

  /**
   * Looks, and resolves once everything up to a position is folded; `null` is everything of an empty log.
   *
   * @param signal ends the wait
   * @throws {ServiceStopping} by the signal, or it will not be folded here any more
   */
  async folded(position: Position | null, signal?: AbortSignal): Promise<void> {
    const lookAway = this.watched();
    try {
      await this.reached(position, signal);
    } finally {
      lookAway();
    }
  }

  /** The same without looking: while nobody does, events of steps up to there may be left out. */
  async reached(position: Position | null, signal?: AbortSignal): Promise<void> {
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
    this.#subscription.abort();
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
    const { signal } = this.#subscription;
    const types = this.#mode === 'quiet' ? { types: { except: STEP_FACTS } } : {};
    for await (const followed of this.#options.log.subscribe(this.#position, { ...types, signal })) {
      if (signal.aborted) break;
      arrived();
      if (followed.kind === 'checkpoint') {
        this.#reach(followed.position);
      } else if (followed.kind === 'caughtUp') {
        this.#caughtUp = true;
        if (this.#mode !== 'quiet') this.#allTaken();
        onCaughtUp();
      } else if (this.#wasTaken(followed.event)) {
        this.#reach(followed.event.position);
      } else {
        this.#options.onArrived?.(followed.event);
        if (!this.#takeHeld(followed.event)) await this.#take(followed.event);
        const { overdue } = this.#options.views.unfolded;
        // What was left out comes by itself while it is taken.
        if (overdue !== null && this.mode !== 'again') await this.#putOverdue(overdue);
      }
    }
  }

  /** Whether an event that comes again was not left out the first time, or is of a run that has ended since. */
  #wasTaken(event: RecordedEvent): boolean {
    if (typeof this.#mode === 'string' || event.position > this.#mode.again) return false;
    const runId = isOfStep(event) ? runIdOf(event.stream) : null;
    return runId === null || !this.#options.views.mayLack(runId);
  }

  async #putOverdue(runId: string): Promise<void> {
    const { views, history } = this.#options;
    const since = this.#position;
    try {
      const run = await views.whole(runId);
      if (run !== null) await history.put(summaryOf(run));
    } catch (error) {
      this.#passOver(error);
    }
    if (this.#mode === 'quiet') views.noteGap(runId, since);
  }

  /** Advances past every event, whatever its category, so that waiting for the log's head does not depend on runs. */
  async #take(recorded: RecordedEvent): Promise<void> {
    try {
      const runId = runIdOf(recorded.stream);
      const run = runId === null ? null : await this.#fold(runId, recorded);
      if (blueprintIdOf(recorded.stream) !== null) await this.#foldBlueprint(recorded);
      const documentId = documentIdOf(recorded.stream);
      if (documentId !== null) await this.#foldDocument(documentId, recorded);
      if (run !== null) this.#options.onFolded?.(recorded, run);
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
    const { history, onFolded } = this.#options;
    const runId = runIdOf(recorded.stream);
    if (runId === null || !this.#caughtUp || !history.hasRoom) return false;
    try {
      const own = this.#foldedHere(runId, recorded);
      if (own !== null) {
        history.note(summaryOf(own));
        onFolded?.(recorded, own);
      } else if (!this.#takeForeign(runId, recorded)) return false;
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
    return run && this.#options.views.moveOn(runId, run);
  }

  /** A corrupt run, blueprint or document keeps its last valid state; others are not affected. */
  #passOver(error: unknown): void {
    if (!CORRUPTIONS.some((damage) => error instanceof damage)) throw error;
    this.#options.onFault(error);
  }

  #taken(recorded: RecordedEvent): void {
    this.#options.onRecorded?.(recorded);
    const { views } = this.#options;
    const isQuiet = this.#mode === 'quiet';
    const runId = isQuiet ? runIdOf(recorded.stream) : null;
    if (runId !== null) views.noteGap(runId, this.#position);
    views.unfolded.count(isQuiet ? EVENTS_EACH : 1);
    this.#reach(recorded.position);
    if (views.isOverBounds || views.unfolded.isReadTooOften) this.#takeAll();
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
