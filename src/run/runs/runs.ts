/**
 * The runs of a service: starts, cancels, decides and continues them. A run is live here while this instance owns it: then
 * it has an actor in memory. Any other run is loaded from the log when a command for it arrives. The exact revision of an
 * append is the only lock between instances.
 */
import { LogUnavailable } from '../../eventlog/errors.js';
import type { RecordedEvent } from '../../eventlog/port.js';
import { checkAppend } from '../../eventlog/port.js';
import { sealAppend } from '../../eventsourcing/aggregate.js';
import type { RunFailedData, RunRequestedData } from '../../generated/schemas.js';
import { settledWithin } from '../../system/async/deadline.js';
import { semaphore, TaskTracker } from '../../system/async/tasks.js';
import { BoundedMap } from '../../system/bounded-map.js';
import { childrenUnderWay } from '../children/children.js';
import type { RunCommand } from '../decide.js';
import { decide } from '../decide.js';
import { ChildNotCancelled, KeyReused, RunFinished, RunNotPaused, RunUnknown } from '../errors.js';
import type { RunFact } from '../events.js';
import { claimsRun } from '../events.js';
import { deadlineOf } from '../pauses/approvals.js';
import type { DecisionOutcome, DecisionRequest } from '../pauses/human-decision.js';
import { applyDeadline, decidedBefore, decisionOn } from '../pauses/human-decision.js';
import type { DecisionContext, PendingEvents } from '../pending-events.js';
import { decisionContext } from '../pending-events.js';
import type { Replay } from '../replay.js';
import { refuseRun, startRun } from '../request.js';
import type { KeyedDecision, RunState, UnfinishedRun } from '../state.js';
import { failureOf, openPauseOf } from '../state.js';
import { factsAfter, readRun } from '../stream.js';
import type { Children, RunActor } from './actor.js';
import type { RepositoryDeps, RunObserver } from './repository.js';
import { ChildRuns } from './children.js';
import { RunRepository } from './repository.js';
import { Slots } from './slots.js';

export interface RunsDeps extends Omit<RepositoryDeps, 'slots' | 'tasks' | 'children'> {
  readonly maxActiveRuns: number;
  /** Which other instances are suspected to be dead. */
  readonly suspicions: { isSuspect(instanceId: string): boolean };
}

/** The outcome of a decision, made by this request or by an equal one before it. */
export interface DecisionAnswer extends DecisionOutcome {
  readonly isRepeated: boolean;
}

/**
 * Most runs that are read and claimed at a time: enough to fill a group commit. With many more, the first would start
 * late.
 */
const MAX_TAKING = 64;
/**
 * Most votes remembered that were sent again under a new Idempotency-Key; the oldest is forgotten first. A forgotten vote that
 * is repeated after its pause was decided is refused.
 */
const MAX_REPEATED_VOTES = 1_000;
/**
 * How long stop() waits for the log to take the releases, in milliseconds. Other instances recover the runs that are not
 * released in that time as orphans.
 */
const RELEASE_DEADLINE_MS = 5_000;

/** The commands on runs. */
export class Runs {
  readonly #deps: RunsDeps;
  readonly #live: Map<string, RunActor>;
  readonly #slots: Slots;
  readonly #repository: RunRepository;
  readonly #children: ChildRuns;
  /** Commands and claims, so that stop() can wait for them. */
  readonly #tasks = new TaskTracker();
  readonly #taking = semaphore(MAX_TAKING);
  /** By run. An equal start waits for the first and gets its answer. */
  readonly #starting = new Map<string, Promise<RunRequestedData>>();
  /** By run and hash of the key. The log records nothing for these votes, so only memory holds their keys. */
  readonly #repeatedVotes = new BoundedMap<string, KeyedDecision>(MAX_REPEATED_VOTES);
  /** Commands wait for this. */
  #ready: Promise<void> = Promise.resolve();

  constructor(deps: RunsDeps) {
    this.#deps = deps;
    this.#live = deps.live;
    this.#slots = new Slots({
      max: deps.maxActiveRuns,
      onAdmitted: (runId, knownSeq) => void this.#tasks.track(this.#take(runId, knownSeq)),
    });
    // The repository and the runs of councils need each other.
    const children: Children = {
      start: (request) => this.#children.start(request),
      end: (before, after) => this.#children.end(before, after),
    };
    this.#repository = new RunRepository({ ...deps, slots: this.#slots, tasks: this.#tasks, children });
    this.#children = new ChildRuns({
      ...deps,
      tasks: this.#tasks,
      repository: this.#repository,
      startOnce: (request) => this.#startOnce(request),
      refuse: (request, failure) => this.#recordRefused(request, failure),
      endWithParent: (runId, failure) => this.#cancel(runId, { type: 'EndWithParent', failure }),
    });
  }

  /** Adds an observer of the runs that are not live here. */
  subscribe(observer: RunObserver): void {
    this.#repository.subscribe(observer);
  }

  /**
   * Delays the commands start, refuse, cancel and decidePause until the unfinished runs are queued, so that no new run
   * overtakes them.
   */
  delayCommandsUntil(ready: Promise<void>): void {
    this.#ready = ready;
  }

  // Starts.

  /**
   * Records a new run and starts it, or leaves it pending when no slot is free. Resolves when its first events are
   * durable; with a slot the run's actor is then live and has started its first attempts.
   *
   * @returns the recorded request: with a repeated key that of the first
   * @throws {KeyReused} the run exists and was requested with another body
   * @throws {TooManyPending} when no further run may be pending; nothing is recorded
   */
  async start(request: RunRequestedData): Promise<RunRequestedData> {
    await this.#ready;
    this.#repository.assertTakingWork();
    return await this.#tasks.track(this.#startOnce(request));
  }

  async #startOnce(request: RunRequestedData): Promise<RunRequestedData> {
    const { runId, bodyHash } = request;
    const earlier = this.#starting.get(runId);
    if (earlier !== undefined) {
      await earlier.catch(() => undefined);
      const repeated = await this.findRequest(runId, bodyHash);
      if (repeated !== null) return repeated;
    }
    const recording = this.#recordStart(request);
    this.#starting.set(runId, recording);
    try {
      return await recording;
    } finally {
      this.#starting.delete(runId);
    }
  }

  async #recordStart(request: RunRequestedData): Promise<RunRequestedData> {
    const { runId } = request;
    const chart = this.#deps.charts.of(request);
    // 1. Take a slot, or reserve a place in the queue.
    const hasSlot = this.#slots.tryEnter();
    if (!hasSlot) this.#slots.reserve({ isChild: request.parentRun !== undefined });
    let run: RunState | null = null;
    try {
      // 2. Decide the first facts and record them; with a slot the run is then live.
      run = await this.#repository.append(startRun(chart, request, { hasSlot, context: this.decisionContext() }));
      // 3. Without a slot the recorded run waits in the queue.
      if (run !== null && !hasSlot) this.#slots.enqueue(runId, null);
    } finally {
      if (!hasSlot) this.#slots.endReservation();
      else if (run === null) this.#slots.leave();
    }
    // 4. An equal start that was recorded before gives the answer.
    return run === null ? await this.#firstRequest(request) : request;
  }

  /** Records a run that cannot begin: it is requested and fails in one append. Returns and throws as `start` does. */
  async refuse(request: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    await this.#ready;
    this.#repository.assertTakingWork();
    return await this.#tasks.track(this.#recordRefused(request, failure));
  }

  async #recordRefused(request: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    const chart = this.#deps.charts.of(request);
    const run = await this.#repository.append(refuseRun(chart, request, { failure, context: this.decisionContext() }));
    return run === null ? await this.#firstRequest(request) : request;
  }

  /**
   * The facts that a start would record now if a slot is free; records nothing.
   *
   * @throws {AppendTooLarge} as the start would
   */
  previewStart(request: RunRequestedData): readonly RunFact[] {
    const chart = this.#deps.charts.of(request);
    const { facts } = startRun(chart, request, { hasSlot: true, context: this.decisionContext() });
    const { stream, events, expected } = sealAppend(this.#deps, factsAfter(null, request.runId, facts));
    checkAppend(stream, events, expected);
    return facts;
  }

  /** The recorded request of a run, or null if there is no such run. @throws {KeyReused} when its body differs */
  async findRequest(runId: string, bodyHash: string): Promise<RunRequestedData | null> {
    for await (const { type, data } of readRun(this.#deps.log, runId, { max: 1 })) {
      if (type !== 'RunRequested') break;
      if (data.bodyHash !== bodyHash) throw new KeyReused({ runId });
      return data;
    }
    return null;
  }

  /** The recorded request of an equal start that was appended before this one. */
  async #firstRequest({ runId, bodyHash }: RunRequestedData): Promise<RunRequestedData> {
    const first = await this.findRequest(runId, bodyHash);
    // After a conflict the first event must be readable. If it is not, the log is unavailable.
    if (first === null) throw new LogUnavailable();
    return first;
  }

  // Commands on recorded runs.

  /**
   * Cancels an unfinished run, whichever instance runs it.
   *
   * @param actor name of the key that cancels, or null if the service has none
   * @throws {RunUnknown | RunFinished | ChildNotCancelled | RunCorrupt}
   */
  async cancel(runId: string, actor: string | null = null): Promise<RunState> {
    await this.#ready;
    return await this.#tasks.track(this.#cancel(runId, { type: 'CancelRun', actor }));
  }

  async #cancel(
    runId: string,
    command: Extract<RunCommand, { type: 'CancelRun' | 'EndWithParent' }>,
  ): Promise<RunState> {
    const assertMayEnd = ({ phase: { status }, parentRun }: RunState): void => {
      if (status === 'completed' || status === 'failed') throw new RunFinished({ runId, status, action: 'cancel' });
      if (parentRun !== null && command.type === 'CancelRun')
        throw new ChildNotCancelled({ runId, parent: parentRun.runId });
    };
    let endsOthers = false;
    for (;;) {
      this.#repository.assertTakingWork();
      // 1. The actor of a live run records the cancellation, unless it stops meanwhile.
      const actor = this.#live.get(runId);
      if (actor !== undefined) {
        assertMayEnd(actor.run);
        const facts = await actor.send(command);
        if (facts === null) continue;
        if (facts.length === 0) assertMayEnd(actor.run);
        return actor.run;
      }
      // 2. Any other run is loaded and decided, again if it becomes live or another append comes first.
      const replayed = await this.#repository.load(runId);
      if (this.#live.has(runId)) continue;
      if (replayed === null) throw new RunUnknown({ runId });
      const { run } = replayed.snapshot.context;
      // Its owner learns of the cancellation from the runs of its councils, and may be first.
      if (endsOthers && failureOf(run)?.kind === 'cancelled') return run;
      assertMayEnd(run);
      endsOthers ||= childrenUnderWay(run).length > 0;
      const after = await this.#repository.append(await this.#decide(replayed, command));
      if (after === null) continue;
      this.dequeue(runId);
      return after;
    }
  }

  /** What a command leads to. If it ends the run, the runs that its councils wait for end before. */
  async #decide({ chart, snapshot }: Replay, command: RunCommand): Promise<PendingEvents> {
    const context = this.decisionContext();
    const pending = decide(chart, snapshot, { command, context });
    const ends = await this.#children.end(snapshot.context.run, pending.run);
    return ends.length === 0 ? pending : decide(chart, snapshot, { command, context, ends });
  }

  /**
   * Records a human's decision on the open pause and, unless it ends the run, continues it here. A repeated
   * Idempotency-Key gets its earlier answer in every state of the run.
   *
   * @throws {KeyReused | RunNotPaused | NotApprover | PauseMoved | AnotherDraftSeen | OverrideRefused | VotesUsedUp | BudgetRefused | RunCorrupt}
   *   or the request's `choice`, if it is an error; nothing is recorded
   */
  async decidePause(runId: string, request: DecisionRequest): Promise<DecisionAnswer> {
    await this.#ready;
    return await this.#tasks.track(this.#decidePause(runId, request));
  }

  async #decidePause(runId: string, request: DecisionRequest): Promise<DecisionAnswer> {
    const { keyHash, bodyHash } = request;
    const voteKey = `${runId} ${keyHash}`;
    let answers: number | null = null;
    for (;;) {
      // 1. Load the run, after an actor here has adopted its appends.
      await this.#live.get(runId)?.settled();
      const replayed = await this.#repository.load(runId);
      if (replayed === null) throw new RunNotPaused({ runId, status: 'unknown' });
      const { run } = replayed.snapshot.context;
      // 2. Repeat the answer to an equal request.
      const earlier = decidedBefore(run, request, this.#repeatedVotes.get(voteKey));
      if (earlier !== null) return { ...earlier, isRepeated: true };
      // 3. Refuse the request unless the pause is open that it answers.
      const pause = openPauseOf(run);
      if (pause === null) throw new RunNotPaused({ runId, status: run.phase.status });
      if (pause.seq !== (answers ??= pause.seq)) throw new RunNotPaused({ runId, status: 'decided already' });
      // 4. Decide. A repeated vote changes nothing, but its new key is remembered.
      const { pending, action, outcome } = decisionOn(replayed, pause, { request, context: this.decisionContext() });
      if (pending.facts.length === 0) {
        if (keyHash !== null) this.#repeatedVotes.set(voteKey, { keyHash, bodyHash, action, isVote: true });
        return { ...outcome, isRepeated: true };
      }
      // 5. Record the decision. A run that it resumes takes a slot even if none is free.
      if (claimsRun(pending.facts)) this.#slots.enter();
      if (await this.#appendOrFreeSlot(pending)) return { ...outcome, isRepeated: false };
    }
  }

  /**
   * Appends facts. Those that claim the run hold a slot, which is freed if they are not written.
   *
   * @returns false if another append came first
   */
  async #appendOrFreeSlot(pending: PendingEvents, { waitsForRoom = false } = {}): Promise<boolean> {
    let after: RunState | null = null;
    try {
      after = await this.#repository.append(pending, { waitsForRoom });
      return after !== null;
    } finally {
      if (after === null && claimsRun(pending.facts)) this.#slots.leave();
    }
  }

  /**
   * Applies the rule of the open pause's deadline, if it has passed.
   *
   * @returns the deadline of the pause that is open afterwards, ISO 8601, or null if there is none; a deadline that has
   *   passed could not be applied, because no slot is free
   */
  applyDeadline(runId: string): Promise<string | null> {
    return this.#tasks.track(this.#applyDeadline(runId));
  }

  async #applyDeadline(runId: string): Promise<string | null> {
    for (;;) {
      // 1. Load the run, and wait while the log is unavailable, because no caller does.
      await this.#live.get(runId)?.settled();
      this.#repository.assertTakingWork();
      const replayed = await this.#repository.loadOnceAvailable(runId, await this.#deps.reader.seen(runId));
      if (replayed === null) return null;
      // 2. Decide. A run that the deadline resumes needs a free slot.
      const pending = applyDeadline(replayed.chart, replayed.snapshot, this.decisionContext());
      if (pending.facts.length === 0 || (claimsRun(pending.facts) && !this.#slots.tryEnter())) {
        const { run } = replayed.snapshot.context;
        const pause = openPauseOf(run);
        return pause === null ? null : deadlineOf(run, pause);
      }
      // 3. Record what the deadline leads to.
      if (await this.#appendOrFreeSlot(pending, { waitsForRoom: true })) return null;
    }
  }

  // Runs without a live owner: pending or released ones, and those whose owner is suspected to be dead.

  /** Queues runs without a live owner, in the order given. */
  recover(orphans: Iterable<Omit<UnfinishedRun, 'owner'>>): void {
    for (const { runId, seq } of orphans) this.#slots.enqueue(runId, seq ?? null);
  }

  /** Removes a run from the queue: another instance owns it, or it has finished. */
  dequeue(runId: string): void {
    this.#slots.dequeue(runId);
  }

  /** Whether a run is live here, being claimed or queued. */
  holds(runId: string): boolean {
    return this.#live.has(runId) || this.#repository.claimsInFlight(runId) > 0 || this.#slots.isQueued(runId);
  }

  /** Claims a queued run that has got a slot, unless a live instance owns it; else frees the slot. */
  async #take(runId: string, knownSeq: number | null): Promise<void> {
    let isLive = false;
    if (!this.holds(runId)) {
      this.#repository.beginClaim(runId);
      try {
        isLive = await this.#taking.run(() => this.#claim(runId, knownSeq ?? -1));
      } catch (error) {
        this.#repository.reportFault(runId, error);
      } finally {
        this.#repository.endClaim(runId);
      }
    }
    if (!isLive) this.#slots.leave();
  }

  /** @param knownSeq revision that its record must contain, or -1 @returns whether the run is live here afterwards */
  async #claim(runId: string, knownSeq: number): Promise<boolean> {
    const { suspicions, instanceId } = this.#deps;
    while (!this.#tasks.isEnding) {
      // 1. Load the run, which must contain what a view has seen of it.
      const replayed = await this.#repository.loadOnceAvailable(runId, knownSeq);
      if (replayed === null) return false;
      // 2. Claim it unless a live instance owns it.
      const { run } = replayed.snapshot.context;
      const { owner } = run.ownership;
      const isOwn = owner === instanceId;
      // This takeover counts as one claim.
      const isHeldHere = this.#live.has(runId) || this.#repository.claimsInFlight(runId) > 1;
      const isOwned = isOwn ? isHeldHere : owner !== null && !suspicions.isSuspect(owner);
      const pending = isOwned ? null : await this.#decide(replayed, this.#claimOf(run));
      if (pending === null || pending.facts.length === 0) {
        this.#repository.notify(run);
        return false;
      }
      // 3. Record the claim.
      const after = await this.#repository.append(pending, { waitsForRoom: true });
      if (after !== null) return claimsRun(pending.facts);
    }
    return false;
  }

  #claimOf({ phase, ownership: { owner } }: RunState): RunCommand {
    if (phase.status === 'pending') return { type: 'ClaimRun', reason: 'started' };
    // An own run that was abandoned is not taken over from a dead owner, so it does not count as that.
    const isHandover = owner === null || owner === this.#deps.instanceId;
    return { type: 'ClaimRun', reason: isHandover ? 'handover' : 'recovered' };
  }

  /** The context of a decision taken now. */
  decisionContext(): DecisionContext {
    return decisionContext(this.#deps);
  }

  /** Receives each run once an event of it is folded: see `ChildRuns`. */
  onRunFolded(_event: RecordedEvent, run: RunState): void {
    this.#children.onRunFolded(run);
  }

  /** Makes the live actor of a run read the events that another instance has recorded. */
  catchUp(runId: string, seq: number): void {
    this.#repository.catchUp(runId, seq);
  }

  /** The state of a run that is live here, or null. */
  live(runId: string): RunState | null {
    return this.#live.get(runId)?.run ?? null;
  }

  /** How many runs are live here, and how many are queued for a slot. */
  counts(): { readonly active: number; readonly queued: number } {
    return { active: this.#live.size, queued: this.#slots.queued };
  }

  // The end.

  /** Stops all runs without recording anything: aborts their attempts and forgets them. */
  abandon(): void {
    for (const actor of [...this.#live.values()]) actor.stop();
  }

  /** Takes no new work, aborts all attempts and releases every run, so that any instance may claim it. */
  async stop(): Promise<void> {
    this.#slots.close();
    await this.#tasks.end();
    const actors = [...this.#live.values()];
    const released = Promise.allSettled(actors.map((actor) => actor.release()));
    await settledWithin(released, { system: this.#deps.system, maxMs: RELEASE_DEADLINE_MS });
    for (const actor of actors) actor.stop();
  }
}
