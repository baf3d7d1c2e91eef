/** The history of a run: steps with their attempts, pauses with their decisions, owners; also up to an event. */
import type {
  CallUsage,
  GateAction,
  NodeOutput,
  NodeFailedData,
  RunFailedData,
  RunParent,
  ToolCalledData,
} from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';

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
  readonly toolCalls: readonly (ToolCalledData & { readonly called: EventRef })[];
  /** What its ended calls cost: each one, or all together in a run without a budget. */
  readonly costs: readonly (EventRef & Partial<CallUsage>)[];
  readonly ended: Ended | null;
}

/** How an attempt ended; `lost`: its instance stopped, and the next attempt's event shows that. */
export type Ended = EventRef &
  (
    | { readonly how: 'completed'; readonly durationMs: number }
    | { readonly how: 'failed'; readonly failure: AttemptFailure }
    | { readonly how: 'lost' }
  );

export type AttemptFailure = Readonly<
  Pick<NodeFailedData, 'kind' | 'message' | 'retryable' | 'fallbackTo' | 'outageMs'>
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

/** One execution of a node. */
export interface Step {
  readonly step: number;
  readonly node: string;
  /** Number of drafts before it. */
  readonly iteration: number;
  /** Whether the parent of this fork executed it: the parent's record holds its attempts. */
  readonly isInherited: boolean;
  /** Number of the pause before it, or null if there was none. */
  readonly pause: number | null;
  readonly incoming: readonly Incoming[];
  readonly attempts: readonly Attempt[];
  readonly output: (EventRef & { readonly value: NodeOutput }) | null;
  readonly routes: readonly RouteTaken[];
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
  readonly pauses: readonly RecordedPause[];
  readonly owners: readonly Ownership[];
  readonly end: RunEnd | null;
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
  const stepThen = (step: Step): Step => ({
    ...step,
    attempts: step.attempts.filter(({ started }) => isPast(started)).map(attemptThen),
    output: pastOrNull(step.output),
    routes: step.routes.filter(isPast),
  });
  const { steps, pauses, owners } = history;
  return {
    ...history,
    started: pastOrNull(history.started),
    steps: steps.map(stepThen).filter((each) => each.attempts.length > 0 || each.step <= history.stepsBefore),
    pauses: pauses
      .filter(({ paused }) => isPast(paused))
      .map((each) => ({ ...each, decision: pastOrNull(each.decision) })),
    owners: owners.filter(({ claimed }) => isPast(claimed)).map((each) => ({ ...each, left: pastOrNull(each.left) })),
    end: pastOrNull(history.end),
  };
}
