/** One history: instances on one log, faults and requests; then everything is repaired and all runs must end. */
import { createHash } from 'node:crypto';
import type { RecordedEvent } from '../../src/eventlog/port.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { RunFailedData } from '../../src/generated/schemas.js';
import type { LanguageModel } from '../../src/models/port.js';
import { summaryOf } from '../../src/projections/run-summary.js';
import { failureOf } from '../../src/run/state.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import { runIdOf } from '../../src/run/events.js';
import { Clients } from './clients.js';
import { FaultInjection } from './fault-injection.js';
import type { FaultKind, Plan } from './faults.js';
import { checkAnswers } from './final-answers.js';
import { Instance } from './instance.js';
import { ModelCalls } from './model-calls.js';
import { InvariantBroken, RunRecord } from './record.js';
import { Draws, Scheduler } from './scheduler.js';
import type { Process } from './scheduler.js';
import { simulatedModel } from './simulated-model.js';
import { simulatedTools } from './simulated-tools.js';
import { runOfQuery, ToolCalls } from './tool-calls.js';
import { Storage } from './simulated-log.js';
import type { Met } from './met.js';
import { metAt } from './met.js';

export interface Outcome {
  /** The broken invariant, or null if all held. */
  readonly broken: InvariantBroken | null;
  readonly injected: Readonly<Partial<Record<FaultKind, number>>>;
  /** What its runs went through. */
  readonly met: ReadonlySet<Met>;
  readonly events: number;
  readonly turns: number;
  readonly virtualMs: number;
  /** SHA-256 over every turn and every event, if the history was traced. */
  readonly trace: string | null;
}

/** Time in which every run must end after the repair, in virtual milliseconds. */
const LIVENESS_MS = 240_000;
/** Limit of turns: many times those of a history that ends. */
const MAX_TURNS = 100_000;
/** Time in which views and watchers must catch up after the last run ended. */
const SETTLING_MS = 10_000;
/** Time after that in which a forgotten timer would fire. */
const TRAILING_MS = 250;

/** Plays a history. A broken invariant is part of the outcome, not a rejection. */
export async function playHistory(
  plan: Plan,
  { isTraced = false }: { readonly isTraced?: boolean } = {},
): Promise<Outcome> {
  const world = new World(plan, isTraced);
  const onUnhandled = (error: unknown): void => world.broke(new InvariantBroken('no error unhandled', String(error)));
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
  readonly faults: FaultInjection;
  #broken: InvariantBroken | null = null;
  readonly #trace: ReturnType<typeof createHash> | null;
  readonly #toolCalls = new ToolCalls((...given) => this.must(...given));
  readonly #modelCalls: ModelCalls;

  constructor(plan: Plan, isTraced: boolean) {
    this.plan = plan;
    this.draws = new Draws(plan.seed + 7);
    this.storage = new Storage(
      (event) => this.#recorded(event),
      (what) =>
        this.broke(new InvariantBroken('every run ends once faults stop', `an append goes round in circles: ${what}`)),
    );
    const model = (life: Process, instance: Instance): LanguageModel => this.#model(life, instance);
    const tools = (life: Process, instance: Instance): ReturnType<typeof simulatedTools> => this.#tools(life, instance);
    const onFault = (what: string, error: unknown): void =>
      this.broke(new InvariantBroken('no fault without a cause', `${what}: ${String(error)}`));
    const onStopped = (timers: number): void =>
      this.must(timers === 0, 'who has stopped does nothing more', () => `${timers} timers are left`);
    const { scheduler, storage } = this;
    const deps = { plan, scheduler, storage, model, tools, onFault, onStopped };
    this.instances = plan.rates.map((_, index) => new Instance(index, deps));
    this.faults = new FaultInjection({ plan, scheduler, instances: this.instances, onFault });
    this.clients = new Clients(this);
    const must = (holds: boolean, invariant: string, detail: () => string): void => this.must(holds, invariant, detail);
    this.#modelCalls = new ModelCalls({ records: this.records, toolCalls: this.#toolCalls, must });
    this.#trace = isTraced ? createHash('sha256') : null;
    if (isTraced) scheduler.onTurn = (owner) => this.#trace?.update(`${scheduler.nowMs} ${owner?.life ?? '-'}\n`);
  }

  /** Records the first broken invariant, which ends the history. */
  broke(broken: InvariantBroken): void {
    this.#broken ??= broken;
  }

  must(holds: boolean, invariant: string, detail: () => string): void {
    if (!holds) this.broke(new InvariantBroken(invariant, detail()));
  }

  outcome(): Outcome {
    const { scheduler, storage } = this;
    const trace = this.#trace === null ? null : this.#trace.digest('hex');
    return {
      broken: this.#broken,
      injected: this.faults.injected,
      events: storage.events.length,
      trace,
      met: new Set([...this.records.values()].flatMap(({ events }) => events.flatMap(metAt))),
      turns: scheduler.turns,
      virtualMs: scheduler.nowMs,
    };
  }

  async play(): Promise<void> {
    const { plan, scheduler, instances, clients, faults } = this;
    for (const each of instances) each.start();
    faults.begin();
    clients.begin();
    // The history does not wait for decisions that no client makes.
    await this.#until(() => clients.areDone && (this.#haveAllEnded || this.#doAllWait), plan.pace.repairedMs);
    if (this.#isBroken()) return;
    faults.mend();
    clients.tidy();
    const hasEnded = await this.#until(
      () => clients.areDone && this.#haveAllEnded && this.#areAllUp,
      scheduler.nowMs + LIVENESS_MS,
    );
    this.must(hasEnded, 'every run ends once faults stop', () => this.#unfinished());
    await this.#until(() => this.#isAtRest, scheduler.nowMs + SETTLING_MS);
    await this.#until(() => false, scheduler.nowMs + TRAILING_MS);
    if (this.#isBroken()) return;
    for (const record of this.records.values()) this.#mustEndTogether(record);
    let isChecked = false;
    checkAnswers(this).then(
      () => (isChecked = true),
      (error: unknown) => this.broke(new InvariantBroken('views equal the fold', String(error))),
    );
    const isAnswered = await this.#until(() => isChecked, scheduler.nowMs + LIVENESS_MS);
    this.must(isAnswered, 'views equal the fold', () => 'questions are not answered');
    for (const each of instances) each.die();
  }

  /** Checks that a shown state of a run is recorded. */
  shown(runId: string, { seq, hash }: { readonly seq: number; readonly hash: string }, by: string): void {
    const recorded = this.records.get(runId)?.events[seq];
    this.must(
      recorded?.hash === hash,
      'nothing shown that is not recorded',
      () => `${by} tells of event ${seq} of run ${runId}`,
    );
  }

  /** Checks that the answer to a request by id is the fold. */
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

  /** Whether only a human decision can still change something. */
  get #doAllWait(): boolean {
    if (!this.faults.areOver) return false;
    for (const record of this.records.values()) {
      const isPaused = record.state?.phase.status === 'paused';
      if (!record.hasEnded && (!isPaused || record.hasDeadline)) return false;
    }
    return true;
  }

  get #areAllUp(): boolean {
    return this.instances.every(({ engine }) => engine !== null);
  }

  /** Whether no append is pending and no watcher misses an event. */
  get #isAtRest(): boolean {
    if (this.storage.onTheWay > 0 || this.clients.areWaiting) return false;
    for (const { appending, engine } of this.instances) {
      if (appending > 0 || engine === null) return false;
      // A claim that will be repeated is still pending.
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
        takeAnswer: (mark, attempt) => this.#modelCalls.takeAnswer(mark, runId, attempt),
        parentEvents: ({ runId: parent, at }) => this.records.get(parent)?.events.slice(0, at + 1) ?? [],
        hasFound: (query, place) => this.#toolCalls.hasFound(query, place),
        explains: (failure) => this.#explains(failure, runId),
        recordOf: (other) => this.records.get(other) ?? null,
        mayBeDead: (instanceId) => this.faults.mayBeDead(Math.floor(Number.parseInt(instanceId, 16) / 1_000)),
      });
      this.records.set(runId, record);
    }
    try {
      record.take(event);
    } catch (error) {
      this.broke(error instanceof InvariantBroken ? error : new InvariantBroken('legal prefix', String(error)));
      return;
    }
    if (event.type === 'RunPaused') this.clients.paused(record);
  }

  /** Whether a fault or request explains the failure of a run, or that of the run that has cancelled it. */
  #explains({ kind, cause }: RunFailedData, runId: string): boolean {
    switch (kind) {
      case 'output_invalid':
        return false;
      case 'cancelled':
        return cause === undefined ? this.clients.hasCancelled(runId) : this.#isCancelledFor(cause, runId);
      case 'rejected':
      case 'execution_limit':
      case 'budget_exceeded':
        return true;
      case 'node_failed':
        return this.#hasFailedChild(runId) || this.faults.explains(kind);
      case 'takeover_limit':
        return this.faults.explains(kind);
      case 'no_route':
      case 'draft_too_large':
      case 'not_runnable':
      case 'internal':
        return false;
    }
  }

  /** Whether a run above this one had a cause to end. */
  #isCancelledFor({ runId: above, ...failure }: NonNullable<RunFailedData['cause']>, runId: string): boolean {
    const isAbove = (id: string): boolean => {
      const parent = this.records.get(id)?.state?.parentRun?.runId;
      return parent !== undefined && (parent === above || isAbove(parent));
    };
    return isAbove(runId) && this.#explains(failure, above);
  }

  /** A run of a council is cancelled only with its parent, whose own failure has a cause too. */
  #mustEndTogether(record: RunRecord): void {
    const parent = record.state?.parentRun?.runId;
    if (failureIn(record)?.cause === undefined || parent === undefined) return;
    const detail = (): string => `${record.runId} is cancelled, its parent has not failed`;
    this.must(failureIn(this.records.get(parent)) !== null, 'no failure without a cause', detail);
  }

  /** Whether a run of its councils has failed, and was not cancelled. */
  #hasFailedChild(runId: string): boolean {
    const record = this.records.get(runId);
    const hasFailed = [...(record?.children.values() ?? [])].some(({ runId: child }) => {
      const failure = failureIn(this.records.get(child));
      return failure !== null && failure.kind !== 'cancelled';
    });
    // A fork keeps the runs of councils that had ended in its parent.
    const parent = record?.state?.request.parent?.runId;
    return hasFailed || (parent !== undefined && this.#hasFailedChild(parent));
  }

  #model(life: Process, instance: Instance): LanguageModel {
    return simulatedModel({
      process: life,
      longestMs: this.plan.pace.modelMs,
      fault: (model) => this.faults.ofModel(model),
      onCall: (request) => this.#modelCalls.begun(instance, request),
      nextDraft: () => this.#modelCalls.nextDraft(),
    });
  }

  #tools(life: Process, instance: Instance): ReturnType<typeof simulatedTools> {
    return simulatedTools({
      process: life,
      draws: new Draws(this.plan.seed * 1_000 + life.life + 500),
      longestMs: this.plan.pace.modelMs,
      isMended: () => this.faults.isMended,
      onCall: (query) => {
        const runId = runOfQuery(query);
        const run = instance.opening?.registry.live(runId) ?? null;
        return this.#toolCalls.begun(query, { record: this.records.get(runId), run });
      },
    });
  }
}

function failureIn(record: RunRecord | undefined): RunFailedData | null {
  const state = record?.state ?? null;
  return state === null ? null : failureOf(state);
}
