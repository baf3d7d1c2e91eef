/**
 * One history: instances over one log, what is done to them, and what clients ask; then everything is mended, and all that
 * was begun has to end.
 */
import { createHash } from 'node:crypto';
import type { RecordedEvent } from '../../src/eventlog/port.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { LanguageModel, ModelRequest } from '../../src/models/port.js';
import { summaryOf } from '../../src/projections/run-summary.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import { runIdOf, runStream } from '../../src/run/events.js';
import type { FrontierNode } from '../../src/run/state.js';
import { Clients } from './clients.js';
import type { Fault, FaultKind, Plan } from './faults.js';
import { appendFaultOf, DEADLY } from './faults.js';
import { Instance, isOfLog } from './instance.js';
import { Broken, RunRecord } from './record.js';
import { Draws, Scheduler } from './scheduler.js';
import type { Process } from './scheduler.js';
import type { CallUnderWay } from './simulated-model.js';
import { simulatedModel } from './simulated-model.js';
import { simulatedTools } from './simulated-tools.js';
import { runOfQuery, ToolCalls } from './tool-calls.js';
import { Storage } from './simulated-log.js';

export interface Outcome {
  /** Null: every invariant held. */
  readonly broken: Broken | null;
  readonly injected: Readonly<Partial<Record<FaultKind, number>>>;
  readonly events: number;
  readonly turns: number;
  readonly virtualMs: number;
  /** SHA-256 over every turn and every event, if the history was traced. */
  readonly trace: string | null;
}

interface UnderWay {
  readonly runId: string;
  readonly record: RunRecord;
  readonly owner: string;
  readonly at: FrontierNode;
}

/** In which everything has to end once nothing is broken any more, in virtual milliseconds. */
const LIVENESS_MS = 240_000;
/** Many times those of any history that ends. */
const MAX_TURNS = 100_000;
/** In which the views and the watchers have to follow, and who acts to come to rest, an unanswered append behind them. */
const SETTLING_MS = 10_000;
/** For which it goes on then, in case something is left that would act. */
const TRAILING_MS = 250;

/** Plays a history; never rejects for what the service does wrong. */
export async function playHistory(
  plan: Plan,
  { isTraced = false }: { readonly isTraced?: boolean } = {},
): Promise<Outcome> {
  const world = new World(plan, isTraced);
  const onUnhandled = (error: unknown): void => world.broke(new Broken('no error unhandled', String(error)));
  process.on('unhandledRejection', onUnhandled);
  try {
    await world.play();
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  return world.outcome();
}

export class World {
  readonly plan: Plan;
  readonly scheduler = new Scheduler();
  readonly draws: Draws;
  readonly storage: Storage;
  readonly instances: readonly Instance[];
  readonly records = new Map<string, RunRecord>();
  readonly clients: Clients;
  /** When everything was mended; null: not yet. */
  mendedMs: number | null = null;
  #broken: Broken | null = null;
  #modelFault: { readonly kind: FaultKind; readonly untilMs: number } | null = null;
  readonly #injected: Partial<Record<FaultKind, number>> = {};
  readonly #trace: ReturnType<typeof createHash> | null;
  readonly #drafts = new Set<string>();
  /** Instances that something was done to for which others may take them for dead. */
  readonly #deadly = new Set<number>();
  readonly #toolCalls = new ToolCalls((...told) => this.must(...told));
  #calls = 0;
  /** Calls under way, by instance, run, step and attempt. */
  readonly #calling = new Set<string>();

  constructor(plan: Plan, isTraced: boolean) {
    this.plan = plan;
    this.draws = new Draws(plan.seed + 7);
    this.storage = new Storage(
      (event) => this.#recorded(event),
      (what) => this.broke(new Broken('every run ends once faults stop', `an append goes round in circles: ${what}`)),
    );
    const model = (life: Process, instance: Instance): LanguageModel => this.#model(life, instance);
    const tools = (life: Process, instance: Instance): ReturnType<typeof simulatedTools> => this.#tools(life, instance);
    const onFault = (what: string, error: unknown): void =>
      this.broke(new Broken('no fault without a cause', `${what}: ${String(error)}`));
    const onStopped = (timers: number): void =>
      this.must(timers === 0, 'who has stopped does nothing more', () => `${timers} timers are left`);
    const { scheduler, storage } = this;
    const deps = { plan, scheduler, storage, model, tools, onFault, onStopped };
    this.instances = plan.rates.map((_, index) => new Instance(index, deps));
    this.clients = new Clients(this);
    this.#trace = isTraced ? createHash('sha256') : null;
    if (isTraced) scheduler.onTurn = (owner) => this.#trace?.update(`${scheduler.nowMs} ${owner?.life ?? '-'}\n`);
  }

  /** Remembers the first thing that went wrong, which ends the history. */
  broke(broken: Broken): void {
    this.#broken ??= broken;
  }

  must(holds: boolean, invariant: string, detail: () => string): void {
    if (!holds) this.broke(new Broken(invariant, detail()));
  }

  outcome(): Outcome {
    const { scheduler, storage } = this;
    const trace = this.#trace === null ? null : this.#trace.digest('hex');
    return {
      ...{ broken: this.#broken, injected: this.#injected, events: storage.events.length, trace },
      ...{ turns: scheduler.turns, virtualMs: scheduler.nowMs },
    };
  }

  async play(): Promise<void> {
    const { plan, scheduler, instances, clients } = this;
    for (const each of instances) each.start();
    for (const fault of plan.faults) scheduler.at(fault.atMs, null, () => this.#inject(fault));
    clients.begin();
    // A human who never comes is not waited for.
    await this.#until(() => clients.areDone && (this.#haveAllEnded || this.#doAllWait), plan.pace.mendedMs);
    if (this.#isBroken()) return;
    this.#mend();
    const hasEnded = await this.#until(
      () => clients.areDone && this.#haveAllEnded && this.#areAllUp,
      scheduler.nowMs + LIVENESS_MS,
    );
    this.must(hasEnded, 'every run ends once faults stop', () => this.#unfinished());
    await this.#until(() => this.#isAtRest, scheduler.nowMs + SETTLING_MS);
    await this.#until(() => false, scheduler.nowMs + TRAILING_MS);
    if (this.#isBroken()) return;
    let isChecked = false;
    this.#check().then(
      () => (isChecked = true),
      (error: unknown) => this.broke(new Broken('views equal the fold', String(error))),
    );
    const isAnswered = await this.#until(() => isChecked, scheduler.nowMs + LIVENESS_MS);
    this.must(isAnswered, 'views equal the fold', () => 'questions are not answered');
    for (const each of instances) each.die();
  }

  /** A state of a run that somebody was shown: it is recorded, and is the fold of its record. */
  shown(runId: string, { seq, hash }: { readonly seq: number; readonly hash: string }, by: string): void {
    const recorded = this.records.get(runId)?.events[seq];
    this.must(
      recorded?.hash === hash,
      'nothing shown that is not recorded',
      () => `${by} tells of event ${seq} of run ${runId}`,
    );
  }

  /** A run as it was answered for by id. */
  answered(summary: RunSummary, by: string): void {
    const state = this.records.get(summary.id)?.states[summary.seq];
    const isFold = state !== undefined && canonical(summaryOf(state)) === canonical(summary);
    this.must(isFold, 'views equal the fold', () => `${by} answers ${JSON.stringify(summary)}`);
  }

  #isBroken(): boolean {
    return this.#broken !== null;
  }

  get #haveAllEnded(): boolean {
    for (const record of this.records.values()) if (!record.hasEnded) return false;
    return true;
  }

  /** Nothing will happen any more unless a human comes. */
  get #doAllWait(): boolean {
    const { nowMs } = this.scheduler;
    if (this.plan.faults.some(({ atMs, forMs }) => atMs + forMs > nowMs)) return false;
    for (const record of this.records.values()) {
      const isPaused = record.state?.phase.status === 'paused';
      if (!record.hasEnded && (!isPaused || record.hasDeadline)) return false;
    }
    return true;
  }

  get #areAllUp(): boolean {
    return this.instances.every(({ engine }) => engine !== null);
  }

  /** Nothing more is recorded of any run, or about to be, and who watches was told everything. */
  get #isAtRest(): boolean {
    if (this.storage.onTheWay > 0 || this.clients.areWaiting) return false;
    for (const { appending, engine } of this.instances) {
      if (appending > 0 || engine === null) return false;
      // A claim that is tried again later is still under way.
      for (const runId of this.records.keys()) if (engine.registry.holds(runId)) return false;
    }
    return true;
  }

  #until(isOver: () => boolean, untilMs: number): Promise<boolean> {
    const { scheduler } = this;
    return scheduler.run(() => {
      this.must(scheduler.turns < MAX_TURNS, 'every run ends once faults stop', () => 'it goes round in circles');
      return this.#isBroken() || isOver();
    }, untilMs);
  }

  #unfinished(): string {
    const runs = [...this.records.values()].filter((each) => !each.hasEnded);
    const asked = this.clients.areDone ? '' : ', requests wait for an answer';
    const up = this.instances.map(({ engine }) => (engine === null ? 'down' : 'up')).join(' ');
    return `${runs.map(({ runId, state }) => `${runId} is ${state?.phase.status}, owned by ${state?.ownership.owner}`).join('; ')}${asked}; instances ${up}`;
  }

  #recorded(event: RecordedEvent): void {
    this.#trace?.update(
      `${this.scheduler.nowMs} ${event.position} ${event.stream} ${event.type} ${event.data} ${event.metadata['hash'] ?? ''}\n`,
    );
    const runId = runIdOf(event.stream);
    if (runId === null) return;
    let record = this.records.get(runId);
    if (record === undefined) {
      record = new RunRecord(runId, {
        takeDraft: (text) => this.#drafts.delete(text),
        hasFound: (query, place) => this.#toolCalls.hasFound(query, place),
        explains: (kind) => this.#explains(kind, runId),
        mayBeDead: (instanceId) => this.#deadly.has(Math.floor(Number.parseInt(instanceId, 16) / 1_000)),
      });
      this.records.set(runId, record);
    }
    try {
      record.take(event);
    } catch (error) {
      this.broke(error instanceof Broken ? error : new Broken('legal prefix', String(error)));
      return;
    }
    if (event.type === 'RunPaused') this.clients.paused(record);
  }

  #explains(kind: string, runId: string): boolean {
    const had = (...kinds: readonly FaultKind[]): boolean => kinds.some((each) => this.#injected[each] !== undefined);
    switch (kind) {
      case 'cancelled':
        return this.clients.hasCancelled(runId);
      case 'rejected':
        return true;
      case 'node_failed':
        return had('model-unavailable', 'model-hangs', 'model-nonsense', 'model-refuses', 'freeze');
      case 'takeover_limit':
        return had(...DEADLY);
      case 'execution_limit':
        return true;
      default:
        return false;
    }
  }

  #inject({ kind, slot, forMs }: Fault): void {
    if (this.mendedMs !== null) return;
    const { scheduler, instances } = this;
    const instance = instances[slot];
    if (instance === undefined) return;
    this.#injected[kind] = (this.#injected[kind] ?? 0) + 1;
    if (DEADLY.has(kind)) this.#deadly.add(slot);
    const untilMs = Math.min(scheduler.nowMs + forMs, this.plan.pace.mendedMs);
    const again = (): void => void scheduler.at(untilMs, null, () => instance.start());
    const append = appendFaultOf(kind);
    if (append !== null) return void instance.armed.push(append);
    switch (kind) {
      case 'crash':
        instance.die();
        return again();
      case 'crash-without-folder':
        instance.die();
        instance.loseFolder();
        return again();
      case 'stop':
        return void instance
          .stop()
          .then(again, (error: unknown) =>
            this.broke(new Broken('no fault without a cause', `stop: ${String(error)}`)),
          );
      case 'freeze':
        if (instance.process !== null) instance.process.frozenUntilMs = untilMs;
        return;
      case 'partition':
        instance.cutUntilMs = untilMs;
        return;
      case 'slow-log':
        instance.slowUntilMs = untilMs;
        return;
      case 'deaf':
        instance.deafUntilMs = untilMs;
        return;
      case 'crash-at-rows':
        instance.deathsAtRows += 1;
        return void scheduler.at(untilMs, null, () => {
          instance.deathsAtRows = 0;
          instance.start();
        });
      case 'subscription-dropped':
        instance.drop();
        return;
      case 'events-repeated':
        instance.repeats += 3;
        return;
      case 'clock-ahead':
      case 'clock-back':
        if (instance.process !== null) instance.process.wallOffsetMs += (kind === 'clock-ahead' ? 1 : -1) * forMs * 100;
        return;
      default:
        this.#modelFault = { kind, untilMs };
    }
  }

  /** Nothing is broken from now on. */
  #mend(): void {
    this.mendedMs = this.scheduler.nowMs;
    this.#modelFault = null;
    for (const each of this.instances) {
      each.armed.length = 0;
      each.isMended = true;
      each.cutUntilMs = each.slowUntilMs = each.deafUntilMs = 0;
      each.start();
    }
    this.clients.tidy();
  }

  #model(life: Process, instance: Instance): LanguageModel {
    return simulatedModel({
      process: life,
      longestMs: this.plan.pace.modelMs,
      fault: () => {
        const fault = this.#modelFault;
        return fault !== null && fault.untilMs > this.scheduler.nowMs ? fault.kind : null;
      },
      onCall: (request) => this.#called(instance, request),
      nextDraft: () => {
        this.#calls += 1;
        return `Draft ${this.#calls}`;
      },
    });
  }

  #tools(life: Process, instance: Instance): ReturnType<typeof simulatedTools> {
    return simulatedTools({
      process: life,
      draws: new Draws(this.plan.seed * 1_000 + life.life + 500),
      longestMs: this.plan.pace.modelMs,
      isMended: () => this.mendedMs !== null,
      onCall: (query) => {
        const runId = runOfQuery(query);
        const run = instance.opening?.registry.live(runId) ?? null;
        return this.#toolCalls.begun(query, { record: this.records.get(runId), run });
      },
    });
  }

  /** A call is made only for a step under way here, whose start is recorded and whose result is not known here. */
  #called(instance: Instance, request: ModelRequest): CallUnderWay {
    const { topic, label } = request.promptInput;
    const found = this.#underWay(instance, request);
    if (found === null) {
      const what = `a model is called for "${label}" of "${topic}", which is under way nowhere`;
      this.broke(new Broken('append before act', what));
      return { toolCalls: () => [], ended: () => undefined };
    }
    const { runId, record, owner, at } = found;
    const attempt = `${at.step}.${at.attempt}`;
    const call = `${owner} ${runId} ${attempt}`;
    const exchanges = request.rounds?.flatMap((round) => round.exchanges) ?? [];
    const isRecorded = record.attempts.has(attempt) && record.toolCallsOf(attempt) >= exchanges.length;
    this.must(isRecorded, 'append before act', () => `${call} is called for and not recorded`);
    const result = record.results.get(at.step);
    const told = instance.known.get(runStream(runId)) ?? 0;
    const isKnown = result !== undefined && (result.by === owner || result.seq < told);
    this.must(!isKnown, 'no result called for after it was recorded', () => call);
    const isOver = record.hasEnded && record.events.length <= told;
    this.must(!isOver, 'no call for a run that has ended', () => call);
    this.must(!this.#calling.has(call), 'no result called for twice at once', () => call);
    this.#calling.add(call);
    return {
      toolCalls: (draws) => this.#toolCalls.askedIn(runId, attempt, request, draws),
      ended: (given) => {
        this.#calling.delete(call);
        if (given !== null) this.#drafts.add(given);
      },
    };
  }

  /** The attempt that a model is called for; null: there is none here. */
  #underWay({ opening }: Instance, { promptInput: { topic, label } }: ModelRequest): UnderWay | null {
    for (const [runId, record] of this.records) {
      const run = opening?.registry.live(runId) ?? null;
      if (run?.progress.inputTopic !== topic || run.ownership.owner === null) continue;
      const at = run.progress.frontier.find((each) => each.active && run.plan.node(each.node).label === label);
      if (at !== undefined) return { runId, record, owner: run.ownership.owner, at };
    }
    return null;
  }

  /** Whatever instance is asked, its answers are the fold of the log. */
  async #check(): Promise<void> {
    for (const instance of this.instances) {
      const { engine } = instance;
      if (engine === null) throw new Error('an instance is down');
      // A slow line may take longer than a question waits.
      const again = <T>(ask: () => Promise<T>): Promise<T> =>
        ask().catch((error: unknown) => (isOfLog(error) ? again(ask) : Promise.reject(error)));
      // Whoever has just thawed is fenced until its next heartbeat; that it never is ready ends the history too.
      while (!(await again(() => engine.isReady())))
        await new Promise<void>((resolve) => this.scheduler.after(500, null, resolve));
      const list = await again(() => engine.queries.list({ limit: 100, offset: 0 }));
      this.must(
        list.length === this.records.size,
        'views equal the fold',
        () => `${list.length} of ${this.records.size} runs are listed`,
      );
      for (const each of list) this.#isHead(each, 'a list');
      for (const runId of this.records.keys()) {
        this.must(
          engine.registry.live(runId) === null,
          'every run ends once faults stop',
          () => `run ${runId} has ended and is live`,
        );
        if (!this.plan.isVerified) continue;
        const found = await again(() => engine.queries.find(runId));
        this.must(found !== null, 'views equal the fold', () => `run ${runId} is not found`);
        if (found !== null) this.#isHead(found, 'a poll');
        if (instance === this.instances[0]) {
          const verified = await again(() => engine.verify(runId));
          const isValid = verified !== null && verified.firstDifference === null;
          this.must(isValid, 'views equal the fold', () => `verify says ${JSON.stringify(verified)}`);
        }
      }
    }
    this.clients.check();
  }

  #isHead(summary: RunSummary, by: string): void {
    this.answered(summary, by);
    const events = this.records.get(summary.id)?.events.length;
    this.must(
      summary.seq + 1 === events,
      'views equal the fold',
      () => `${by} knows ${summary.seq + 1} of ${events} events of run ${summary.id}`,
    );
  }
}
