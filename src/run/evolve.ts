/** The fold: a run's state after an event. Total and pure. The chart checks which event may follow. */
import { withSources } from '../council/citations.js';
import { headOf } from '../eventsourcing/aggregate.js';
import type { Plan } from '../graph/plan.js';
import { planOf } from '../graph/plan.js';
import type { GateChoice, GateDecidedData, StateOverride } from '../generated/schemas.js';
import { withVote } from './pauses/approvals.js';
import { EMPTY_BRANCH, humanSource } from './frontier/branch.js';
import { firstSpending, spendingAfter } from './budget/spending.js';
import { NO_EFFORT, effortAfter } from './effort.js';
import type { RunEvent } from './events.js';
import { branchAtBudget, branchAtEnd, branchInto, branchShown } from './frontier/frontier.js';
import { afterOutput } from './frontier/output.js';
import { overrideState } from './pauses/override.js';
import { memberAnswered, panelClosed, quorumReached, seatsOf } from './panels/panel-fold.js';
import { childEnded, childStarted } from './children/children.js';
import { restoreSnapshot } from './fork-snapshot.js';
import type { FrontierNode, KeyedDecision, Ownership, RunPause, RunProgress, RunState } from './state.js';
import { failuresWith, isInOutage, openPauseOf, pauseOf, withProgress } from './state.js';
import { followRoute } from './frontier/node-route.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/**
 * The state of a run after its first event: empty, or for a fork the state of its parent at the fork point.
 *
 * @param plan of its graph; computed if absent
 */
export function firstState(event: Of<'RunRequested'>, plan: Plan = planOf(event.data.graph)): RunState {
  const { runId, parentRun = null, state, inputTopic, godMode, executionMode, blueprintId, blueprintName } = event.data;
  const { material, documents, graph, graphHash, limits, budget, parent, earlierStarters } = event.data;
  const { bodyHash, actor = null } = event.data;
  return {
    runId,
    createdAt: event.at,
    parentRun,
    request: {
      inputTopic,
      material,
      documents,
      godMode,
      executionMode,
      blueprintId,
      blueprintName,
      graphHash,
      limits,
      parent,
      earlierStarters,
      bodyHash,
      actor,
    },
    plan,
    head: headOf(event),
    phase: { status: 'pending' },
    ownership: { epoch: 0, owner: null, takeovers: 0 },
    progress: state === null ? newProgress(inputTopic, graph.entry) : restoreSnapshot(state, event.at),
    decisions: [],
    effort: NO_EFFORT,
    spending: budget === undefined ? null : firstSpending(budget),
  };
}

function newProgress(inputTopic: string, entry: string): RunProgress {
  return {
    inputTopic,
    steps: 0,
    executions: 0,
    closedPanels: 0,
    unanswered: 0,
    iterationCount: 0,
    scores: {},
    juries: {},
    sources: [],
    pauses: 0,
    isApproved: false,
    activeNode: null,
    frontier: [],
    arrivals: [{ node: entry, from: 0, order: -1, branch: EMPTY_BRANCH }],
    ended: [],
    shown: EMPTY_BRANCH,
  };
}

/** The state after the next event of the run. */
export function evolve(state: RunState, event: RunEvent): RunState {
  const effort = effortAfter(state.effort, event, openPauseOf(state)?.pausedAt ?? null);
  const spending = state.spending && spendingAfter(state.spending, event);
  return { ...state, ...changesBy(state, event), head: headOf(event), effort, spending };
}

/** What an event changes, besides the head, the effort and the spending. */
function changesBy(state: RunState, event: RunEvent): Partial<RunState> {
  const { phase, ownership, progress } = state;
  switch (event.type) {
    case 'RunRequested':
      return firstState(event);
    case 'RunClaimed':
      return { ownership: ownershipAfter(state, event) };
    case 'RunReleased':
      return { ownership: { ...ownership, owner: null } };
    case 'RunStarted':
      return { phase: { status: 'running', resumedBy: null } };
    case 'RunResumed': {
      const resumedBy = phase.status === 'paused' ? phase.pause.decision : null;
      return { phase: { status: 'running', resumedBy }, progress: { ...progress, isApproved: true } };
    }
    case 'NodeStarted':
      return { progress: { ...progress, ...nodeStarted(state, event) } };
    case 'CallReserved':
      // It changes the spending only.
      return {};
    case 'ToolCalled': {
      const sources = withSources(progress.sources, event.data.hits);
      return { progress: { ...progress, sources } };
    }
    case 'ChildStarted':
      return { progress: { ...progress, frontier: childStarted(progress, event.data) } };
    case 'ChildEnded':
      return {
        ownership: { ...ownership, takeovers: 0 },
        progress: { ...progress, frontier: childEnded(progress, event.data) },
      };
    case 'NodeCompleted':
      return nodeCompleted(state, event);
    case 'NodeFailed':
      return { progress: { ...progress, ...nodeFailed(progress, event) } };
    case 'QuorumReached':
      return { progress: { ...progress, ...quorumReached(progress, event.data) } };
    case 'PanelClosed':
      return panelClosed(state, event.data);
    case 'RunPaused':
      return paused(state, event);
    case 'VoteCast':
      return voteCast(state, event);
    case 'PauseEscalated':
      return withPause(state, () => ({ votes: [], escalatedTo: event.data.to }));
    case 'GateDecided':
      return pauseDecided(state, event);
    case 'RunCompleted':
      return completed(state, event);
    case 'RunFailed': {
      // The usage is in the state's effort.
      const { usage: _, ...failure } = event.data;
      const failed = { status: 'failed', completedAt: event.at, failure } as const;
      return { phase: failed, ownership: { ...ownership, owner: null } };
    }
    default:
      return unknownEvent(event);
  }
}

function nodeFailed(progress: RunProgress, { at: since, data }: Of<'NodeFailed'>): Partial<RunProgress> {
  const { step, kind, message, outageMs, fallbackTo, final: isFinal = false } = data;
  const outage = outageMs === undefined ? null : { since, budgetMs: outageMs };
  const fail = (each: FrontierNode): FrontierNode => {
    if (kind === 'budget_exceeded') return { ...each, active: false };
    const failures = fallbackTo === undefined ? failuresWith(each, outage !== null) : 0;
    const seat = each.seat !== null && isFinal ? { ...each.seat, error: message } : each.seat;
    return { ...each, active: false, model: fallbackTo ?? each.model, failures, outage, seat };
  };
  return { frontier: changeStep(progress, step, fail) };
}

function ownershipAfter(state: RunState, { at, data }: Of<'RunClaimed'>): Ownership {
  const takesOver = data.reason === 'recovered' && !isInOutage(state, at);
  const { takeovers } = state.ownership;
  return { epoch: data.epoch, owner: data.instanceId, takeovers: takeovers + (takesOver ? 1 : 0) };
}

const NO_CHILDREN: FrontierNode['children'] = [];

function nodeStarted(state: RunState, { at: startedAt, seq, data }: Of<'NodeStarted'>): Partial<RunProgress> {
  const { progress } = state;
  const { node, step, attempt, delayMs, tools, model, order_shown: orderShown = [] } = data;
  const started = { attempt, model, startedAt, startedSeq: seq, delayMs, tools, active: true, orderShown };
  if (progress.frontier.some((each) => each.step === step)) {
    const frontier = changeStep(progress, step, (each) => ({ ...each, ...started }));
    // A member's further attempt changes nothing for those who follow the node.
    const activeNode = data.member === undefined ? node : progress.activeNode;
    return { frontier, isApproved: false, activeNode };
  }
  const branch = branchInto(state, node, step);
  const stillRunning = progress.frontier.filter((each) => each.active || each.seat !== null);
  const [first] = stillRunning;
  const begun: FrontierNode = {
    node,
    step,
    failures: 0,
    outage: null,
    branch,
    seat: null,
    children: NO_CHILDREN,
    ...started,
  };
  const entered = data.member === undefined ? [begun] : seatsOf(state, begun);
  return {
    steps: Math.max(progress.steps, step + entered.length - 1),
    executions: progress.executions + 1,
    isApproved: false,
    activeNode: node,
    frontier: [...stillRunning, ...entered],
    arrivals: progress.arrivals.filter((each) => each.node !== node),
    shown: first === undefined ? branch : first.branch,
  };
}

function nodeCompleted(state: RunState, { data }: Of<'NodeCompleted'>): Partial<RunState> {
  const { progress, ownership } = state;
  const { step, node, output, route } = data;
  if (data.member !== undefined) {
    return { ownership: { ...ownership, takeovers: 0 }, progress: { ...progress, ...memberAnswered(progress, data) } };
  }
  const { branch, scores, iterationCount } = afterOutput(state, step, output);
  const { arrivals, ended } = followRoute(state, { node, step, branch, next: route?.next ?? [] });
  const result = { active: false, branch };
  const frontier = changeStep(progress, step, (each) => ({ ...each, ...result }));
  const shown = progress.frontier[0]?.step === step ? branch : progress.shown;
  const changes = { scores, iterationCount, arrivals, ended, frontier, shown };
  return {
    ownership: ownership.takeovers === 0 ? ownership : { ...ownership, takeovers: 0 },
    progress: { ...progress, ...changes },
  };
}

function paused(state: RunState, event: Of<'RunPaused'>): RunState {
  const { gate, nextNodes, reason = null } = event.data;
  const [activeNode = null] = nextNodes;
  // At a pause for the budget, attempts that were cut off wait to be repeated.
  const waiting = withProgress(state, {
    frontier: state.progress.frontier.map((each) => ({ ...each, active: false })),
  });
  return {
    ...state,
    phase: {
      status: 'paused',
      pause: { number: gate, nextNodes, seq: event.seq, reason, pausedAt: event.at, ...UNDECIDED_PAUSE },
    },
    progress: { ...waiting.progress, activeNode, pauses: gate, shown: branchShown(waiting, nextNodes) },
  };
}

const UNDECIDED_PAUSE = { decision: null, votes: [], votesCast: 0, escalatedTo: null };

function voteCast(state: RunState, { at, data }: Of<'VoteCast'>): RunState {
  const { actor, comment, keyHash, bodyHash, action } = data;
  const keyed = { keyHash, bodyHash, action, isVote: true };
  const decisions = withKeyed(state.decisions, keyed);
  const choice: GateChoice =
    data.action === 'modify'
      ? { action: data.action, modifiedState: data.modifiedState }
      : { action: data.action, modifiedState: data.modifiedState };
  const vote = { choice, actor, comment, at };
  return withPause({ ...state, decisions }, ({ votes, votesCast }) => {
    return { votes: withVote(votes, vote), votesCast: votesCast + 1 };
  });
}

function withKeyed(
  decisions: RunState['decisions'],
  { keyHash, ...keyed }: Omit<KeyedDecision, 'keyHash'> & { readonly keyHash: string | null },
): RunState['decisions'] {
  return keyHash === null ? decisions : [...decisions, { keyHash, ...keyed }];
}

/** The state with its open pause changed. */
function withPause(state: RunState, change: (pause: RunPause) => Partial<RunPause>): RunState {
  const pause = pauseOf(state);
  return pause === null ? state : { ...state, phase: { status: 'paused', pause: { ...pause, ...change(pause) } } };
}

function pauseDecided(before: RunState, { data }: Of<'GateDecided'>): RunState {
  const { keyHash, bodyHash, action, nextNodes } = data;
  const decisions = withKeyed(before.decisions, { keyHash, bodyHash, action, isVote: false });
  const open = pauseOf(before);
  if (open === null) return { ...before, decisions };
  const phase = { status: 'paused', pause: { ...open, nextNodes, decision: action } } as const;
  const state = { ...before, decisions, phase };
  const override = data.action === 'modify' ? data.modifiedState : null;
  return override === null ? state : { ...state, progress: progressAfterOverride(before, override, { data, open }) };
}

/** The progress after a human's override. */
function progressAfterOverride(
  state: RunState,
  override: StateOverride,
  { data, open }: { readonly data: GateDecidedData; readonly open: RunPause },
): RunProgress {
  const { gate, nextNodes, route } = data;
  const source = humanSource(gate, state.progress.steps);
  const overridden = overrideState(state, override, { source, shown: open.nextNodes, route, nextNodes });
  // If no node is left to run, the overridden branch is that of the last node.
  const [last] = overridden.progress.frontier;
  const isEnd = nextNodes.length === 0 && last !== undefined;
  return { ...overridden.progress, shown: isEnd ? last.branch : branchShown(overridden, nextNodes) };
}

function completed(state: RunState, event: Of<'RunCompleted'>): RunState {
  const { finalDraft, finalOutput, criticScore, iterationCount, endedBy } = event.data;
  const last = endedBy === 'budget' ? branchAtBudget(state) : branchAtEnd(state);
  const shown = { ...last, draft: finalDraft, score: criticScore };
  return {
    ...state,
    phase: { status: 'completed', completedAt: event.at, finalDraft, finalOutput },
    ownership: { ...state.ownership, owner: null },
    progress: { ...state.progress, iterationCount: iterationCount ?? 0, activeNode: 'done', shown },
  };
}

function changeStep(
  { frontier }: RunProgress,
  step: number,
  change: (each: FrontierNode) => FrontierNode,
): readonly FrontierNode[] {
  return frontier.map((each) => (each.step === step ? change(each) : each));
}

function unknownEvent(event: never): never {
  throw new Error(`Unknown event: ${JSON.stringify(event)}`);
}
