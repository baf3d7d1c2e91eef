/** The growing record of one run: its events, and the service's own fold of them up to any event. */
import type { RunEvent } from '../../client/run-events.js';
import type { GateAction } from '../../generated/schemas.js';
import type { BudgetSpent } from '../../run/cost-text.js';
import type { UsageTotals } from '../../run/effort.js';
import { dollarsOf } from '../../system/dollars.js';
import { usageOf } from '../../run/effort.js';
import { upcast } from '../../run/events.js';
import { evolve, firstState } from '../../run/evolve.js';
import type { RunHistory } from '../../run/history/history.js';
import { HistoryFold } from '../../run/history/fold.js';
import { historyAt } from '../../run/history/history.js';
import type { LiveBranch, PauseApprovals } from '../../run/pauses/pause-view.js';
import { approvalsAt, liveBranches } from '../../run/pauses/pause-view.js';
import type { JsonOutput, RunPause, RunState, RunStatus } from '../../run/state.js';
import { failureOf, finalDraftOf, finalOutputOf, isFinished, pauseOf } from '../../run/state.js';

/** Number of events between two stored states. Going back folds at most as many, about 20 µs each. */
const CHECKPOINT_EVERY = 8;

/** The first event that cannot be folded: the record is corrupt, or a later version of the service wrote it. */
export interface RecordFault {
  readonly seq: number;
  readonly reason: string;
}

/** The run after one of its events: the fields of `GET /api/runs/{id}/state?at=` and some more. */
export interface RunSnapshot {
  readonly seq: number;
  readonly status: RunStatus;
  /** The node that started last; while paused, the first that waits; `done` at the end. */
  readonly activeNode: string | null;
  /** All active nodes. */
  readonly activeNodes: readonly string[];
  readonly topic: string;
  /** The draft of the first branch. */
  readonly draft: string | null;
  readonly finalDraft: string | null;
  /** The JSON value by the run's schema, which may be null; undefined before the end or without a schema. */
  readonly finalOutput: JsonOutput | undefined;
  /** All live branches: the node each is at or waits for, and its draft. */
  readonly branches: readonly LiveBranch[];
  readonly score: number | null;
  /** Number of drafts. */
  readonly iteration: number;
  /** Oldest first. */
  readonly feedback: readonly string[];
  readonly route: 'approve' | 'rework' | null;
  readonly error: string | null;
  /** Nodes that wait for a decision; empty if not paused. */
  readonly nextNodes: readonly string[];
  readonly pause: PauseShown | null;
  /** The instance that owns the run, or null if none does. */
  readonly owner: string | null;
  readonly usage: UsageTotals;
  /** The budget with what is spent of it, or null if the run has none. */
  readonly budget: BudgetSpent | null;
  /** Time in ended pauses, in milliseconds. */
  readonly waitedMs: number;
}

/** The current pause of a run. */
export interface PauseShown {
  readonly number: number;
  /** `seq` of its RunPaused event, which a decision must name. */
  readonly seq: number;
  readonly pausedAt: string;
  /** `budget`: the next calls would pass the run's budget. Null: a pause of God Mode. */
  readonly reason: 'budget' | null;
  /** The decision until the run resumes, or null before it. */
  readonly decision: GateAction | null;
  /** The approval rule and its votes, or null if any key with the scope may decide at any time. */
  readonly approvals: PauseApprovals | null;
}

export class RunRecord {
  readonly #events: RunEvent[] = [];
  /** The state after each {@link CHECKPOINT_EVERY}-th event, from the first. */
  readonly #checkpoints: RunState[] = [];
  #head: RunState | null = null;
  #fault: RecordFault | null = null;
  #history: HistoryFold | null = null;

  /** In order: the index of an event is its `seq`. */
  get events(): readonly RunEvent[] {
    return this.#events;
  }

  /** `seq` of the last event; -1 before the first. */
  get head(): number {
    return this.#events.length - 1;
  }

  /** Or null if all events can be folded. */
  get fault(): RecordFault | null {
    return this.#fault;
  }

  /**
   * Adds the next event, and ignores one that it has. An event that cannot be folded is stored and sets `fault`; the state
   * stays as it was.
   *
   * @returns whether the event is new
   * @throws {RangeError} an event between is missing
   */
  add(event: RunEvent): boolean {
    if (event.seq <= this.head) return false;
    if (event.seq > this.head + 1) {
      throw new RangeError(`Cannot add event ${event.seq}: the next is ${this.head + 1}`);
    }
    this.#events.push(event);
    if (this.#fault !== null) return true;
    try {
      this.#fold(event);
    } catch (error) {
      this.#fault = { seq: event.seq, reason: error instanceof Error ? error.message : String(error) };
    }
    return true;
  }

  #fold(stored: RunEvent): void {
    const event = upcast(stored);
    const before = this.#head;
    const after = folded(before, event);
    if (before !== null) this.#history?.add(event, { before, after });
    else if (event.type === 'RunRequested') this.#history = new HistoryFold(event, after);
    this.#head = after;
    if (event.seq % CHECKPOINT_EVERY === 0) this.#checkpoints.push(after);
  }

  /** The state after an event, or at the head if `seq` is greater; null before the first. */
  stateAt(seq: number): RunState | null {
    const head = this.#head;
    if (seq < 0 || head === null) return null;
    if (seq >= head.head.seq) return head;
    const kept = this.#checkpoints[Math.floor(seq / CHECKPOINT_EVERY)] ?? null;
    return this.#events
      .slice((kept?.head.seq ?? -1) + 1, seq + 1)
      .reduce((state, event) => folded(state, upcast(event)), kept);
  }

  /** The snapshot after an event, or at the head if `seq` is greater; null before the first. */
  snapshotAt(seq: number): RunSnapshot | null {
    const state = this.stateAt(seq);
    return state === null ? null : snapshotOf(state);
  }

  /** The history up to and including an event, or null before the first. */
  historyAt(seq: number): RunHistory | null {
    if (seq < 0 || this.#history === null) return null;
    const { history } = this.#history;
    return seq >= this.head ? history : historyAt(history, seq);
  }
}

/**
 * The state after an upcast event. The page shows events as stored, but folds them upcast, as the service does.
 */
function folded(state: RunState | null, event: RunEvent): RunState {
  if (state !== null) return evolve(state, event);
  if (event.type !== 'RunRequested') throw new Error(`A run begins with RunRequested, not with ${event.type}`);
  return firstState(event);
}

function snapshotOf(run: RunState): RunSnapshot {
  const { phase, progress, ownership, effort, spending } = run;
  const { shown } = progress;
  const pause = pauseOf(run);
  const isUnderWay = phase.status === 'running';
  return {
    seq: run.head.seq,
    status: phase.status,
    activeNode: progress.activeNode,
    // An active node of a fork's first state has not started.
    activeNodes: isUnderWay
      ? [...new Set(progress.frontier.filter((each) => each.active && each.attempt > 0).map((each) => each.node))]
      : [],
    topic: progress.inputTopic,
    draft: shown.draft,
    finalDraft: finalDraftOf(run),
    finalOutput: finalOutputOf(run),
    branches: isFinished(run) ? [] : liveBranches(run),
    score: shown.score,
    iteration: progress.iterationCount,
    feedback: shown.feedback.map(({ text }) => text),
    route: shown.verdict,
    error: failureOf(run)?.error ?? null,
    nextNodes: pause === null ? [] : pause.nextNodes,
    pause: pause === null ? null : pauseShown(run, pause),
    owner: ownership.owner,
    usage: usageOf(effort),
    budget: spending === null ? null : budgetSpent(spending),
    waitedMs: effort.waitedMs,
  };
}

function budgetSpent({ budget: { usd, tokens }, spent }: NonNullable<RunState['spending']>): BudgetSpent {
  return { usd, tokens, spentUsd: spent.usd === null ? null : dollarsOf(spent.usd), spentTokens: spent.tokens };
}

function pauseShown(run: RunState, open: RunPause): PauseShown {
  const { number, seq, pausedAt, reason, decision } = open;
  return { number, seq, pausedAt, reason, decision, approvals: approvalsAt(run, open) };
}
