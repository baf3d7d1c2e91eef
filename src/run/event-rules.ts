/** Which event may follow in which state of a run. The chart (machine.ts) is compiled from these rules. */
import type { NodeStartedData, RunCompletedData, RunFacts, RunPausedData } from '../generated/schemas.js';
import { isDecisionAllowed, isEscalationAllowed, isVoteAllowed } from './approvals.js';
import type { RunFactType } from './events.js';
import { isOutstanding } from './fork-snapshot.js';
import { branchAtBudget, branchAtEnd } from './frontier.js';
import type { RunState } from './state.js';
import { isFrontierDone } from './state.js';

/**
 * Where in the chart an event may occur. A paused run is `waiting` for a decision or `decided`; a rule for `paused` covers
 * both. Each node is `idle` or `active`.
 */
export type ChartPlace = 'pending' | 'running' | 'paused' | 'waiting' | 'decided' | 'idle' | 'active';

/** The state after an event, or null if it stays the same. */
export type Next = 'running' | 'paused' | 'decided' | 'completed' | 'failed' | 'idle' | 'active' | null;

/**
 * Where each event may occur, and the state after it: the whole chart except its nodes. Add a new event here, and its
 * further requirements to `GUARDS`.
 */
export const EVENTS: Readonly<Record<RunFactType, Readonly<Partial<Record<ChartPlace, Next>>>>> = {
  RunRequested: {},
  RunClaimed: { pending: null, running: null, decided: null },
  RunReleased: { pending: null, running: null, paused: null },
  RunStarted: { pending: 'running' },
  RunPaused: { running: 'paused' },
  VoteCast: { waiting: null },
  PauseEscalated: { waiting: null },
  GateDecided: { waiting: 'decided' },
  RunResumed: { decided: 'running' },
  RunCompleted: { running: 'completed' },
  RunFailed: { pending: 'failed', running: 'failed', paused: 'failed' },
  NodeStarted: { idle: 'active', active: 'active' },
  CallReserved: { active: null },
  ToolCalled: { active: null },
  NodeCompleted: { active: 'idle' },
  NodeFailed: { active: 'idle' },
};

/** Whether the run's state allows an event of a type with this data, recorded at this time. */
type Guard<T extends RunFactType> = (run: RunState, data: RunFacts[T], at: string) => boolean;

/** What an event requires of the run beyond the chart's state. Types that are not listed require nothing more. */
const GUARDS: { readonly [T in RunFactType]?: Guard<T> } = {
  NodeStarted: isAwaited,
  RunPaused: mayPause,
  VoteCast: isVoteAllowed,
  PauseEscalated: (run, data, at) => isEscalationAllowed(run, at, data),
  GateDecided: (run, data, at) => isDecisionAllowed(run, at, data),
  RunCompleted: isResult,
};

/** The types of events with a guard; a drawn chart marks them. */
export const GUARDED: ReadonlySet<string> = new Set(Object.keys(GUARDS));

/** The guard: whether the rest of the run's state allows an event that the chart's state allows. */
export function mayFollow<T extends RunFactType>(run: RunState, event: EventOf<T>): boolean {
  const guard: Guard<T> | undefined = GUARDS[event.type];
  return guard === undefined || guard(run, event.data, event.at);
}

/** An event of one of these types: the compiler relates its type to its data. */
type EventOf<Types extends RunFactType> = {
  readonly [T in Types]: { readonly type: T; readonly data: RunFacts[T]; readonly at: string };
}[Types];

/** Whether a start is expected: of a node with an arrival, or another attempt of an outstanding step. */
function isAwaited(run: RunState, { node, step }: NodeStartedData): boolean {
  const begun = run.progress.frontier.find((each) => each.step === step);
  if (begun !== undefined) return begun.node === node && isOutstanding(run, begun);
  return step === run.progress.steps + 1 && run.progress.arrivals.some((each) => each.node === node);
}

/** Whether no node is active. A pause for the budget also ends attempts that were cut off. */
function mayPause(run: RunState, { reason }: RunPausedData): boolean {
  return reason === 'budget' ? run.spending !== null : isFrontierDone(run);
}

/** Whether all branches have ended and their join is the recorded result; at the budget, whether it is the current draft. */
function isResult(run: RunState, { finalDraft, criticScore, endedBy }: RunCompletedData): boolean {
  if (endedBy === 'budget') {
    const { draft, score } = branchAtBudget(run);
    return run.spending !== null && draft !== null && finalDraft === draft && criticScore === score;
  }
  if (!isFrontierDone(run) || run.progress.arrivals.length > 0) return false;
  const { draft, score } = branchAtEnd(run);
  return finalDraft === draft && criticScore === score;
}
