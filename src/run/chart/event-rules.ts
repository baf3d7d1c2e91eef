/** Which event may follow in which state of a run. The chart (machine.ts) is compiled from these rules. */
import { canonical } from '../../eventsourcing/canonical-json.js';
import type {
  NodeCompletedData,
  NodeStartedData,
  PanelClosedData,
  QuorumReachedData,
  RunCompletedData,
  RunFacts,
  RunPausedData,
} from '../../generated/schemas.js';
import { isDecisionAllowed, isEscalationAllowed, isVoteAllowed } from '../pauses/approvals.js';
import { mayEnd, mayStart } from '../children/children.js';
import { hasMembers, isGraceOver, isOutputOf, membersOf, openPanel, outcomeOf, progressOf } from '../panels/panels.js';
import { isOrderOf } from '../panels/answers-shown.js';
import type { RunFactType } from '../events.js';
import { isOutstanding } from '../fork-snapshot.js';
import { branchAtBudget, branchAtEnd, branchInto } from '../frontier/frontier.js';
import type { RunState } from '../state.js';
import { isFrontierDone } from '../state.js';

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
  ChildStarted: { active: null },
  ChildEnded: { active: null },
  NodeCompleted: { active: 'idle' },
  NodeFailed: { active: 'idle' },
  // A run that continues after a pause or as a fork may close a panel before it starts any member again.
  QuorumReached: { idle: null, active: null },
  PanelClosed: { idle: null, active: 'idle' },
};

/** Where a member's events may occur, in place of `EVENTS`: its node stays active until its panel closes. */
export const MEMBER_EVENTS: Readonly<Partial<Record<RunFactType, Readonly<Partial<Record<ChartPlace, Next>>>>>> = {
  NodeCompleted: { active: null },
  NodeFailed: { active: null },
};

/** Whether the run's state allows an event of a type with this data, recorded at this time. */
type Guard<T extends RunFactType> = (run: RunState, data: RunFacts[T], at: string) => boolean;

/** What an event requires of the run beyond the chart's state. Types that are not listed require nothing more. */
const GUARDS: { readonly [T in RunFactType]?: Guard<T> } = {
  NodeStarted: isAwaited,
  ChildStarted: mayStart,
  ChildEnded: mayEnd,
  NodeCompleted: mayComplete,
  NodeFailed: (run, data) => isOwnStep(run, data),
  QuorumReached: isQuorum,
  PanelClosed: isClosing,
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
function isAwaited(run: RunState, data: NodeStartedData): boolean {
  const { node, step, member = null, order_shown: order = [] } = data;
  const begun = run.progress.frontier.find((each) => each.step === step);
  if (begun === undefined) return isFirstAwaited(run, data);
  const isSame = begun.node === node && isOwnStep(run, data) && isOutstanding(run, begun);
  return isSame && isOrderOf(run.plan, { ...begun, member }, order);
}

/** Whether a node is expected to start; one with members starts with the first of them. */
function isFirstAwaited(run: RunState, data: NodeStartedData): boolean {
  const { plan, progress } = run;
  const { node, step, member, order_shown: order = [] } = data;
  const arrived = progress.arrivals.filter((each) => each.node === node);
  if (step !== progress.steps + 1 || arrived.length === 0) return false;
  if (!hasMembers(plan.node(node))) {
    if (member !== undefined || data.panelStep !== undefined) return false;
    if (arrived.every(({ branch }) => branch.deliberation === null)) return order.length === 0;
    return isOrderOf(plan, { node, branch: branchInto(run, node, step), member: null }, order);
  }
  const branch = branchInto(run, node, step);
  const [first] = membersOf(plan, { node, branch });
  if (first === undefined || first.id !== member || data.panelStep !== step) return false;
  return isOrderOf(plan, { node, branch, member }, order);
}

/** Whether an event of a step names its member and panel as the step's start did. */
function isOwnStep(
  { progress }: RunState,
  { step, member, panelStep }: { readonly step: number; readonly member?: string; readonly panelStep?: number },
): boolean {
  const seat = progress.frontier.find((each) => each.step === step)?.seat ?? null;
  return seat?.member === member && seat?.panelStep === panelStep;
}

/** Whether a member answers in time, and as its node's members do. */
function mayComplete(run: RunState, data: NodeCompletedData, at: string): boolean {
  const begun = run.progress.frontier.find((each) => each.step === data.step);
  if (begun === undefined) return false;
  const { seat, active } = begun;
  if (seat === null) return data.member === undefined && data.panelStep === undefined && data.route !== undefined;
  if (seat.member !== data.member || seat.panelStep !== data.panelStep) return false;
  return active && !isGraceOver(seat, at) && isOutputOf(run.plan.node(data.node).role, data.output);
}

function isQuorum(run: RunState, { node, panelStep, until }: QuorumReachedData, at: string): boolean {
  const panel = openPanel(run, panelStep);
  if (panel === null || panel.node !== node) return false;
  const progress = progressOf(run, panel, at);
  return progress.kind === 'quorum' && progress.until === until;
}

/** Whether a panel closes now, with what follows from its members' answers. */
function isClosing(run: RunState, { route: _, ...data }: PanelClosedData, at: string): boolean {
  const panel = openPanel(run, data.panelStep);
  if (panel === null || progressOf(run, panel, at).kind !== 'closes') return false;
  const { answered, failed, discarded, result } = outcomeOf(run, panel);
  const { node, panelStep } = panel;
  return canonical(data) === canonical({ node, panelStep, answered, failed, discarded, result });
}

/** Whether no node is active. A pause for the budget also ends attempts that were cut off. */
function mayPause(run: RunState, { reason }: RunPausedData): boolean {
  return reason === 'budget' ? run.spending !== null : isFrontierDone(run);
}

/** Whether all branches have ended and their join is the recorded result; at the budget, whether it is the current draft. */
function isResult(run: RunState, { finalDraft, finalOutput, criticScore, endedBy }: RunCompletedData): boolean {
  if (endedBy === 'budget') {
    const { draft, score } = branchAtBudget(run);
    return run.spending !== null && draft !== null && finalDraft === draft && criticScore === score;
  }
  if (!isFrontierDone(run) || run.progress.arrivals.length > 0) return false;
  const { draft, score, output } = branchAtEnd(run);
  const isOutput = finalOutput === undefined ? output === undefined : canonical(finalOutput) === output;
  return isOutput && finalDraft === draft && criticScore === score;
}
