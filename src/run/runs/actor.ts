/**
 * One live run. It handles commands one at a time: it appends their facts, adopts them, then acts on them: it executes
 * the attempts that have become active, and aborts those that no longer are. An attempt reports its outcome as a
 * command.
 */
import type { ActorLogic, ActorRefFrom } from 'xstate';
import { createActor } from 'xstate';
import type { ChildEndedData, RunRequestedData } from '../../generated/schemas.js';
import type { System } from '../../system/system.js';
import type { OutputErrors } from '../../council/executors.js';
import type { Toolbox } from '../../council/tools/tool.js';
import { grantedTools } from '../../council/tools/tool.js';
import type { FurtherCall } from '../../council/attempt-calls.js';
import { textsSent } from '../../council/attempt-calls.js';
import type { Ask } from '../../council/executors.js';
import { executeStep } from '../../council/step.js';
import type { CallRecord } from '../../council/tools/call.js';
import { ServiceStopping } from '../../errors.js';
import { LogClosed, RevisionConflict } from '../../eventlog/errors.js';
import type { RetryPolicy, EventLog } from '../../eventlog/port.js';
import { retryWhileUnavailable } from '../../eventlog/port.js';
import { laterOf } from '../../eventsourcing/aggregate.js';
import type { BoundedModel } from '../../models/bounded.js';
import type { PriceTable } from '../../models/prices.js';
import { Cancellation, wait } from '../../system/async/deadline.js';
import type { Semaphore } from '../../system/async/tasks.js';
import { Sequencer } from '../../system/async/tasks.js';
import type { Assignment, DraftParser, PendingEvents } from '../pending-events.js';
import { callOf, decisionContext } from '../pending-events.js';
import { childrenUnderWay, waitsForChildren } from '../children/children.js';
import { childRequest } from '../children/request.js';
import type { RunCommand } from '../decide.js';
import { decide } from '../decide.js';
import type { RunFact } from '../events.js';
import type { Chart, RunSnapshot } from '../chart/machine.js';
import { assignmentOf, nodeOf } from '../frontier/node-start.js';
import { openPanels } from '../panels/panels.js';
import type { Child, FrontierNode, RunState } from '../state.js';
import { outputLimitOf } from '../budget/spending.js';
import { costed, reportOf } from './attempts.js';
import type { Slots } from './slots.js';
import { currentEvent, readRun } from '../stream.js';
import type { TokenBus } from './tokens.js';
import { reasonOf } from '../../system/untrusted.js';

/** What every run of an instance works with. */
export interface RunActorDeps {
  readonly log: EventLog;
  readonly model: BoundedModel;
  readonly prices: PriceTable;
  readonly tools: Toolbox;
  readonly outputErrors: OutputErrors;
  readonly drafts: DraftParser;
  /** Receives drafts as they are written, while a client listens. */
  readonly tokens: TokenBus;
  readonly system: System;
  readonly instanceId: string;
  readonly host: ActorHost;
  /** The runs that its councils start. */
  readonly children: Children;
  /** A run that waits for nothing but the runs of its councils needs no slot. */
  readonly slots: Slots;
  /** Bounds the commands of all live runs that are decided and recorded at a time. */
  readonly commands: Semaphore;
}

/** Starts and ends the runs of councils. */
export interface Children {
  /** Starts a run, or finds it again. @throws {AppendTooLarge} */
  start(request: RunRequestedData): Promise<void>;
  /** Cancels the runs that a run waits for, if a decision ends it. @throws {ServiceStopping} */
  end(before: RunState, after: RunState): Promise<readonly ChildEndedData[]>;
}

/** Holds the live actors. */
export interface ActorHost {
  /** Called when a run is no longer live here: finished, paused, released, or taken by another instance. */
  onActorStopped(run: RunState): void;
  /** Records a decision of the run. @throws {RevisionConflict} when another append came first */
  record(pending: PendingEvents, retryPolicy: RetryPolicy): Promise<RecordedDecision>;
  /** Reports an error that no caller waits for. */
  reportFault(runId: string, error: unknown): void;
}

/** A decision of this instance that the log has acknowledged. */
export interface RecordedDecision extends Pick<PendingEvents, 'assignments'> {
  readonly to: RunSnapshot;
  /** Whether it took more than one try: then others may have appended after it. */
  readonly isRepeated: boolean;
}

export class RunActor {
  readonly #chart: Chart;
  readonly #deps: RunActorDeps;
  readonly #live: ActorRefFrom<RunActorLogic>;
  /**
   * Aborts the attempts in flight, by call key; null for an attempt whose outcome is known and only waits to be
   * recorded.
   */
  readonly #calls = new Map<string, Cancellation | null>();
  /** Steps of which an attempt had no answer in time: a stream may be why, so their next attempts ask for whole answers. */
  readonly #lateSteps = new Set<number>();
  /** Runs of its councils that it has started or found again. */
  readonly #followed = new Set<string>();
  #isWaiting = false;
  #isStopped = false;
  readonly #stopping = new Cancellation();
  readonly #retryPolicy: RetryPolicy;
  #releasing = false;
  /** When the next panel closes, in ms since 1970; infinite without one. */
  #panelsDueMs = Number.POSITIVE_INFINITY;
  #cancelPanelTimer: () => void = () => undefined;
  /** At most one command per node in flight and one per waiting request. */
  readonly #commands = new Sequencer();

  constructor(chart: Chart, snapshot: RunSnapshot, deps: RunActorDeps) {
    this.#chart = chart;
    this.#deps = deps;
    // No caller would retry, so the actor itself continues once the disk has room.
    this.#retryPolicy = { system: deps.system, waitsForRoom: true, signal: this.#stopping };
    // The live actor keeps the snapshot that it is created with, so it is created with one that all runs share.
    this.#live = createActor(runActorLogic, { snapshot: chart.pending });
    this.#live.start();
    this.#moveTo(snapshot);
  }

  /** The state after the last adopted event. */
  get run(): RunState {
    return this.#live.getSnapshot().context.run;
  }

  /**
   * Decides and records a command, after those queued before it.
   *
   * @returns the recorded facts, none when the command came too late to have an effect; or null if the actor has stopped
   * @throws what the log throws when the facts are certainly not written
   */
  send(command: RunCommand): Promise<readonly RunFact[] | null> {
    return this.#commands.run(() => this.#handle(command));
  }

  /** Whether it waits for nothing but the runs of its councils, and holds no slot. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Resolves once every command sent so far is handled. */
  settled(): Promise<void> {
    return this.#commands.settled();
  }

  /** Adopts the events that other instances have appended, after the commands queued before. */
  catchUp(): Promise<void> {
    return this.#commands.run(() => retryWhileUnavailable(() => this.#catchUp(), this.#retryPolicy));
  }

  /** Moves to the state after a decision of this instance, and acts on it. */
  adopt({ to, assignments }: RecordedDecision): void {
    this.#moveTo(to);
    this.#actAsOwner(assignments);
  }

  /** Adopts a decision after which others may have appended: the actor reads the log before it acts. */
  adoptLate({ to, assignments }: RecordedDecision): Promise<void> {
    this.#moveTo(to);
    return this.#commands.run(() => this.#actOnNewest(assignments));
  }

  async #actOnNewest(assignments: PendingEvents['assignments']): Promise<void> {
    await retryWhileUnavailable(() => this.#catchUp(), this.#retryPolicy);
    if (!this.#isStopped) this.#actAsOwner(assignments);
  }

  #moveTo(to: RunSnapshot): void {
    this.#live.send({ type: 'recorded', to });
  }

  #actAsOwner(assignments?: PendingEvents['assignments']): void {
    if (this.run.ownership.owner === this.#deps.instanceId) this.#act(assignments);
    else this.stop();
  }

  /** Aborts all attempts and releases the run; reports still queued are recorded before. */
  async release(): Promise<void> {
    this.#releasing = true;
    this.#abortAll();
    await this.send({ type: 'ReleaseRun' });
  }

  /** Aborts all attempts and ends the actor without recording anything. May be called twice. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#stopping.abort(NO_LONGER_EXECUTED);
    this.#cancelPanelTimer();
    this.#abortAll();
    this.#live.stop();
    this.#deps.host.onActorStopped(this.run);
  }

  async #handle(command: RunCommand): Promise<readonly RunFact[] | null> {
    // The bound on commands must not hold one that waits for the ends of other runs, which are commands too.
    const ends = await this.#endsBefore(command);
    return await this.#deps.commands.run(() => this.#carryOut(command, ends));
  }

  /** The ends of the runs that its councils wait for, if a command ends the run. */
  async #endsBefore(command: RunCommand): Promise<readonly ChildEndedData[]> {
    if (this.#isStopped || childrenUnderWay(this.run).length === 0) return [];
    const context = decisionContext(this.#deps);
    const { run: after } = decide(this.#chart, this.#live.getSnapshot(), { command, context });
    return await this.#deps.children.end(this.run, after);
  }

  /** On a conflict the run catches up and decides again, unless its actor has stopped meanwhile. */
  async #carryOut(command: RunCommand, ends: readonly ChildEndedData[]): Promise<readonly RunFact[] | null> {
    while (!this.#isStopped) {
      const context = decisionContext(this.#deps);
      const pending = decide(this.#chart, this.#live.getSnapshot(), { command, context, ends });
      try {
        if (pending.facts.length === 0) return [];
        const recorded = await this.#deps.host.record(pending, this.#retryPolicy);
        if (recorded.isRepeated) {
          this.#moveTo(recorded.to);
          await this.#actOnNewest(recorded.assignments);
        } else this.adopt(recorded);
        return pending.facts;
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
        await retryWhileUnavailable(() => this.#catchUp(), this.#retryPolicy);
      }
    }
    return null;
  }

  async #catchUp(): Promise<void> {
    const { runId, head } = this.run;
    for await (const event of readRun(this.#deps.log, runId, { from: head.seq + 1 })) {
      if (this.#isStopped) return;
      this.#moveTo(this.#chart.next(this.#live.getSnapshot(), currentEvent(runId, event)));
      this.#actAsOwner();
    }
  }

  /** Aborts attempts that are no longer active and executes those that have become active. */
  #act(assignments?: PendingEvents['assignments']): void {
    const active = new Map<string, FrontierNode>();
    for (const each of this.run.progress.frontier) if (each.active) active.set(callOf(each), each);
    for (const [key, call] of this.#calls) {
      if (active.has(key)) continue;
      call?.abort(NO_LONGER_EXECUTED);
      this.#calls.delete(key);
    }
    if (this.#releasing) return;
    this.#awaitPanels();
    this.#followChildren();
    for (const [key, at] of active) {
      if (this.#calls.has(key)) continue;
      const call = new Cancellation();
      this.#calls.set(key, call);
      this.#execute(at, call, assignments?.get(key)).catch((error: unknown) => this.#failRun(error));
    }
  }

  /**
   * Closes panels when their time after the quorum has passed, by a timer for the next one. The wait counts from the
   * run's last event if this instance's clock is behind it, so it is never longer than the grace.
   */
  #awaitPanels(): void {
    const { system } = this.#deps;
    const next = openPanels(this.run).flatMap(({ until }) => (until === null ? [] : [Date.parse(until)]));
    const dueMs = Math.min(...next);
    if (dueMs === this.#panelsDueMs) return;
    this.#cancelPanelTimer();
    this.#panelsDueMs = dueMs;
    if (next.length === 0) return;
    const nowMs = Date.parse(laterOf(system.now(), this.run.head.at));
    this.#cancelPanelTimer = system.after(Math.max(0, dueMs - nowMs), () => {
      this.#panelsDueMs = Number.POSITIVE_INFINITY;
      const until = new Date(dueMs).toISOString();
      this.send({ type: 'ClosePanels', until }).catch((error: unknown) => this.#failRun(error));
    });
  }

  /** Starts the runs that councils have recorded, or finds them again after a restart. */
  #followChildren(): void {
    const { slots } = this.#deps;
    const { run } = this;
    const isWaiting = waitsForChildren(run);
    if (isWaiting !== this.#isWaiting) {
      this.#isWaiting = isWaiting;
      // As a run that is resumed after a pause, it takes a slot even if none is free.
      if (isWaiting) slots.leave();
      else slots.enter();
    }
    for (const { at, child } of childrenUnderWay(run)) {
      if (this.#followed.has(child.runId)) continue;
      this.#followed.add(child.runId);
      this.#startChild(at, child).catch((error: unknown) => this.#failRun(error));
    }
  }

  async #startChild(at: FrontierNode, child: Child): Promise<void> {
    const { children, drafts, system } = this.#deps;
    const { run } = this;
    await drafts.load();
    const { itemsOf } = drafts;
    await children.start(childRequest(run, at, { child, sha256: system.sha256, itemsOf }));
  }

  #abortAll(): void {
    for (const call of this.#calls.values()) call?.abort(NO_LONGER_EXECUTED);
  }

  async #execute(at: FrontierNode, signal: Cancellation, assigned?: Assignment): Promise<void> {
    const { system, model, prices, tools, tokens, outputErrors } = this.#deps;
    const { run } = this;
    const { runId } = run;
    const node = nodeOf(run, at);
    if (node.role === 'council') return await this.#startChildren(at);
    if (at.delayMs > 0) await wait(system, at.delayMs, signal);
    // Waits for the commands in flight: one whose outcome is still unknown may end the run and abort this attempt.
    const mayAsk = (): Promise<void> => this.settled();
    const options = { runId, timeoutMs: node.timeoutMs, outage: at.outage, signal, mayAsk };
    const { promptInput, rendered } = assigned ?? assignmentOf(run, at);
    const outcome = await executeStep({
      node,
      promptInput,
      rendered,
      signal,
      monotonicMs: system.monotonicMs,
      ask: askWith(model, options),
      mayAsk,
      costOf: (usage) => costed(at, usage, prices).costUsd,
      kit: {
        tools: tools.granted(grantedTools(at.tools)),
        documents: run.request.documents,
        record: (call) => this.#record(at, call),
        system,
      },
      outputErrors,
      tokenSink: () => (this.#lateSteps.has(at.step) ? null : tokens.sinkFor(runId, attemptOf(at))),
      ...(at.model !== null && { model: at.model }),
      ...(run.spending !== null && {
        maxOutputTokens: outputLimitOf(node),
        reserve: (next: FurtherCall) => this.#reserve(at, next),
      }),
    });
    if (signal.aborted) return;
    if (outcome.kind === 'failed' && outcome.failure.kind === 'timeout') this.#lateSteps.add(at.step);
    this.#calls.set(callOf(at), null);
    await this.send(reportOf(at, outcome, { maxAttempts: node.maxAttempts, random: system.random(), prices }));
  }

  /** Lets a council begin. */
  async #startChildren({ step }: FrontierNode): Promise<void> {
    await this.#deps.drafts.load();
    await this.send({ type: 'StartChildren', step });
  }

  /** Resolves when a tool call is recorded. Its result may be used only after that. */
  async #record({ step, attempt }: FrontierNode, call: CallRecord): Promise<void> {
    const facts = await this.send({ type: 'RecordToolCall', call: { step, attempt, ...call } });
    const isRecorded = facts?.some(({ type }) => type === 'ToolCalled') ?? false;
    if (!isRecorded) throw NO_LONGER_EXECUTED;
  }

  /** Resolves when the next call of an attempt is reserved. */
  async #reserve(at: FrontierNode, { request, last, total }: FurtherCall): Promise<void> {
    const { prices } = this.#deps;
    const { tools = [] } = request;
    const next = {
      step: at.step,
      attempt: at.attempt,
      texts: textsSent(request),
      tools: tools.length,
      last: costed(at, last, prices),
      total: costed(at, total, prices),
    };
    const facts = await this.send({ type: 'ReserveCall', next });
    if (facts?.some(({ type }) => type === 'CallReserved') !== true) throw NO_LONGER_EXECUTED;
  }

  #failRun(error: unknown): void {
    if (error instanceof LogClosed || error instanceof ServiceStopping || this.#isStopped) return;
    const { host } = this.#deps;
    host.reportFault(this.run.runId, error);
    const reason = reasonOf(error);
    this.send({ type: 'FailRun', error: reason }).catch((again: unknown) => host.reportFault(this.run.runId, again));
  }
}

/** The attempt, in the form that listeners to its draft get. */
function attemptOf({ node, step, attempt, seat }: FrontierNode): Parameters<TokenBus['sinkFor']>[1] {
  return { node, step, attempt, ...(seat !== null && { member: seat.member }) };
}

/**
 * Calls the model for an attempt. Only the first call waits for the known outage to end; a later call may meet another.
 */
function askWith(model: BoundedModel, options: Parameters<BoundedModel['ask']>[1]): Ask {
  let next = options;
  return (request) => {
    const current = next;
    if (next.outage !== null) next = { ...next, outage: null };
    return model.ask(request, current);
  };
}

/** Made once: `abort()` without a reason builds an exception with a stack each time. */
const NO_LONGER_EXECUTED = new Error('The node is no longer executed');

// The XState actor logic of a run. Transitions are computed by `Chart.next` before a fact is recorded; the actor
// only moves to the resulting snapshot once the log has acknowledged it.

/** An append has been acknowledged. */
interface Recorded {
  readonly type: 'recorded';
  /** The snapshot after its facts. */
  readonly to: RunSnapshot;
}

type RunActorLogic = ActorLogic<RunSnapshot, Recorded | { readonly type: 'xstate.stop' }>;

const runActorLogic: RunActorLogic = {
  transition: (snapshot, event) => (event.type === 'recorded' ? event.to : snapshot),
  getInitialSnapshot() {
    throw new Error('A run starts from its recorded facts');
  },
  getPersistedSnapshot: (snapshot) => snapshot,
};
