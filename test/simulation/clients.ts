/** The clients of a history: they repeat unanswered requests and remember the answers. */
import type { Context } from '../../src/app/context.js';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { BudgetChange, GateChoice, RunRequestedData } from '../../src/generated/schemas.js';
import type { Caller } from '../../src/keys/caller.js';
import { ANYONE } from '../../src/keys/caller.js';
import type { DecisionAnswer } from '../../src/run/runs/runs.js';
import type { RunEvent } from '../../src/run/events.js';
import { runStream } from '../../src/run/events.js';
import { BudgetRefused, NotApprover, PauseMoved, RunFinished, RunNotPaused, RunUnknown } from '../../src/run/errors.js';
import { buildForkRequest } from '../../src/run/fork.js';
import { buildRunRequest } from '../../src/run/request.js';
import { isFinished, pauseOf } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Request } from './faults.js';
import { withTools } from './faults.js';
import { DEFAULT_MODEL, GRAPHS } from './graphs.js';
import type { World } from './history.js';
import { isOfLog } from './instance.js';
import { InvariantBroken } from './record.js';
import type { RunRecord } from './record.js';
import { Draws, uuidOf } from './scheduler.js';

const { sha256 } = nodeSystem();
/**
 * How long a client waits for an answer before it repeats the request, perhaps at another instance, in milliseconds.
 */
const PATIENCE_MS = 4_000;

/** A budget that no run of a history reaches. */
const AMPLE: BudgetChange = { tokens: 10_000_000, usd: 10 };
/** Budgets of decisions. Only a pause for the budget reads them. */
const BUDGETS: readonly (BudgetChange | undefined)[] = [AMPLE, { tokens: 30_000 }, { usd: 0.03 }, undefined];

/** A value, an error, or null if there is no answer and so the outcome is unknown. */
type Answer<T> = { readonly value: T } | { readonly error: unknown } | null;

interface Decided {
  readonly runId: string;
  readonly keyHash: string;
  readonly actor: string | null;
  readonly answer: DecisionAnswer;
  /** Whether the event was recorded before the answer. */
  readonly isRecorded: boolean;
}

export class Clients {
  readonly #world: World;
  #waiting = 0;
  #glances = 0;
  readonly #started = new Set<string>();
  readonly #cancelling = new Set<string>();
  readonly #cancelled = new Set<string>();
  readonly #decided: Decided[] = [];
  /** Watched runs, with the last revision shown and whether the instance still has the same life. */
  readonly #watched: { readonly runId: string; readonly isAlive: () => boolean; seq: number; hasEnded: boolean }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Whether every request was answered. */
  get areDone(): boolean {
    return this.#waiting === 0;
  }

  /** Whether a watcher still misses events. */
  get areWaiting(): boolean {
    const { records } = this.#world;
    return this.#watched.some(
      ({ runId, isAlive, seq }) => isAlive() && seq + 1 < (records.get(runId)?.events.length ?? 0),
    );
  }

  hasCancelled(runId: string): boolean {
    return this.#cancelling.has(runId);
  }

  begin(): void {
    for (const request of this.#world.plan.requests) this.#later(request.atMs, () => this.#send(request));
  }

  /** Plans decisions on a pause: at once, late, in conflict, or none. */
  paused(record: RunRecord): void {
    const { plan, scheduler, faults } = this.#world;
    if (faults.isMended) return;
    const draws = new Draws(plan.seed * 31 + record.events.length * 7 + Number.parseInt(record.runId.slice(-6), 16));
    for (let count = draws.whole(0, 3); count > 0; count -= 1) {
      const slot = draws.whole(0, plan.rates.length - 1);
      const atMs = scheduler.nowMs + draws.random() * (draws.chance(0.8) ? 300 : plan.pace.decisionMs);
      const said = draws.random();
      const action = said < 0.75 ? 'approve' : said < 0.85 ? 'reject' : 'modify';
      const actor = draws.pick(['ann', 'bob', 'cat', 'dan']);
      const keyHash = sha256(`${record.runId} ${record.events.length} ${count}`);
      const expectedSeq = draws.chance(0.5) ? record.events.length - 1 : null;
      const isOfBudget = record.state !== null && pauseOf(record.state)?.reason === 'budget';
      // A few budgets go to pauses that take none.
      const number = Number.parseInt(keyHash.slice(0, 4), 16);
      const budget = isOfBudget || number % 10 === 0 ? BUDGETS[number % BUDGETS.length] : undefined;
      const decide = (at: number): Promise<void> =>
        this.#decide(record, { slot: at, action, actor, keyHash, expectedSeq, budget });
      this.#later(atMs, () => decide(slot));
      // The client repeats its request.
      if (draws.chance(0.3))
        this.#later(atMs + draws.random() * 50, () => decide(draws.whole(0, plan.rates.length - 1)));
    }
  }

  /** Decides every pause from now on, within a bounded time. */
  tidy(): void {
    const { scheduler, records, plan } = this.#world;
    let round = 0;
    // A pause with a deadline ends by itself, unless a clock was set by hours.
    const hasJumps = plan.faults.some(({ kind }) => kind === 'clock-ahead' || kind === 'clock-back');
    const look = (): void => {
      round += 1;
      for (const record of records.values()) {
        if (record.state?.phase.status !== 'paused' || (!hasJumps && record.hasDeadline)) continue;
        const slot = round % plan.rates.length;
        // Two approvers, and two of those to whom the pause escalates.
        for (const actor of ['cat', round % 2 === 1 ? 'bob' : 'dan']) {
          const keyHash = sha256(`${record.runId} tidy ${round} ${actor}`);
          const budget = pauseOf(record.state)?.reason === 'budget' ? AMPLE : undefined;
          void this.#decide(record, { slot, action: 'approve', actor, keyHash, expectedSeq: null, budget });
        }
      }
      scheduler.after(plan.pace.decisionMs / 4, null, look);
    };
    look();
  }

  /** Checks that everything acknowledged is recorded, once. */
  check(): void {
    const world = this.#world;
    for (const runId of this.#started) {
      world.must(
        world.records.get(runId)?.events[0]?.type === 'RunRequested',
        'no acknowledged event lost',
        () => `start of ${runId}`,
      );
    }
    for (const runId of this.#cancelled) {
      const last = world.records.get(runId)?.events.at(-1);
      world.must(
        last?.type === 'RunFailed' && last.data.kind === 'cancelled',
        'no acknowledged event lost',
        () => `cancel of ${runId}`,
      );
    }
    for (const each of this.#decided) this.#checkDecided(each);
    this.#checkWatched();
  }

  #checkWatched(): void {
    const world = this.#world;
    for (const { runId, isAlive, seq, hasEnded } of this.#watched) {
      const last = world.records.get(runId)?.events.length ?? 0;
      const isTold = hasEnded && seq === last - 1;
      world.must(
        !isAlive() || isTold,
        'every watcher receives the end',
        () => `a watcher of ${runId} received ${seq + 1} of ${last} events`,
      );
    }
  }

  #checkDecided({ runId, keyHash, actor, answer, isRecorded }: Decided): void {
    const events = this.#world.records.get(runId)?.events ?? [];
    const own = this.#recordedWith(runId, keyHash);
    const type = answer.status === 'paused' ? 'VoteCast' : 'GateDecided';
    // A repeated vote gets the earlier answer, and the log records nothing. So another instance does not know its key:
    // if the request names no pause and the next one is open, the instance takes it as a vote on that.
    const isSaid = events.some((event) => event.type === 'VoteCast' && event.data.actor === actor);
    const isThere = isRecorded ? own.length === 1 && own[0]?.type === type : type === 'VoteCast' && isSaid;
    this.#world.must(
      isThere,
      'no acknowledged event lost',
      () => `${actor} was answered "${answer.status}" for run ${runId}, ${own.length} events say so`,
    );
  }

  #send({ kind, slot, run, parent }: Request): Promise<void> {
    const runId = this.#runId(run);
    switch (kind) {
      case 'start':
        return this.#start(slot, this.#requested(run));
      case 'twin': {
        const requested = this.#requested(run);
        const other = (slot + 1) % this.#world.plan.rates.length;
        return Promise.all([this.#start(slot, requested), this.#start(other, requested)]).then(() => undefined);
      }
      case 'cancel':
        return this.#cancel(slot, runId);
      case 'fork':
        return this.#fork(slot, { runId, parentId: this.#runId(parent) });
      case 'poll':
        return this.#poll(slot, runId);
      case 'watch':
        return this.#watch(slot, runId);
      case 'list':
        return this.#list(slot);
      default:
        return kind satisfies never;
    }
  }

  #runId(run: number): string {
    return uuidOf(0xfffffff0 + run, this.#world.plan.seed % 0xffffffffffff);
  }

  #requested(run: number): RunRequestedData {
    const planned = this.#world.plan.runs[run];
    const plain = GRAPHS[planned?.graph ?? ''];
    if (planned === undefined || plain === undefined) throw new Error(`There is no run ${run}`);
    const graph = planned.hasTools ? withTools(plain) : plain;
    const topic = `Topic ${run}`;
    const requested = buildRunRequest({
      runId: this.#runId(run),
      inputTopic: topic,
      godMode: planned.godMode,
      graph,
      budget: planned.spending,
      blueprint: planned.graph === 'fixed' ? null : { id: planned.graph, name: planned.graph },
      graphHash: sha256(canonical(graph)),
      keyHash: sha256(topic),
      bodyHash: sha256(topic),
      actor: null,
    });
    return { ...requested, limits: { ...requested.limits, maxNodeExecutions: planned.budget } };
  }

  async #start(slot: number, requested: RunRequestedData): Promise<void> {
    const { runId } = requested;
    await this.#insist(
      slot,
      (engine) => engine.registry.start(requested),
      () => this.#started.add(runId),
    );
  }

  async #cancel(slot: number, runId: string): Promise<void> {
    this.#cancelling.add(runId);
    const wasStarted = this.#started.has(runId);
    const answer = await this.#ask(slot, (engine) => engine.registry.cancel(runId));
    if (answer === null) return;
    if ('value' in answer) {
      this.#cancelled.add(runId);
      this.#world.shown(runId, answer.value.head, 'a cancel');
      return;
    }
    const { error } = answer;
    if (error instanceof RunUnknown) return this.#mustNotBe(wasStarted, error);
    if (error instanceof RunFinished) return this.#mustNotBe(this.#world.records.get(runId)?.hasEnded !== true, error);
    this.#mustNotBe(!isOfLog(error), error);
  }

  async #fork(slot: number, { runId, parentId }: { readonly runId: string; readonly parentId: string }): Promise<void> {
    const events = this.#world.records.get(parentId)?.events.length ?? 0;
    if (events === 0) return;
    const at = this.#world.draws.whole(0, events - 1);
    const answer = await this.#ask(slot, (engine) => engine.queries.forkPoint(parentId, at));
    if (answer === null) return;
    if ('error' in answer) return this.#mustNotBe(!isOfLog(answer.error), answer.error);
    const point = answer.value;
    if (point === null || point.run === null) return;
    this.#world.shown(parentId, point.run.head, 'a fork');
    const changes = { inputTopic: `Fork of ${parentId}`, override: null, nodes: [], maxNodeExecutions: null };
    const requested = buildForkRequest(point.run, changes, {
      runId,
      bodyHash: sha256(runId),
      actor: null,
      fullName: (model = DEFAULT_MODEL) => model,
      sha256,
    });
    await this.#start(slot, requested);
  }

  async #poll(slot: number, runId: string): Promise<void> {
    const wasStarted = this.#started.has(runId);
    const watched = this.#world.instances[slot]?.watched ?? new Set();
    const isWatched = watched.has(runStream(runId));
    watched.add(runStream(runId));
    const answer = await this.#ask(slot, (engine) => engine.queries.find(runId));
    if (!isWatched) watched.delete(runStream(runId));
    if (answer === null) return;
    if ('error' in answer) return this.#mustNotBe(!isOfLog(answer.error), answer.error);
    if (answer.value === null)
      return this.#mustNotBe(wasStarted, new Error(`run ${runId} was acknowledged and is not found`));
    this.#world.answered(answer.value, 'a poll');
  }

  /** Watches a run and disconnects at once. */
  async #glance(slot: number, runId: string): Promise<void> {
    const leaving = new AbortController();
    const onState = (): void => leaving.abort();
    this.#world.instances[slot]?.watched.add(runStream(runId));
    await this.#ask(slot, (engine) => engine.feed.follow(runId, { from: 'now', onState, signal: leaving.signal }));
  }

  /** Everything recorded before the request must be in the list. */
  async #list(slot: number): Promise<void> {
    const world = this.#world;
    this.#glances += 1;
    if (this.#glances % 2 === 1) for (const runId of this.#started) await this.#glance(slot, runId);
    const before = [...world.records].map(([runId, { events }]) => ({ runId, count: events.length }));
    const answer = await this.#ask(slot, (engine) => engine.queries.list({ limit: 100, offset: 0 }));
    if (answer === null) return;
    if ('error' in answer) return this.#mustNotBe(!isOfLog(answer.error), answer.error);
    const listed = new Map(answer.value.map(({ id, seq }) => [id, seq + 1]));
    for (const { runId, count } of before) {
      const known = listed.get(runId) ?? 0;
      world.must(known >= count, 'lists count all before them', () => `${known} of ${count} events of run ${runId}`);
    }
    for (const each of answer.value) world.answered(each, 'a list');
  }

  /** Watches a run by its states and by its events. */
  async #watch(slot: number, runId: string): Promise<void> {
    const world = this.#world;
    const instance = world.instances[slot];
    const engine = instance?.engine ?? null;
    if (instance === undefined || engine === null || !this.#started.has(runId)) return;
    const isAlive = (): boolean => instance.engine === engine;
    let isFollowing = true;
    const states = { runId, isAlive, seq: -1, hasEnded: false };
    const events = { runId, isAlive: () => isAlive() && isFollowing, seq: -1, hasEnded: false };
    this.#watched.push(events);
    instance.watched.add(runStream(runId));
    const { signal } = new AbortController();
    const watched = engine.feed.follow(runId, {
      from: 'now',
      signal,
      onState: (run) => {
        if (states.seq === -1) this.#watched.push(states);
        world.must(
          states.seq === -1 || run.head.seq === states.seq || run.head.seq === states.seq + 1,
          'every watcher receives all events',
          () => `${run.head.seq} after ${states.seq}`,
        );
        world.shown(runId, run.head, 'a watcher');
        states.seq = run.head.seq;
        states.hasEnded = isFinished(run);
      },
    });
    watched.catch((error: unknown) => {
      // Whether the log has lost the run is seen by its events.
      this.#mustNotBe(!isOfLog(error) && !(error instanceof RunUnknown), error);
    });
    const followed = engine.feed.follow(runId, {
      from: 0,
      signal,
      onEvent: (event) => {
        world.must(
          event.seq === events.seq + 1,
          'every watcher receives all events',
          () => `event ${event.seq} after ${events.seq}`,
        );
        world.shown(runId, event, 'a feed');
        events.seq = event.seq;
        events.hasEnded = event.type === 'RunCompleted' || event.type === 'RunFailed';
      },
    });
    followed.catch((error: unknown) => {
      isFollowing = false;
      this.#mustNotBe(!isOfLog(error), error);
    });
  }

  async #decide(
    { runId, events }: RunRecord,
    decision: {
      readonly slot: number;
      readonly action: GateChoice['action'];
      readonly actor: string;
      readonly keyHash: string;
      readonly expectedSeq: number | null;
      readonly budget: BudgetChange | undefined;
    },
  ): Promise<void> {
    const { slot, action, actor, keyHash, expectedSeq, budget } = decision;
    const caller: Caller = { ...ANYONE, actor };
    const choice: GateChoice =
      action === 'modify'
        ? { action, modifiedState: { current_draft: 'By a human' } }
        : { action, modifiedState: null };
    const decided = { comment: null, keyHash, bodyHash: sha256(action), expectedSeq, budget };
    const request = { caller, ...decided, choice };
    // A repeated vote is answered but not recorded, so another instance does not know its key later.
    const isKnown = this.#recordedWith(runId, keyHash).length > 0;
    const isRepeated = isKnown && this.#decided.some((each) => each.keyHash === keyHash);
    const answer = await this.#ask(slot, (engine) => engine.registry.decidePause(runId, request));
    if (answer === null) return;
    if ('value' in answer) {
      const isRecorded = this.#recordedWith(runId, keyHash).length > 0;
      return void this.#decided.push({ runId, keyHash, actor, answer: answer.value, isRecorded });
    }
    const { error } = answer;
    this.#mustNotBe(isRepeated && !isOfLog(error), error);
    const isRefusal = error instanceof RunNotPaused || error instanceof PauseMoved || error instanceof NotApprover;
    const isRefused = isRefusal || (error instanceof BudgetRefused && mayBeRefused(events, { action, budget }));
    this.#mustNotBe(!isRefused && !isOfLog(error), error);
  }

  /** Repeats a request with the same key until there is an answer. */
  async #insist<T>(slot: number, work: (engine: Context) => Promise<T>, onAnswer: () => void): Promise<void> {
    const { scheduler, plan, draws } = this.#world;
    for (let tries = 0; ; tries += 1) {
      const answer = await this.#ask((slot + tries) % plan.rates.length, work);
      if (answer !== null && 'value' in answer) return onAnswer();
      if (answer !== null && !isOfLog(answer.error)) return this.#mustNotBe(true, answer.error);
      await new Promise<void>((resolve) => scheduler.after(draws.random() * 400, null, resolve));
    }
  }

  /** Sends a request once. Returns null if no answer comes in time. */
  async #ask<T>(slot: number, work: (engine: Context) => Promise<T>): Promise<Answer<T>> {
    const { scheduler, instances } = this.#world;
    const late = new Promise<null>((resolve) => scheduler.after(PATIENCE_MS, null, () => resolve(null)));
    const asked = instances[slot]?.ask(work).then(
      (value): Answer<T> => (value === 'gone' ? null : { value }),
      (error: unknown): Answer<T> => ({ error }),
    );
    return await Promise.race([asked ?? { error: new LogUnavailable() }, late]);
  }

  #later(atMs: number, act: () => Promise<void>): void {
    this.#waiting += 1;
    this.#world.scheduler.at(atMs, null, () => {
      act()
        .catch((error: unknown) => this.#mustNotBe(true, error))
        .finally(() => (this.#waiting -= 1));
    });
  }

  /** The decision or vote that a request with this key has led to. */
  #recordedWith(runId: string, keyHash: string): readonly RunEvent[] {
    const events = this.#world.records.get(runId)?.events ?? [];
    return events.filter(
      (event) => (event.type === 'GateDecided' || event.type === 'VoteCast') && event.data.keyHash === keyHash,
    );
  }

  #mustNotBe(isWrong: boolean, error: unknown): void {
    if (isWrong)
      this.#world.broke(
        new InvariantBroken(
          'no request refused without a cause',
          error instanceof Error ? (error.stack ?? error.message) : String(error),
        ),
      );
  }
}

/** Whether a pause of a run may refuse a decision's budget: only one for the budget takes one, large enough, and no change. */
function mayBeRefused(
  events: readonly RunEvent[],
  { action, budget }: { readonly action: GateChoice['action']; readonly budget: BudgetChange | undefined },
): boolean {
  if (budget !== AMPLE || action === 'modify') return true;
  return events.some(({ type, data }) => type === 'RunPaused' && data.reason !== 'budget');
}
