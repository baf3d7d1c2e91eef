/** A growing record of one run: its events, and the service's own fold of them at any moment. */
import type { RunEvent } from '../../client/run-events.js';
import type { GateAction, RunTotals } from '../../generated/schemas.js';
import { usageOf } from '../../run/effort.js';
import { upcast } from '../../run/events.js';
import { evolve, firstState } from '../../run/evolve.js';
import type { LiveBranch, PauseApprovals } from '../../run/pause-view.js';
import { approvalsAt, liveBranches } from '../../run/pause-view.js';
import type { RunPause, RunState, RunStatus } from '../../run/state.js';
import { failureOf, finalDraftOf, isFinished, pauseOf } from '../../run/state.js';
import type { Course } from './course.js';
import { courseAt } from './course.js';
import { CourseBuilder } from './course-builder.js';

/** Events between two states that are kept: what one look back folds at most, some 20 µs each. */
const CHECKPOINT_EVERY = 8;

/** From where on the record cannot be folded: it is damaged, or a later version of the service has written it. */
export interface RecordFault {
  readonly seq: number;
  readonly reason: string;
}

/** What is shown of a run after one of its events; fields as `GET /api/runs/{id}/state?at=` has them, and some more. */
export interface Moment {
  /** The event it follows. */
  readonly seq: number;
  readonly status: RunStatus;
  /** The node started last, the first to wait while paused, `done` at the end. */
  readonly activeNode: string | null;
  /** Every node under way. */
  readonly activeNodes: readonly string[];
  readonly topic: string;
  /** While several branches live, that of the first. */
  readonly draft: string | null;
  readonly finalDraft: string | null;
  /** Every live branch: the node it is at or waits for, and its draft. */
  readonly branches: readonly LiveBranch[];
  readonly score: number | null;
  /** Drafts so far. */
  readonly iteration: number;
  /** Oldest first. */
  readonly feedback: readonly string[];
  readonly route: 'approve' | 'rework' | null;
  readonly error: string | null;
  /** Nodes that wait for a decision; empty unless paused. */
  readonly nextNodes: readonly string[];
  readonly pause: PauseShown | null;
  /** Instance that runs it; null: none does. */
  readonly owner: string | null;
  readonly usage: RunTotals;
  /** Time in pauses that have ended, in milliseconds. */
  readonly waitedMs: number;
}

/** The pause a run is at. */
export interface PauseShown {
  readonly number: number;
  /** Revision of its RunPaused event: what a decision answers. */
  readonly seq: number;
  readonly pausedAt: string;
  /** Between the decision and the run's resumption. */
  readonly decision: GateAction | null;
  /** Who decides, who has voted, until when; null: whoever may approve, whenever they like. */
  readonly approvals: PauseApprovals | null;
}

/** The record of one run as it grows. */
export class RunRecord {
  readonly #events: RunEvent[] = [];
  /** After every so many events, from the first on. */
  readonly #checkpoints: RunState[] = [];
  #head: RunState | null = null;
  #fault: RecordFault | null = null;
  #course: CourseBuilder | null = null;

  /** In order; its place is its `seq`. */
  get events(): readonly RunEvent[] {
    return this.#events;
  }

  /** `seq` of the last event; -1 before the first. */
  get head(): number {
    return this.#events.length - 1;
  }

  /** Null: all of it could be folded. */
  get fault(): RecordFault | null {
    return this.#fault;
  }

  /**
   * Takes the next event; one that is there already is passed over. What cannot be folded is kept as an event and told as
   * a fault: the state stays as it was before.
   *
   * @returns whether it is new
   * @throws {RangeError} when one between is missing
   */
  add(event: RunEvent): boolean {
    if (event.seq <= this.head) return false;
    if (event.seq > this.head + 1) {
      throw new RangeError(`Cannot take event ${event.seq}: the next is ${this.head + 1}`);
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
    if (before !== null) this.#course?.add(event, before);
    else if (event.type === 'RunRequested') this.#course = new CourseBuilder(event, after);
    this.#head = after;
    if (event.seq % CHECKPOINT_EVERY === 0) this.#checkpoints.push(after);
  }

  /** The fold up to and including an event, or to the head where there are fewer; null before the first. */
  stateAt(seq: number): RunState | null {
    const head = this.#head;
    if (seq < 0 || head === null) return null;
    if (seq >= head.head.seq) return head;
    const kept = this.#checkpoints[Math.floor(seq / CHECKPOINT_EVERY)] ?? null;
    return this.#events
      .slice((kept?.head.seq ?? -1) + 1, seq + 1)
      .reduce((state, event) => folded(state, upcast(event)), kept);
  }

  /** What is shown after an event, or at the head where there are fewer; null before the first. */
  momentAt(seq: number): Moment | null {
    const state = this.stateAt(seq);
    return state === null ? null : momentOf(state);
  }

  /** What had happened up to and including an event; null before the first. */
  courseAt(seq: number): Course | null {
    if (seq < 0 || this.#course === null) return null;
    const { course } = this.#course;
    return seq >= this.head ? course : courseAt(course, seq);
  }
}

/**
 * The state after an event of today's version. Events are shown as they are stored, but folded as today's, as the
 * service does.
 */
function folded(state: RunState | null, event: RunEvent): RunState {
  if (state !== null) return evolve(state, event);
  if (event.type !== 'RunRequested') throw new Error(`A run begins with RunRequested, not with ${event.type}`);
  return firstState(event);
}

/** What is shown of a state. */
export function momentOf(run: RunState): Moment {
  const { phase, progress, ownership, effort } = run;
  const { shown } = progress;
  const pause = pauseOf(run);
  const isUnderWay = phase.status === 'running';
  return {
    seq: run.head.seq,
    status: phase.status,
    activeNode: progress.activeNode,
    // A fork's outstanding node is under way only once it has started.
    activeNodes: isUnderWay
      ? progress.frontier.filter((each) => each.active && each.attempt > 0).map((each) => each.node)
      : [],
    topic: progress.inputTopic,
    draft: shown.draft,
    finalDraft: finalDraftOf(run),
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
    waitedMs: effort.waitedMs,
  };
}

function pauseShown(run: RunState, open: RunPause): PauseShown {
  const { number, seq, pausedAt, decision } = open;
  return { number, seq, pausedAt, decision, approvals: approvalsAt(run, open) };
}
