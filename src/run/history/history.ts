/** The history of a run: its steps with their attempts, panels, pauses, owners and end. Browsers load this file, too. */
import type {
  CallUsage,
  GateAction,
  NodeFailedData,
  NodeOutput,
  PanelClosedData,
  RunFailedData,
  RunParent,
  ToolCalledData,
} from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';
import type { PanelAnswers } from '../panels/deliberation.js';

/** The event that records something. */
export interface EventRef {
  readonly seq: number;
  /** ISO 8601. */
  readonly at: string;
}

/** One attempt at a step. A null field has not happened. */
export interface Attempt {
  readonly attempt: number;
  readonly started: EventRef;
  /** Wait from its start to its call of the model, in milliseconds. */
  readonly delayMs: number;
  /** Longest wait for the model's server to return, or null if there is no outage. */
  readonly outageMs: number | null;
  readonly model: string;
  /** Tools it may use; a missing one reads `webSearch: unavailable`. */
  readonly tools: readonly string[];
  readonly inputHash: string;
  /** The members whose answers its prompt shows, as shown: the first is Response A. */
  readonly orderShown: readonly string[];
  readonly toolCalls: readonly (ToolCalledData & { readonly called: EventRef })[];
  /** What its ended calls cost: each one, or all together in a run without a budget. */
  readonly costs: readonly (EventRef & Partial<CallUsage>)[];
  readonly ended: Ended | null;
}

/**
 * How an attempt ended. `lost`: its instance stopped, and the next attempt's event shows that. `discarded`: the panel, rank
 * or jury closed first.
 */
export type Ended = EventRef &
  (
    | { readonly how: 'completed'; readonly durationMs: number }
    | { readonly how: 'failed'; readonly failure: AttemptFailure }
    | { readonly how: 'lost' | 'discarded' }
  );

export type AttemptFailure = Readonly<
  Pick<NodeFailedData, 'kind' | 'message' | 'retryable' | 'final' | 'fallbackTo' | 'outageMs'>
>;

/** An edge that led into a step. */
export interface Incoming {
  /** 0: the run's start. */
  readonly fromStep: number;
  /** Id of the edge, or null at the run's start or if the graph has no such edge. */
  readonly edge: string | null;
}

/** Where a step sent its branch: by its node's edges, or by a human's override at a pause. */
export interface RouteTaken extends EventRef {
  readonly next: readonly string[];
  readonly reason: string;
  readonly by: 'node' | 'human';
}

/** What a step has done so far. */
export interface Work {
  readonly attempts: readonly Attempt[];
  readonly output: (EventRef & { readonly value: NodeOutput }) | null;
}

/** The step of a member of a panel, rank or jury. */
export interface MemberStep extends Work {
  readonly step: number;
  readonly member: string;
  readonly label: string;
  /** What the parent of this fork has recorded of a member that had ended, or null if this run executes it. */
  readonly inherited: InheritedPart | null;
}

export interface InheritedPart {
  readonly model: string | null;
  /** Why it has failed, or null if it has answered. */
  readonly error: string | null;
  readonly orderShown: readonly string[];
}

/** The members' part of a panel, rank or jury. */
export interface PanelSteps {
  /** In the order of the node. */
  readonly members: readonly MemberStep[];
  /** When the quorum had answered, and until when the others may answer, ISO 8601; null before, or if there is no such time. */
  readonly quorum: (EventRef & { readonly until: string }) | null;
  readonly closed: PanelEnd | null;
}

export type PanelEnd = EventRef & Pick<PanelClosedData, 'answered' | 'failed' | 'discarded' | 'result'>;

/** One execution of a node. A panel, rank or jury is one, and its members have the attempts. */
export interface Step extends Work {
  readonly step: number;
  readonly node: string;
  /** Number of drafts before it. */
  readonly iteration: number;
  /** Whether the parent of this fork executed it: the parent's record holds its attempts. */
  readonly isInherited: boolean;
  /** Number of the pause before it, or null if there was none. */
  readonly pause: number | null;
  readonly incoming: readonly Incoming[];
  readonly routes: readonly RouteTaken[];
  /** Its members, or null if the node has none that answer in steps of their own. */
  readonly panel: PanelSteps | null;
  /** The panels whose answers its prompt shows, in the order of `orderShown`. */
  readonly panelsRead: readonly PanelAnswers[];
}

/** The decision that ended a pause. */
export interface Decision extends EventRef {
  readonly action: GateAction;
  readonly actor: string | null;
  readonly by: 'human' | 'deadline';
}

/** A pause for a decision. */
export interface RecordedPause {
  readonly number: number;
  readonly paused: EventRef;
  readonly nextNodes: readonly string[];
  readonly decision: Decision | null;
}

/** The time in which one instance owned the run. */
export interface Ownership {
  readonly claimed: EventRef;
  /** When it released the run. `lost`: `at` is the time of its last event, `seq` is the claim of the next owner. */
  readonly left: (EventRef & { readonly how: 'paused' | 'shutdown' | 'lost' | 'ended' }) | null;
}

/** The answers of a parent's panel that the branches of a fork hold at its start. */
export interface KeptAnswers extends Pick<PanelAnswers, 'node' | 'answers'> {
  /** Number of the panel: the step of its first member. */
  readonly panelStep: number;
}

/** How a run ended. */
export type RunEnd = EventRef &
  ({ readonly how: 'completed' } | { readonly how: 'failed'; readonly failure: RunFailedData });

export interface RunHistory {
  readonly plan: Plan;
  readonly requested: EventRef;
  /** When its work started, or null while it waits in the queue. */
  readonly started: EventRef | null;
  readonly parent: RunParent | null;
  /** Number of the parent's steps before the fork; own steps continue the count. */
  readonly stepsBefore: number;
  /** In the order of their first starts, known steps of the parent first. */
  readonly steps: readonly Step[];
  /** The answers of the parent's panels that this fork keeps. */
  readonly keptAnswers: readonly KeptAnswers[];
  readonly pauses: readonly RecordedPause[];
  readonly owners: readonly Ownership[];
  readonly end: RunEnd | null;
}

/** The attempts of a step, or of all its members. */
export function allAttempts({ attempts, panel }: Pick<Step, 'attempts' | 'panel'>): readonly Attempt[] {
  return panel === null ? attempts : panel.members.flatMap((member) => member.attempts);
}

/** The history up to and including an event. */
export function historyAt(history: RunHistory, seq: number): RunHistory {
  const isPast = (ref: EventRef): boolean => ref.seq <= seq;
  const pastOrNull = <T extends EventRef>(ref: T | null): T | null => (ref !== null && isPast(ref) ? ref : null);
  const attemptThen = (attempt: Attempt): Attempt => ({
    ...attempt,
    toolCalls: attempt.toolCalls.filter(({ called }) => isPast(called)),
    costs: attempt.costs.filter(isPast),
    ended: pastOrNull(attempt.ended),
  });
  const workThen = ({ attempts, output }: Work): Work => ({
    attempts: attempts.filter(({ started }) => isPast(started)).map(attemptThen),
    output: pastOrNull(output),
  });
  const panelThen = ({ members, quorum, closed }: PanelSteps): PanelSteps => ({
    members: members.map((member) => ({ ...member, ...workThen(member) })),
    quorum: pastOrNull(quorum),
    closed: pastOrNull(closed),
  });
  const stepThen = (step: Step): Step => ({
    ...step,
    ...workThen(step),
    routes: step.routes.filter(isPast),
    panel: step.panel === null ? null : panelThen(step.panel),
  });
  const { steps, pauses, owners } = history;
  return {
    ...history,
    started: pastOrNull(history.started),
    steps: steps.map(stepThen).filter((each) => allAttempts(each).length > 0 || each.step <= history.stepsBefore),
    pauses: pauses
      .filter(({ paused }) => isPast(paused))
      .map((each) => ({ ...each, decision: pastOrNull(each.decision) })),
    owners: owners.filter(({ claimed }) => isPast(claimed)).map((each) => ({ ...each, left: pastOrNull(each.left) })),
    end: pastOrNull(history.end),
  };
}
