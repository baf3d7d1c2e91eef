/** The state of a run, folded from its events: polls, channels, history, recovery and decisions all read this one. */
import { labelInOneLine } from '../graph/label.js';
import type { GateAction, GateChoice, Graph, RunFailedData, RunRequestedData } from '../generated/schemas.js';
import type { StreamHead } from '../eventsourcing/handle-command.js';
import type { Plan } from '../graph/plan.js';
import type { Branch } from './branch.js';
import type { RunEffort } from './effort.js';

/** One node of the frontier: running, or done and waiting for the others. */
export interface FrontierNode {
  readonly node: string;
  readonly step: number;
  readonly attempt: number;
  /** Failed attempts of this step; attempts lost with their instance or to an outage do not count. */
  readonly failures: number;
  /** The outage of its model's server that its attempts wait for to end; null: none since the last failure of another kind. */
  readonly outage: Outage | null;
  /** When the attempt was started, ISO 8601. */
  readonly startedAt: string;
  /** How long it waits from then on before it calls its model. */
  readonly delayMs: number;
  /** Its tools as recorded at the attempt's start: those it may call, and those marked unavailable. */
  readonly tools: readonly string[];
  readonly active: boolean;
  /** The branch the node works on; once it is done, the branch with its output. */
  readonly branch: Branch;
}

/** A model's server cannot be reached, as a step has found. */
export interface Outage {
  /** When that was recorded, ISO 8601. */
  readonly since: string;
  /** How long the step waits for it to end from then on, in milliseconds. */
  readonly budgetMs: number;
}

/** A branch that has reached a node which has not started yet. */
export interface Arrival {
  readonly node: string;
  /** Step it comes from, 0 for the start. */
  readonly from: number;
  /** Index of the edge it came by, -1 for the start; at most one arrival per edge. Joins and frontiers keep this order. */
  readonly order: number;
  readonly branch: Branch;
}

/** A branch that ended at a node without outgoing edges. */
export interface Ended {
  readonly node: string;
  /** Step it ended with. */
  readonly from: number;
  readonly branch: Branch;
}

/** What one of several approvers has said at a pause. */
export interface Vote {
  readonly choice: GateChoice;
  /** Name of the key. */
  readonly actor: string | null;
  readonly comment: string | null;
  /** ISO 8601. */
  readonly at: string;
}

/** A pause of a run: what waits for a human's decision. */
export interface RunPause {
  /** Counts the pauses of the run from 1; `gate` in events. */
  readonly number: number;
  readonly nextNodes: readonly string[];
  /** Revision of its RunPaused event. */
  readonly seq: number;
  readonly pausedAt: string;
  /** The human's decision, between its record and the run's resumption. */
  readonly decision: GateAction | null;
  /** Votes of different approvers for one choice, fewer than the quorum. */
  readonly votes: readonly Vote[];
  /** Number of all votes cast, including those that no longer count. */
  readonly votesCast: number;
  /** The approvers since the deadline has passed; null: those that the graph names. */
  readonly escalatedTo: readonly string[] | null;
}

export interface KeyedDecision {
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string;
  readonly bodyHash: string;
  readonly action: GateAction;
  /** Whether it was a vote, which left the pause open. */
  readonly isVote: boolean;
}

type Limits = RunRequestedData['limits'];

/** Fields of the first event that a fork does not take over from its parent; the state holds them elsewhere, or not at all. */
type OfOneRun = 'runId' | 'graph' | 'state' | 'changes' | 'keyHash' | 'actor';

/**
 * What was asked for, as the run's first event has it; a fork takes all of it over from its parent. Fields that older
 * events lack are fields here too, so that neither the fold nor a fork compiles without one.
 */
export type RequestedRun = {
  readonly [Field in keyof Required<Omit<RunRequestedData, OfOneRun | 'limits'>>]: RunRequestedData[Field];
} & {
  readonly limits: { readonly [Limit in keyof Required<Limits>]: Limits[Limit] };
  /** Name of the key that asked for this run, of a fork too; null: the service had none. */
  readonly actor: string | null;
};

/** The run's status, with the data of that status. */
export type RunPhase =
  | { readonly status: 'pending' }
  /** `resumedBy`: the last decision that let the run go on; null before the first. */
  | { readonly status: 'running'; readonly resumedBy: GateAction | null }
  | { readonly status: 'paused'; readonly pause: RunPause }
  | { readonly status: 'completed'; readonly completedAt: string; readonly finalDraft: string | null }
  | { readonly status: 'failed'; readonly completedAt: string; readonly failure: RunFailedData };

export type RunStatus = RunPhase['status'];

/** The instance that runs it. */
export interface Ownership {
  readonly epoch: number;
  /** Instance that runs it now; null when anyone may claim it. */
  readonly owner: string | null;
  /**
   * How often since the last completed step the run was taken over from a dead owner: a high count is a run that kills
   * its owners. Takeovers while it only waits for an outage to end do not count.
   */
  readonly takeovers: number;
}

/**
 * What the council has worked out and used up. A fork goes on with all of it: fork-snapshot.ts writes and reads every
 * field, so one that is added here does not compile until forks carry it.
 */
export interface RunProgress {
  /** The topic the council works on, which a human may change. */
  readonly inputTopic: string;
  /** Node executions so far; the last step's number. */
  readonly steps: number;
  readonly iterationCount: number;
  /** How often each critic has scored. */
  readonly scores: Readonly<Record<string, number>>;
  /** Marks of the document pages that the run's tools have given out; null: there are more than are kept, so no mark can be checked. */
  readonly sources: readonly string[] | null;
  /** Pauses so far. */
  readonly pauses: number;
  /** Whether a human has approved the next frontier and none of its nodes has started. */
  readonly isApproved: boolean;
  readonly activeNode: string | null;
  readonly frontier: readonly FrontierNode[];
  readonly arrivals: readonly Arrival[];
  readonly ended: readonly Ended[];
  /** What a client is shown: the only branch, or while there are several that of the frontier's first node. */
  readonly shown: Branch;
}

/** Few fields and records of their own, so that the fold copies it by spreading: Node 20 is slow to spread objects of many fields. */
export interface RunState {
  readonly runId: string;
  readonly createdAt: string;
  readonly request: RequestedRun;
  /** Of the graph the run was requested with. */
  readonly plan: Plan;
  /** Its last event. */
  readonly head: StreamHead;
  readonly phase: RunPhase;
  readonly ownership: Ownership;
  readonly progress: RunProgress;
  /** Decisions that were sent with an Idempotency-Key, so that a repeated request is recognized; votes too. */
  readonly decisions: readonly KeyedDecision[];
  readonly effort: RunEffort;
}

/** The state with a part of its progress changed. */
export function withProgress(run: RunState, change: Partial<RunProgress>): RunState {
  return { ...run, progress: { ...run.progress, ...change } };
}

/** A run that is pending or running, with its owner; null: no instance runs it. */
export interface UnfinishedRun {
  readonly runId: string;
  readonly owner: string | null;
  /** Revision of its last event as a view has it. Absent: nothing is known. */
  readonly seq?: number;
}

export function isFinished(state: RunState): boolean {
  return state.phase.status === 'completed' || state.phase.status === 'failed';
}

/** Whether nothing happens to a run by itself. */
export function isAtRest(state: RunState): boolean {
  return isFinished(state) || (state.phase.status === 'paused' && state.ownership.owner === null);
}

/** The iteration count as clients see it: null before the first draft. */
export function iterationShown(state: RunState): number | null {
  const { iterationCount } = state.progress;
  return iterationCount === 0 ? null : iterationCount;
}

/** The run's current pause, decided or not; null when it is not paused. */
export function pauseOf({ phase }: RunState): RunPause | null {
  return phase.status === 'paused' ? phase.pause : null;
}

/** The run's current pause if it waits for a decision; otherwise null. */
export function openPauseOf(state: RunState): RunPause | null {
  const pause = pauseOf(state);
  return pause?.decision === null ? pause : null;
}

/** When the run ended, ISO 8601; null before. */
export function completedAtOf({ phase }: RunState): string | null {
  return phase.status === 'completed' || phase.status === 'failed' ? phase.completedAt : null;
}

/** The run's result; null when it has none or is not completed. */
export function finalDraftOf({ phase }: RunState): string | null {
  return phase.status === 'completed' ? phase.finalDraft : null;
}

/** Why the run failed; null when it has not. */
export function failureOf({ phase }: RunState): RunFailedData | null {
  return phase.status === 'failed' ? phase.failure : null;
}

/** What is left of an attempt's delay, in ms: a provider's Retry-After holds for the next owner of the run too. */
export function delayLeft({ startedAt, delayMs }: FrontierNode, at: string): number {
  const left = Date.parse(startedAt) + delayMs - Date.parse(at);
  return Math.min(delayMs, Math.max(0, left));
}

/**
 * Failed attempts of a step that count towards its maximum, after one more. An outage does not count, unless it directly
 * follows another: else a server that fails at every second call of an attempt would make it start over for ever.
 */
export function failuresWith({ failures, outage }: FrontierNode, isOutage: boolean): number {
  return isOutage && outage === null ? failures : failures + 1;
}

/** Whether a step is waiting for an outage to end at a given time: the outage's budget is not used up. */
export function isInOutage(state: RunState, at: string): boolean {
  return state.progress.frontier.some(
    ({ active, outage }) => active && outage !== null && Date.parse(at) < Date.parse(outage.since) + outage.budgetMs,
  );
}

export function isFrontierDone(state: RunState): boolean {
  return state.progress.frontier.every((each) => !each.active);
}

/** A node's label in one line. */
export function labelOf(graph: Graph, node: string): string {
  return labelInOneLine(graph.nodes.find((each) => each.id === node)?.label ?? node);
}
