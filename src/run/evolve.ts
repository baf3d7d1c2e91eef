/** The fold: a run's state after one more recorded event. Total and pure; the chart checks which event may follow. */
import { withSources } from '../council/citations.js';
import type { Plan } from '../graph/plan.js';
import { planOf } from '../graph/plan.js';
import type { GateDecidedData, StateOverride } from '../generated/schemas.js';
import { EMPTY_BRANCH, humanSource } from './branch.js';
import type { RunEvent } from './events.js';
import { branchAtEnd, branchInto, branchShown } from './frontier.js';
import { afterOutput } from './output.js';
import { overrideState } from './override.js';
import { overrideEveryBranch } from './override-v1.js';
import { restoreSnapshot } from './fork-snapshot.js';
import type { FrontierNode, RunState } from './state.js';
import { failuresWith, isInOutage } from './state.js';
import { copyOf } from './state.js';
import { leave, rerouted } from './node-route.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/**
 * The state of a run after its first event: an empty one, or for a fork the state of its parent at the fork point.
 *
 * @param plan of its graph; computed when absent
 */
export function firstState(event: Of<'RunRequested'>, plan: Plan = planOf(event.data.graph)): RunState {
  const { data } = event;
  return {
    runId: data.runId,
    status: 'pending',
    createdAt: event.at,
    completedAt: null,
    seq: event.seq,
    hash: event.hash,
    lastEventId: event.id,
    requestedTopic: data.inputTopic,
    inputTopic: data.inputTopic,
    godMode: data.godMode,
    executionMode: data.executionMode,
    blueprintId: data.blueprintId,
    blueprintName: data.blueprintName,
    plan,
    graphHash: data.graphHash,
    limits: data.limits,
    bodyHash: data.bodyHash,
    parent: data.parent,
    epoch: 0,
    owner: null,
    takeovers: 0,
    steps: 0,
    iterationCount: 0,
    scores: {},
    sources: [],
    frontier: [],
    arrivals: [{ node: data.graph.entry, from: 0, order: -1, branch: EMPTY_BRANCH }],
    ended: [],
    shown: EMPTY_BRANCH,
    activeNode: null,
    gate: null,
    gates: 0,
    resumedBy: null,
    isApproved: false,
    decisions: [],
    finalDraft: null,
    failure: null,
    ...(data.state !== null && restoreSnapshot(data.state, event.at)),
  };
}

/** The state after an event; the event must be the next of the same run. */
export function evolve(state: RunState, event: RunEvent): RunState {
  const next = Object.assign(copyOf(state), changeBy(state, event));
  next.seq = event.seq;
  next.hash = event.hash;
  next.lastEventId = event.id;
  return next;
}

function changeBy(state: RunState, event: RunEvent): Partial<RunState> {
  switch (event.type) {
    case 'RunRequested':
      return firstState(event);
    case 'RunClaimed':
      return claimed(state, event);
    case 'RunReleased':
      return { owner: null };
    case 'RunStarted':
      return { status: 'running' };
    case 'RunResumed':
      return { status: 'running', gate: null, resumedBy: state.gate?.decision ?? null, isApproved: true };
    case 'NodeStarted':
      return nodeStarted(state, event);
    case 'ToolCalled':
      return { sources: withSources(state.sources, event.data.hits) };
    case 'NodeCompleted':
      return nodeCompleted(state, event);
    case 'NodeFailed':
      return nodeFailed(state, event);
    case 'RunPaused':
      return paused(state, event);
    case 'GateDecided':
      return gateDecided(state, event);
    case 'RunCompleted':
      return completed(state, event);
    case 'RunFailed':
      return { status: 'failed', completedAt: event.at, owner: null, gate: null, failure: event.data };
    default:
      return unknownEvent(event);
  }
}

function nodeFailed(state: RunState, { at: since, data }: Of<'NodeFailed'>): Partial<RunState> {
  const { step, outageMs } = data;
  const outage = outageMs === undefined ? null : { since, budgetMs: outageMs };
  const fail = (each: FrontierNode): FrontierNode => {
    return { ...each, active: false, failures: failuresWith(each, outage !== null), outage };
  };
  return { frontier: changeStep(state, step, fail) };
}

function claimed(state: RunState, { at, data }: Of<'RunClaimed'>): Partial<RunState> {
  const takesOver = data.reason === 'recovered' && !isInOutage(state, at);
  return { epoch: data.epoch, owner: data.instanceId, takeovers: state.takeovers + (takesOver ? 1 : 0) };
}

function nodeStarted(state: RunState, { at: startedAt, data }: Of<'NodeStarted'>): Partial<RunState> {
  const { node, step, attempt, delayMs, tools } = data;
  if (state.frontier.some((each) => each.step === step)) {
    const frontier = changeStep(state, step, (each) => ({ ...each, attempt, startedAt, delayMs, tools, active: true }));
    return { frontier, activeNode: node };
  }
  const branch = branchInto(state, node, step);
  const stillRunning = state.frontier.filter((each) => each.active);
  const untried = { failures: 0, outage: null };
  const started: FrontierNode = { node, step, attempt, startedAt, delayMs, tools, ...untried, active: true, branch };
  const frontier = [...stillRunning, started];
  return {
    frontier,
    steps: Math.max(state.steps, step),
    arrivals: state.arrivals.filter((each) => each.node !== node),
    activeNode: node,
    isApproved: false,
    shown: frontier[0]?.branch ?? branch,
  };
}

function nodeCompleted(state: RunState, { data }: Of<'NodeCompleted'>): Partial<RunState> {
  const { step, node, output, route } = data;
  const { branch, scores, iterationCount } = afterOutput(state, step, output);
  const frontier = changeStep(state, step, (each) => ({ ...each, active: false, branch }));
  return {
    frontier,
    scores,
    iterationCount,
    takeovers: 0,
    shown: frontier[0]?.step === step ? branch : state.shown,
    ...leave(state, { node, step, branch, next: route.next }),
  };
}

function paused(state: RunState, event: Of<'RunPaused'>): Partial<RunState> {
  const { gate, nextNodes } = event.data;
  return {
    status: 'paused',
    activeNode: nextNodes[0] ?? null,
    gates: gate,
    gate: { gate, nextNodes, seq: event.seq, pausedAt: event.at, decision: null },
    shown: branchShown(state, nextNodes),
  };
}

function gateDecided(before: RunState, { data }: Of<'GateDecided'>): RunState {
  const { keyHash, bodyHash, action, nextNodes, route } = data;
  const decisions = keyHash === null ? before.decisions : [...before.decisions, { keyHash, bodyHash, action }];
  const state = { ...before, decisions };
  const override = data.action === 'modify' ? data.modifiedState : null;
  if (state.gate === null) return state;
  const gate = { ...state.gate, nextNodes, decision: action };
  if (override === null) return { ...state, gate };
  const at = { source: humanSource(data.gate, state.steps), shown: state.gate.nextNodes };
  const changed =
    data.overrideVersion === undefined
      ? overriddenV1(state, override, data)
      : overrideState(state, override, { ...at, route, nextNodes });
  // Where nothing is left to run, the last node's branch is what the human leaves.
  const [last] = changed.frontier;
  const isEnd = nextNodes.length === 0 && last !== undefined;
  return { ...changed, gate, shown: isEnd ? last.branch : branchShown(changed, nextNodes) };
}

/** An override by version 1 of the rules: its decision was recorded without an `overrideVersion`. */
function overriddenV1(state: RunState, override: StateOverride, { gate, route }: GateDecidedData): RunState {
  const overridden = overrideEveryBranch(state, override, `g${gate}`);
  return route === null ? overridden : rerouted(overridden, route.next);
}

function completed(state: RunState, event: Of<'RunCompleted'>): Partial<RunState> {
  const { finalDraft, criticScore } = event.data;
  return {
    status: 'completed',
    completedAt: event.at,
    owner: null,
    activeNode: 'done',
    finalDraft,
    shown: { ...branchAtEnd(state), draft: finalDraft, score: criticScore },
  };
}

function changeStep(
  state: RunState,
  step: number,
  change: (each: FrontierNode) => FrontierNode,
): readonly FrontierNode[] {
  return state.frontier.map((each) => (each.step === step ? change(each) : each));
}

function unknownEvent(event: never): never {
  throw new Error(`Unknown event: ${JSON.stringify(event)}`);
}
