/** The state of a run, folded from its events: polls, channels, history, recovery and decisions all read this one. */
import type { ExecutionMode, GateAction, Graph, RunFailureKind, RunLimits, RunParent } from '../generated/schemas.js';
import type { Plan } from '../graph/plan.js';
import type { Branch } from './branch.js';

export type RunStatus = 'pending' | 'running' | 'paused' | 'completed' | 'failed';

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

/** An open pause: what waits for a human's decision. */
export interface Gate {
  readonly gate: number;
  readonly nextNodes: readonly string[];
  /** Revision of its RunPaused event. */
  readonly seq: number;
  readonly pausedAt: string;
  /** The human's decision, between its record and the run's resumption. */
  readonly decision: GateAction | null;
}

export interface KeyedDecision {
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string;
  readonly bodyHash: string;
  readonly action: GateAction;
}

export interface RunState {
  readonly runId: string;
  readonly status: RunStatus;
  readonly createdAt: string;
  readonly completedAt: string | null;
  /** Revision and hash of the last event. */
  readonly seq: number;
  readonly hash: string;
  readonly lastEventId: string;

  /** The topic of the start; history keeps it. */
  readonly requestedTopic: string;
  /** The topic the council works on, which a human may change. */
  readonly inputTopic: string;
  readonly godMode: boolean;
  readonly executionMode: ExecutionMode;
  readonly blueprintId: string | null;
  readonly blueprintName: string | null;
  readonly plan: Plan;
  readonly graphHash: string;
  readonly limits: RunLimits;
  readonly bodyHash: string;
  /** The event of another run that this one goes on from; null when it is no fork. */
  readonly parent: RunParent | null;

  readonly epoch: number;
  /** Instance that runs it now; null when anyone may claim it. */
  readonly owner: string | null;
  /**
   * How often since the last completed step the run was taken over from a dead owner: a high count is a run that kills
   * its owners. Takeovers while it only waits for an outage to end do not count.
   */
  readonly takeovers: number;

  /** Node executions so far; the last step's number. */
  readonly steps: number;
  readonly iterationCount: number;
  /** How often each critic has scored. */
  readonly scores: Readonly<Record<string, number>>;
  /** Marks of the document pages that the run's tools have given out; null: there are more than are kept, so no mark can be checked. */
  readonly sources: readonly string[] | null;
  readonly frontier: readonly FrontierNode[];
  readonly arrivals: readonly Arrival[];
  readonly ended: readonly Ended[];
  /** What a client is shown: the only branch, or while there are several that of the frontier's first node. */
  readonly shown: Branch;
  readonly activeNode: string | null;
  readonly gate: Gate | null;
  readonly gates: number;
  /** The last decision that let the run go on. */
  readonly resumedBy: GateAction | null;
  /** Whether a human has approved the next frontier and none of its nodes has started. */
  readonly isApproved: boolean;
  /** Decisions that were sent with an Idempotency-Key, so that a repeated request is recognized; at most one per gate. */
  readonly decisions: readonly KeyedDecision[];

  readonly finalDraft: string | null;
  readonly failure: { readonly kind: RunFailureKind; readonly error: string; readonly node: string | null } | null;
}

/** A run that is pending or running, with its owner; null: no instance runs it. */
export interface UnfinishedRun {
  readonly runId: string;
  readonly owner: string | null;
}

export function isFinished(state: RunState): boolean {
  return state.status === 'completed' || state.status === 'failed';
}

/** The iteration count as clients see it: null before the first draft (contract, section 2). */
export function iterationShown(state: RunState): number | null {
  return state.iterationCount === 0 ? null : state.iterationCount;
}

/** The pause that waits for a decision; null when none does. */
export function openGate(state: RunState): Gate | null {
  return state.status === 'paused' && state.gate?.decision === null ? state.gate : null;
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
  return state.frontier.some(
    ({ active, outage }) => active && outage !== null && Date.parse(at) < Date.parse(outage.since) + outage.budgetMs,
  );
}

export function isFrontierDone(state: RunState): boolean {
  return state.frontier.every((each) => !each.active);
}

export function labelOf(graph: Graph, node: string): string {
  return graph.nodes.find((each) => each.id === node)?.label ?? node;
}

/** A run state under construction. */
export type NextState = { -readonly [Field in keyof RunState]: RunState[Field] };

/** A copy of a state, field by field: Node 20 takes several times as long to spread an object of this size. */
export function copyOf(state: RunState): NextState {
  return {
    runId: state.runId,
    status: state.status,
    createdAt: state.createdAt,
    completedAt: state.completedAt,
    seq: state.seq,
    hash: state.hash,
    lastEventId: state.lastEventId,
    requestedTopic: state.requestedTopic,
    inputTopic: state.inputTopic,
    godMode: state.godMode,
    executionMode: state.executionMode,
    blueprintId: state.blueprintId,
    blueprintName: state.blueprintName,
    plan: state.plan,
    graphHash: state.graphHash,
    limits: state.limits,
    bodyHash: state.bodyHash,
    parent: state.parent,
    epoch: state.epoch,
    owner: state.owner,
    takeovers: state.takeovers,
    steps: state.steps,
    iterationCount: state.iterationCount,
    scores: state.scores,
    sources: state.sources,
    frontier: state.frontier,
    arrivals: state.arrivals,
    ended: state.ended,
    shown: state.shown,
    activeNode: state.activeNode,
    gate: state.gate,
    gates: state.gates,
    resumedBy: state.resumedBy,
    isApproved: state.isApproved,
    decisions: state.decisions,
    finalDraft: state.finalDraft,
    failure: state.failure,
  };
}
