/** What happened in a run: steps with their attempts, pauses with their decisions, owners; and as it was at a moment. */
import type {
  GateAction,
  NodeOutput,
  NodeUsage,
  RunFailedData,
  RunParent,
  ToolCalledData,
} from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';

/** The event that something is told by. */
export interface Mark {
  readonly seq: number;
  /** ISO 8601. */
  readonly at: string;
}

/** One try at a step. What is null has not happened. */
export interface Attempt {
  readonly attempt: number;
  readonly started: Mark;
  /** How long it waits from its start on before it calls the model. */
  readonly delayMs: number;
  /** Whether it waits for an outage of the model's server to end, and how long at most. */
  readonly outageMs: number | null;
  readonly model: string;
  /** Those it may use; what is not there reads `webSearch: unavailable`. */
  readonly tools: readonly string[];
  readonly inputHash: string;
  readonly toolCalls: readonly (ToolCalledData & { readonly called: Mark })[];
  readonly ended: Ended | null;
}

/** How an attempt ended; `lost`: with the instance that ran it, told when another began anew. */
export type Ended = Mark &
  (
    | { readonly how: 'completed'; readonly usage: NodeUsage; readonly durationMs: number }
    | { readonly how: 'failed'; readonly failure: AttemptFailure; readonly usage: NodeUsage | null }
    | { readonly how: 'lost' }
  );

export interface AttemptFailure {
  readonly kind: string;
  readonly message: string;
  readonly retryable: boolean;
}

/** A way into a step: from another, along an edge. */
export interface Incoming {
  /** 0: the run's start. */
  readonly fromStep: number;
  /** Null: it is the run's start, or the graph has no such edge. */
  readonly edge: string | null;
}

/** Where a step sent its branch: as its node's edges say, or as a human corrected it at a pause. */
export interface RouteTaken extends Mark {
  readonly next: readonly string[];
  readonly reason: string;
  readonly by: 'node' | 'human';
}

/** Everything that is known of one execution of a node, at the head of the record. */
export interface Step {
  readonly step: number;
  readonly node: string;
  /** Drafts written before it. */
  readonly iteration: number;
  /** Whether the run that this one was forked from has carried it out: its attempts are told there. */
  readonly isInherited: boolean;
  /** The pause it was let through at; null: none. */
  readonly pause: number | null;
  readonly incoming: readonly Incoming[];
  readonly attempts: readonly Attempt[];
  readonly output: (Mark & { readonly value: NodeOutput }) | null;
  readonly routes: readonly RouteTaken[];
}

/** What ended a pause. */
export interface Decision extends Mark {
  readonly action: GateAction;
  readonly actor: string | null;
  readonly by: 'human' | 'deadline';
}

/** A pause for a human. */
export interface PauseTaken {
  readonly number: number;
  readonly paused: Mark;
  readonly nextNodes: readonly string[];
  readonly decision: Decision | null;
}

/** An instance that ran the run for a while. */
export interface Ownership {
  readonly claimed: Mark;
  /** When it let go of it; `lost`: when the run was last heard of before another took over, told by that other's event. */
  readonly left: (Mark & { readonly how: 'paused' | 'shutdown' | 'lost' | 'ended' }) | null;
}

/** How a run ended. */
export type RunEnd = Mark &
  ({ readonly how: 'completed' } | { readonly how: 'failed'; readonly failure: RunFailedData });

/** All that has happened in a run so far. */
export interface Course {
  readonly plan: Plan;
  readonly requested: Mark;
  /** When its work began; null: it waits for room. */
  readonly begun: Mark | null;
  readonly parent: RunParent | null;
  /** Steps of the run that this one was forked from; its own are numbered on from there. */
  readonly stepsBefore: number;
  /** In the order of their first starts, those of before first, as far as they are known. */
  readonly steps: readonly Step[];
  readonly pauses: readonly PauseTaken[];
  readonly owners: readonly Ownership[];
  readonly end: RunEnd | null;
}

/** The course as it was after an event: what came later has not happened. A step that was over by then is the same object. */
export function courseAt(course: Course, seq: number): Course {
  const had = <T extends Mark>(mark: T | null): T | null => (mark !== null && mark.seq <= seq ? mark : null);
  const isPast = (mark: Mark): boolean => mark.seq <= seq;
  const attemptThen = (attempt: Attempt): Attempt => ({
    ...attempt,
    toolCalls: attempt.toolCalls.filter(({ called }) => isPast(called)),
    ended: had(attempt.ended),
  });
  const stepThen = (step: Step): Step =>
    lastMarks(step).every(isPast)
      ? step
      : {
          ...step,
          attempts: step.attempts.filter(({ started }) => isPast(started)).map(attemptThen),
          output: had(step.output),
          routes: step.routes.filter(isPast),
        };
  const { steps, pauses, owners } = course;
  return {
    ...course,
    begun: had(course.begun),
    steps: steps.map(stepThen).filter((each) => each.attempts.length > 0 || each.step <= course.stepsBefore),
    pauses: pauses.filter(({ paused }) => isPast(paused)).map((each) => ({ ...each, decision: had(each.decision) })),
    owners: owners.filter(({ claimed }) => isPast(claimed)).map((each) => ({ ...each, left: had(each.left) })),
    end: had(course.end),
  };
}

/** What was told last of a step, in each of its parts. */
function lastMarks({ attempts, output, routes }: Step): readonly Mark[] {
  const { started, ended, toolCalls = [] } = attempts.at(-1) ?? {};
  const marks = [started, ended, toolCalls.at(-1)?.called, output, routes.at(-1)];
  return marks.filter((mark) => mark !== null && mark !== undefined);
}
