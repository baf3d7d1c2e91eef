/** The state of a run, folded from its events. Polls, channels, history, recovery and decisions all read it. */
import { labelInOneLine } from '../graph/label.js';
import type {
  ChildEndedData,
  ChildStartedData,
  GateAction,
  GateChoice,
  Graph,
  NodeOutput,
  ParentRun,
  RunCompletedData,
  RunFailedData,
  RunRequestedData,
} from '../generated/schemas.js';
import type { StreamHead } from '../eventsourcing/aggregate.js';
import type { Plan } from '../graph/plan.js';
import type { Branch } from './frontier/branch.js';
import type { RunSpending } from './budget/spending.js';
import type { RunEffort } from './effort.js';

/** A node of the frontier: running, or done and waiting for the others. */
export interface FrontierNode {
  readonly node: string;
  readonly step: number;
  readonly attempt: number;
  /**
   * Full name of the model that the attempt asks, after a failure of the model that the next one asks, or null before the
   * first attempt of a forked step.
   */
  readonly model: string | null;
  /** Failed attempts of this step; attempts lost with their instance or to an outage do not count. */
  readonly failures: number;
  /**
   * The outage of its model's server whose end its attempts wait for, or null if its last failure was of another kind.
   */
  readonly outage: StepOutage | null;
  /** When the attempt started, ISO 8601. */
  readonly startedAt: string;
  /** Revision of the event that started the attempt, or 0 before the first attempt of a forked step. */
  readonly startedSeq: number;
  /** How long the attempt waits after its start before it calls its model, in milliseconds. */
  readonly delayMs: number;
  /** Its tools as recorded at the attempt's start: those it may call, and those that are unavailable. */
  readonly tools: readonly string[];
  readonly active: boolean;
  /** The branch that the node works on, with its output after it is done. */
  readonly branch: Branch;
  /** The members whose answers its prompt shows, as shown: the first is Response A. */
  readonly orderShown: readonly string[];
  /** Its part in a panel, rank or jury under way, or null if it is the step of a node. */
  readonly seat: Seat | null;
  /** The runs that a council has started, in the order of their starts; empty for other nodes. */
  readonly children: readonly Child[];
}

/** A member's part in a panel, rank or jury. */
export interface Seat {
  readonly member: string;
  /** Number of the panel: the step of its first member. */
  readonly panelStep: number;
  /** When its answer is discarded, ISO 8601, or null before the quorum has answered. */
  readonly until: string | null;
  /** Its answer, or null before. */
  readonly output: NodeOutput | null;
  /** Why all its attempts have failed, or null if they have not. */
  readonly error: string | null;
}

/** A run that a council has started. */
export interface Child extends Pick<ChildStartedData, 'index' | 'title' | 'items'> {
  readonly runId: string;
  /** Its end, or null before. */
  readonly end: Pick<ChildEndedData, 'status' | 'output' | 'error' | 'isOverBudget' | 'isCancelled'> | null;
}

/** An outage of a model's server that a step has found. */
export interface StepOutage {
  /** When it was recorded, ISO 8601. */
  readonly since: string;
  /** How long the step waits for its end, in milliseconds. */
  readonly budgetMs: number;
}

/** A branch that has reached a node which has not started. */
export interface Arrival {
  readonly node: string;
  /** Step it comes from, 0 for the start. */
  readonly from: number;
  /** Index of its edge, -1 at the start; at most one arrival per edge. Joins and frontiers keep this order. */
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

/** The vote of one of several approvers at a pause. */
export interface Vote {
  readonly choice: GateChoice;
  /** Name of the key. */
  readonly actor: string | null;
  readonly comment: string | null;
  /** ISO 8601. */
  readonly at: string;
}

/** A pause of a run, which waits for a human's decision. */
export interface RunPause {
  /** Number within the run, from 1; `gate` in events. */
  readonly number: number;
  readonly nextNodes: readonly string[];
  /** Revision of its RunPaused event. */
  readonly seq: number;
  /** `budget`: the next calls would pass the run's budget. Null: a pause of God Mode. */
  readonly reason: 'budget' | null;
  readonly pausedAt: string;
  /** The decision, until the run resumes; null before. */
  readonly decision: GateAction | null;
  /** Votes of different approvers for the same choice, fewer than the quorum. */
  readonly votes: readonly Vote[];
  /** Number of all votes cast, including those that no longer count. */
  readonly votesCast: number;
  /** The approvers after an escalation, or null before. */
  readonly escalatedTo: readonly string[] | null;
}

export interface KeyedDecision {
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string;
  readonly bodyHash: string;
  readonly action: GateAction;
  /** Whether it was a vote: the pause stayed open. */
  readonly isVote: boolean;
}

type Limits = RunRequestedData['limits'];

/** Fields of the first event that a fork does not copy from its parent. */
type OfOneRun = 'parentRun' | 'runId' | 'graph' | 'state' | 'changes' | 'keyHash' | 'actor' | 'pricesHash' | 'budget';

/**
 * The request, as recorded in the first event; a fork copies all of it from its parent. Fields that older events lack are
 * required here, so that neither the fold nor a fork compiles without one.
 */
export type RequestInState = {
  readonly [Field in keyof Required<Omit<RunRequestedData, OfOneRun | 'limits'>>]: RunRequestedData[Field];
} & {
  readonly limits: { readonly [Limit in keyof Required<Limits>]: Limits[Limit] };
  /** Name of the key that started this run, also of a fork, or null if the service had no keys. */
  readonly actor: string | null;
};

/** The run's status, with the data of that status. */
export type RunPhase =
  | { readonly status: 'pending' }
  /** `resumedBy`: the last decision that resumed the run, or null before the first. */
  | { readonly status: 'running'; readonly resumedBy: GateAction | null }
  | { readonly status: 'paused'; readonly pause: RunPause }
  | ({ readonly status: 'completed'; readonly completedAt: string } & RunEnd)
  | { readonly status: 'failed'; readonly completedAt: string; readonly failure: RunFailedData };

/** What a run has completed with. */
interface RunEnd {
  readonly finalDraft: string | null;
  /** The final output, which may be null; undefined if the run gave none. */
  readonly finalOutput: JsonOutput | undefined;
}

/** A JSON value that is valid by the schema of a run's output. */
export type JsonOutput = Exclude<RunCompletedData['finalOutput'], undefined>;

export type RunStatus = RunPhase['status'];

/** The status that an event of a type gives its run, or null if it leaves the status as it is. */
export function statusAfter(type: string): RunStatus | null {
  switch (type) {
    case 'RunRequested':
      return 'pending';
    case 'RunStarted':
    case 'RunResumed':
      return 'running';
    case 'RunPaused':
      return 'paused';
    case 'RunCompleted':
      return 'completed';
    case 'RunFailed':
      return 'failed';
    default:
      return null;
  }
}

/** The instance that runs it. */
export interface Ownership {
  readonly epoch: number;
  /** Instance that runs it, or null if any instance may claim it. */
  readonly owner: string | null;
  /**
   * Takeovers from a dead owner since the last completed step: a high count suggests that the run crashes its owners.
   * Takeovers while it waits for an outage to end do not count.
   */
  readonly takeovers: number;
}

/**
 * The progress of the council. A fork continues with all of it. For a new field the compiler names `newProgress` and
 * `restoreSnapshot`. Also add it to schemas/run-fold.json, as an optional property: then the compiler names `forkSnapshot`.
 * Without it, each fork begins with the default of `restoreSnapshot`.
 */
export interface RunProgress {
  /** The topic, with a human's changes. */
  readonly inputTopic: string;
  /** Number of the last step. */
  readonly steps: number;
  /** Node executions so far. A panel, rank or jury is one, and each of its members is a step. */
  readonly executions: number;
  /** Panels that have closed so far. */
  readonly closedPanels: number;
  /** Steps of members that failed or were discarded when their panel closed. */
  readonly unanswered: number;
  readonly iterationCount: number;
  /** How often each critic has scored. */
  readonly scores: Readonly<Record<string, number>>;
  /** The scores of each jury, by execution; null for a member without a score. */
  readonly juries: Readonly<Record<string, readonly (readonly (number | null)[])[]>>;
  /** Marks of the document pages that the run's tools have returned, or null if there are too many to keep and check. */
  readonly sources: readonly string[] | null;
  /** Pauses so far. */
  readonly pauses: number;
  /** Whether a human has approved the next frontier and none of its nodes has started. */
  readonly isApproved: boolean;
  readonly activeNode: string | null;
  readonly frontier: readonly FrontierNode[];
  readonly arrivals: readonly Arrival[];
  readonly ended: readonly Ended[];
  /** The branch that clients see: the only one, or that of the frontier's first node. */
  readonly shown: Branch;
}

export interface RunState {
  readonly runId: string;
  readonly createdAt: string;
  /** The run that has started this one for a council of its graph, or null. */
  readonly parentRun: ParentRun | null;
  readonly request: RequestInState;
  /** Index of the run's graph. */
  readonly plan: Plan;
  /** The run's last event. */
  readonly head: StreamHead;
  readonly phase: RunPhase;
  readonly ownership: Ownership;
  readonly progress: RunProgress;
  /** Decisions and votes that were sent with an Idempotency-Key, to recognize a repeated request. */
  readonly decisions: readonly KeyedDecision[];
  readonly effort: RunEffort;
  /** What is spent of its budget, or null if it has none. */
  readonly spending: RunSpending | null;
}

/** The state with changed progress. */
export function withProgress(run: RunState, change: Partial<RunProgress>): RunState {
  return { ...run, progress: { ...run.progress, ...change } };
}

/** A pending or running run, with its owner, or null if no instance runs it. */
export interface UnfinishedRun {
  readonly runId: string;
  readonly owner: string | null;
  /** Revision of its last event in a view; absent if unknown. */
  readonly seq?: number;
}

export function isFinished(state: RunState): boolean {
  return state.phase.status === 'completed' || state.phase.status === 'failed';
}

/** Whether a run does not change without a decision: it has ended, or is paused and has no owner. */
export function isAtRest(state: RunState): boolean {
  return isFinished(state) || (state.phase.status === 'paused' && state.ownership.owner === null);
}

/** The iteration count as clients see it, or null before the first draft. */
export function iterationShown(state: RunState): number | null {
  const { iterationCount } = state.progress;
  return iterationCount === 0 ? null : iterationCount;
}

/** The run's current pause, decided or not, or null if it is not paused. */
export function pauseOf({ phase }: RunState): RunPause | null {
  return phase.status === 'paused' ? phase.pause : null;
}

/** The run's undecided pause, or null if it has none. */
export function openPauseOf(state: RunState): RunPause | null {
  const pause = pauseOf(state);
  return pause?.decision === null ? pause : null;
}

/** Whether humans decide on the run: it was started in God Mode, or has paused for its budget. */
export function hasSession({ request, spending }: RunState): boolean {
  return request.godMode || spending?.hasPaused === true;
}

/** When the run ended, ISO 8601, or null before. */
export function completedAtOf({ phase }: RunState): string | null {
  return phase.status === 'completed' || phase.status === 'failed' ? phase.completedAt : null;
}

/** The run's result, or null if it has none or is not completed. */
export function finalDraftOf({ phase }: RunState): string | null {
  return phase.status === 'completed' ? phase.finalDraft : null;
}

/** The final output of the run, which may be null; undefined if it has none or is not completed. */
export function finalOutputOf({ phase }: RunState): JsonOutput | undefined {
  return phase.status === 'completed' ? phase.finalOutput : undefined;
}

/** Why the run failed, or null if it has not failed. */
export function failureOf({ phase }: RunState): RunFailedData | null {
  return phase.status === 'failed' ? phase.failure : null;
}

/** The rest of an attempt's delay, in milliseconds: a provider's Retry-After also binds the next owner of the run. */
export function delayLeft({ startedAt, delayMs }: FrontierNode, at: string): number {
  const left = Date.parse(startedAt) + delayMs - Date.parse(at);
  return Math.min(delayMs, Math.max(0, left));
}

/**
 * Failures of a step that count towards its maximum, after one more. An outage does not count, unless it directly follows
 * another: otherwise a server that fails each second call of an attempt would repeat the attempt for ever.
 */
export function failuresWith({ failures, outage }: FrontierNode, isOutage: boolean): number {
  return isOutage && outage === null ? failures : failures + 1;
}

/** Whether at a given time a step still waits for an outage to end, within the outage's budget. */
export function isInOutage(state: RunState, at: string): boolean {
  return state.progress.frontier.some(
    ({ active, outage }) => active && outage !== null && Date.parse(at) < Date.parse(outage.since) + outage.budgetMs,
  );
}

/** Whether every node of the frontier has ended. */
export function isFrontierDone(state: RunState): boolean {
  return state.progress.frontier.every((each) => !each.active && each.seat === null);
}

/** The attempt of a report, or undefined if it is no longer in flight: late reports have no effect. */
export function attemptInFlight(
  run: RunState,
  report: { readonly step: number; readonly attempt: number },
): FrontierNode | undefined {
  return run.progress.frontier.find(
    (each) => each.active && each.step === report.step && each.attempt === report.attempt,
  );
}

/** The member and panel of a step, as its events name them. */
export function memberOf({ seat }: Pick<FrontierNode, 'seat'>): { member?: string; panelStep?: number } {
  return seat === null ? {} : { member: seat.member, panelStep: seat.panelStep };
}

/** A node's label in one line. */
export function labelOf(graph: Graph, node: string): string {
  return labelInOneLine(graph.nodes.find((each) => each.id === node)?.label ?? node);
}
