/**
 * Decides which facts a command leads to. They are recorded in one append. Pure: the chart checks each fact before the
 * next is decided, so the service records nothing that the chart does not allow.
 */
import type { ModelFailureKind } from '../errors.js';
import type { ConditionFacts } from '../graph/condition.js';
import { noRoute } from '../graph/routing.js';
import type { CallUsage, NodeCompletedData, NodeFailedData, ToolCalledData } from '../generated/schemas.js';
import { isTooLarge } from './branch.js';
import type { NextCall } from './budget/work.js';
import { notYetBegun, reserveCall, startWork } from './budget/work.js';
import { complete, fail, failTooLarge, pause, release } from './ends.js';
import { branchAtEnd, branchInto, nextFrontier, unstartedNodes, stoppedSteps } from './frontier.js';
import type { Chart, RunSnapshot } from './machine.js';
import type { DecisionContext } from './pending-events.js';
import { PendingEvents } from './pending-events.js';
import { hasPanel, readsPanel } from './deliberation.js';
import { nodeOf } from './node-start.js';
import { routeOf } from './node-route.js';
import type { OpenPanel, SeatedStep } from './panels.js';
import { isOver, openPanel, openPanels, outcomeOf, progressOf } from './panels.js';
import { afterOutput } from './output.js';
import { conditionFacts } from './output.js';
import type { FrontierNode, RunState, Seat } from './state.js';
import { attemptInFlight, delayLeft, isFinished, isFrontierDone, labelOf } from './state.js';

export type RunCommand =
  /** An instance claims the run: for the first time, or from a dead or stopped owner. */
  | { readonly type: 'ClaimRun'; readonly reason: 'started' | 'recovered' | 'handover' }
  /** A tool call of an attempt has a result. */
  | { readonly type: 'RecordToolCall'; readonly call: Omit<ToolCalledData, 'node'> }
  /** An attempt has succeeded. */
  | { readonly type: 'CompleteNode'; readonly result: Omit<NodeCompletedData, 'route' | 'node'> }
  /** A call of an attempt was answered, and the attempt asks to make another. */
  | { readonly type: 'ReserveCall'; readonly next: NextCall }
  /** An attempt has failed. `retryInMs` is null if no further attempt follows. */
  | {
      readonly type: 'FailNode';
      readonly failure: Omit<NodeFailedData, 'node'>;
      readonly retryInMs: number | null;
    }
  | { readonly type: 'CancelRun'; readonly actor: string | null }
  /** The service itself has a fault. */
  | { readonly type: 'FailRun'; readonly error: string }
  /** The time after the quorum of a panel may have passed. */
  | { readonly type: 'ClosePanels' }
  /** The instance stops: any instance may claim the run. */
  | { readonly type: 'ReleaseRun' };

/** The facts that a command leads to, and the state after them; none if it comes too late to have an effect. */
export function decide(
  chart: Chart,
  snapshot: RunSnapshot,
  { command, context }: { readonly command: RunCommand; readonly context: DecisionContext },
): PendingEvents {
  const pending = new PendingEvents(chart, snapshot, context);
  if (isFinished(pending.run)) return pending;
  switch (command.type) {
    case 'ClaimRun':
      claim(pending, command.reason);
      break;
    case 'RecordToolCall':
      recordToolCall(pending, command.call);
      break;
    case 'ReserveCall':
      reserveCall(pending, command.next);
      break;
    case 'CompleteNode':
      completeNode(pending, command.result);
      break;
    case 'FailNode':
      failNode(pending, command.failure, command.retryInMs);
      break;
    case 'CancelRun':
      fail(pending, { kind: 'cancelled', error: 'Cancelled by the user', node: null, actor: command.actor });
      break;
    case 'FailRun':
      fail(pending, { kind: 'internal', error: command.error, node: pending.run.progress.activeNode });
      break;
    case 'ClosePanels':
      closeDuePanels(pending);
      break;
    case 'ReleaseRun':
      release(pending, 'shutdown');
      break;
    default:
      command satisfies never;
  }
  return pending;
}

function claim(pending: PendingEvents, reason: 'started' | 'recovered' | 'handover'): void {
  const { run, context } = pending;
  if (run.phase.status === 'paused') return;
  const epoch = run.ownership.epoch + 1;
  pending.write({ type: 'RunClaimed', data: { epoch, instanceId: context.instanceId, reason } });
  if (run.phase.status === 'pending') pending.write({ type: 'RunStarted', data: { epoch } });
  if (pending.run.ownership.takeovers > run.request.limits.maxTakeovers) {
    const error = `Taken over ${pending.run.ownership.takeovers} times without a completed step`;
    fail(pending, { kind: 'takeover_limit', error, node: run.progress.activeNode });
    return;
  }
  resumeWork(pending, run.phase.status === 'pending' ? missingStarts(run) : []);
}

/** Continues from the recorded state: with the steps in flight and `others`, or with the next frontier. */
function resumeWork(pending: PendingEvents, others: readonly string[]): void {
  const { context } = pending;
  const inFlight = pending.run.progress.frontier.filter((each) => each.active);
  const hasClosed = settlePanels(pending);
  const { run } = pending;
  if (run.phase.status !== 'running') return;
  const stuck = run.progress.ended.find(({ node }) => run.plan.edgesFrom(node).length > 0);
  const outstanding = inFlight.filter((each) => attemptInFlight(run, each) !== undefined);
  if (stuck !== undefined) {
    failWithoutRoute(pending, stuck.node, conditionFacts(stuck.branch, run.progress.iterationCount));
  } else if (outstanding.length > 0) {
    const again = outstanding.map((at) => ({ at, delayMs: delayLeft(at, context.at) }));
    startWork(pending, { again, nodes: others });
  } else if (hasClosed) {
    // The run has continued with what follows from the panel.
  } else if (run.progress.isApproved) {
    scheduleNext(pending, nextFrontier(run));
  } else {
    endFrontier(pending);
  }
}

/** The nodes still to start if the run was forked while its frontier started. */
function missingStarts(run: RunState): readonly string[] {
  return run.progress.frontier.length > 0 && run.progress.frontier.every((each) => each.active)
    ? unstartedNodes(run)
    : [];
}

function failWithoutRoute(pending: PendingEvents, node: string, facts: ConditionFacts): void {
  fail(pending, { kind: 'no_route', error: noRoute(node, facts), node });
}

function recordToolCall(pending: PendingEvents, call: Omit<ToolCalledData, 'node'>): void {
  const at = attemptInFlight(pending.run, call);
  if (at !== undefined) pending.write({ type: 'ToolCalled', data: { node: at.node, ...call } });
}

function completeNode(pending: PendingEvents, result: Omit<NodeCompletedData, 'route' | 'node'>): void {
  const { run } = pending;
  const at = attemptInFlight(run, result);
  if (at === undefined) return;
  if (at.seat !== null) return completeMember(pending, { ...at, seat: at.seat }, result);
  const { branch, iterationCount } = afterOutput(run, result.step, result.output);
  const route = routeOf(run, { node: at.node, branch, iterationCount });
  pending.write({
    type: 'NodeCompleted',
    data: {
      node: at.node,
      ...(at.model !== null && { model: at.model }),
      route: route ?? { next: [], reason: 'no condition holds' },
      ...withinBudget(run, result),
    },
  });
  if (route === null) {
    failWithoutRoute(pending, at.node, conditionFacts(branch, iterationCount));
  } else if (isFrontierDone(pending.run)) {
    endFrontier(pending);
  }
}

function failNode(pending: PendingEvents, failure: Omit<NodeFailedData, 'node'>, retryInMs: number | null): void {
  const at = attemptInFlight(pending.run, failure);
  if (at === undefined || (at.seat !== null && closeIfOver(pending, at.seat))) return;
  const fallbackTo = retryInMs === null ? fallbackAfter(pending, at, failure.kind) : null;
  const model = at.model !== null && { model: at.model };
  pending.write({
    type: 'NodeFailed',
    data: {
      node: at.node,
      ...memberOf(at),
      ...model,
      ...withinBudget(pending.run, failure),
      ...(fallbackTo !== null && { fallbackTo }),
      ...(at.seat !== null && retryInMs === null && fallbackTo === null && { final: true as const }),
    },
  });
  if (retryInMs !== null) {
    startWork(pending, { again: [{ at, delayMs: retryInMs }], nodes: [] });
  } else if (fallbackTo !== null) {
    startWork(pending, { again: [{ at: { ...at, model: fallbackTo }, delayMs: 0 }], nodes: [] });
  } else if (at.seat !== null) {
    settlePanel(pending, at.seat.panelStep);
  } else {
    fail(pending, { kind: 'node_failed', error: `Node "${at.node}": ${failure.message}`, node: at.node });
  }
}

// Panels, ranks and juries.

/** Records a member's answer, or discards it if the time after the quorum has passed. */
function completeMember(
  pending: PendingEvents,
  at: SeatedStep,
  { output, ...result }: Omit<NodeCompletedData, 'route' | 'node'>,
): void {
  if (closeIfOver(pending, at.seat)) return;
  const model = at.model !== null && { model: at.model };
  const data = { node: at.node, ...memberOf(at), ...model, output, ...withinBudget(pending.run, result) };
  pending.write({ type: 'NodeCompleted', data });
  settlePanel(pending, at.seat.panelStep);
}

function memberOf({ seat }: FrontierNode): { readonly member?: string; readonly panelStep?: number } {
  return seat === null ? {} : { member: seat.member, panelStep: seat.panelStep };
}

/** Closes a panel if its time after the quorum has passed. @returns whether it did */
function closeIfOver(pending: PendingEvents, { panelStep }: Seat): boolean {
  const panel = openPanel(pending.run, panelStep);
  if (panel === null || !isOver(panel, pending.context.at)) return false;
  settlePanel(pending, panelStep);
  return true;
}

/** Closes the panels whose time after the quorum has passed. @returns whether there are any */
function closeDuePanels(pending: PendingEvents): boolean {
  if (pending.run.phase.status !== 'running') return false;
  const due = openPanels(pending.run).filter((panel) => isOver(panel, pending.context.at));
  for (const { panelStep } of due) if (!isFinished(pending.run)) settlePanel(pending, panelStep);
  return due.length > 0;
}

/**
 * Settles the panels of a run that continues: a fork's record may lack what follows from the last answer.
 *
 * @returns whether one has closed
 */
function settlePanels(pending: PendingEvents): boolean {
  const before = openPanels(pending.run);
  for (const { panelStep } of before) if (!isFinished(pending.run)) settlePanel(pending, panelStep);
  return before.some(({ panelStep }) => openPanel(pending.run, panelStep) === null);
}

/** Records what follows from the answers of a panel's members so far. */
function settlePanel(pending: PendingEvents, panelStep: number): void {
  const panel = openPanel(pending.run, panelStep);
  if (panel === null) return;
  const { node } = panel;
  const progress = progressOf(pending.run, panel, pending.context.at);
  switch (progress.kind) {
    case 'fails':
      return fail(pending, { kind: 'node_failed', error: progress.error, node });
    case 'quorum':
      pending.write({ type: 'QuorumReached', data: { node, panelStep, until: progress.until } });
      break;
    case 'closes':
      return closePanel(pending, panel);
    case 'waits':
      break;
    default:
      progress satisfies never;
  }
  // Only steps that the budget has stopped are left.
  if (pending.run.progress.frontier.every(({ active }) => !active)) endFrontier(pending);
}

function closePanel(pending: PendingEvents, panel: OpenPanel): void {
  const { node, panelStep } = panel;
  const { branch, iterationCount, answered, failed, discarded, result } = outcomeOf(pending.run, panel);
  const route = routeOf(pending.run, { node, branch, iterationCount });
  pending.write({
    type: 'PanelClosed',
    data: {
      ...{ node, panelStep, answered, failed, discarded, result },
      route: route ?? { next: [], reason: 'no condition holds' },
    },
  });
  if (route === null) {
    failWithoutRoute(pending, node, conditionFacts(branch, iterationCount));
  } else if (isTooLarge(branch)) {
    failTooLarge(pending, { place: `of "${labelOf(pending.run.plan.graph, node)}"`, node });
  } else if (pending.run.progress.frontier.every(({ active }) => !active)) {
    endFrontier(pending);
  }
}

/** A recorded result: a run without a budget does not record the last call apart. */
function withinBudget<T extends { readonly lastCall?: CallUsage }>({ spending }: RunState, result: T): T {
  if (spending !== null || result.lastCall === undefined) return result;
  const { lastCall: _, ...rest } = result;
  return rest as T;
}

/** The full name of the model that a step asks next, or null if its failure allows none or none is left. */
function fallbackAfter({ run, context }: PendingEvents, at: FrontierNode, kind: string): string | null {
  if (!FALLS_BACK.has(kind)) return null;
  const { model, fallbacks = [] } = nodeOf(run, at);
  const names = [...new Set([model, ...fallbacks].map((each) => context.fullName(each)))];
  const used = at.model === null ? 0 : names.indexOf(at.model);
  return names[used + 1] ?? null;
}

/**
 * Failures of a model that another may not share: its server cannot be reached or limits the rate past the budget, refuses
 * the key or the account, or does not know the model. A content refusal, an unusable answer and a bad request are not
 * among them (contract, section 6.1).
 */
const FALLS_BACK: ReadonlySet<string> = new Set<ModelFailureKind>([
  ...(['connection_refused', 'connection_lost', 'host_unknown', 'unreachable', 'network_error', 'tls_failed'] as const),
  ...(['bad_gateway', 'unavailable', 'overloaded', 'rate_limited'] as const),
  ...(['unauthorized', 'forbidden', 'quota_used_up', 'model_unknown', 'model_unusable'] as const),
]);

/** Starts the next frontier, pauses before it, or completes the run. All nodes of the frontier must have ended. */
function endFrontier(pending: PendingEvents): void {
  const again = stoppedSteps(pending.run).map((at) => ({ at, delayMs: 0 }));
  if (again.length > 0) return startWork(pending, { again, nodes: [] });
  scheduleWithinLimits(pending, nextFrontier(pending.run), pending.run.request.godMode ? pause : startFrontier);
}

/** Starts these nodes after a decided pause, or completes the run if there are none. */
export function scheduleNext(pending: PendingEvents, nodes: readonly string[]): void {
  if (closeDuePanels(pending)) return;
  const again = stoppedSteps(pending.run).map((at) => ({ at, delayMs: 0 }));
  if (again.length > 0) return startWork(pending, { again, nodes: notYetBegun(pending.run, nodes) });
  scheduleWithinLimits(pending, nodes, startFrontier);
}

/**
 * Begins a frontier, by starting it or pausing before it; completes the run if it is empty, and fails the run if it
 * would exceed a limit. Further attempts of a step do not count again. Check a new limit of the next nodes here.
 * Check any other limit in the command that reaches it, as `claim` does for takeovers.
 */
function scheduleWithinLimits(pending: PendingEvents, next: readonly string[], begin: typeof startFrontier): void {
  const { run } = pending;
  const { maxNodeExecutions } = run.request.limits;
  const unreviewable = next.find((node) => {
    return readsPanel(run.plan.node(node)) && !hasPanel(branchInto(run, node, run.progress.steps + 1));
  });
  const oversized = next.find((node) => isTooLarge(branchInto(run, node, run.progress.steps + 1)));
  if (next.length === 0) {
    complete(pending, branchAtEnd(run));
  } else if (run.progress.executions + next.length > maxNodeExecutions) {
    const beyond = `${next.length} more would pass the limit of ${maxNodeExecutions}`;
    const error = `Stopped after ${run.progress.executions} node executions: ${beyond}`;
    fail(pending, { kind: 'execution_limit', error, node: next[0] ?? null });
  } else if (unreviewable !== undefined) {
    const error = `Node "${unreviewable}" reads the answers of a panel, and no panel has closed before it`;
    fail(pending, { kind: 'node_failed', error, node: unreviewable });
  } else if (oversized !== undefined) {
    failTooLarge(pending, { place: `before "${labelOf(run.plan.graph, oversized)}"`, node: oversized });
  } else {
    begin(pending, next);
  }
}

function startFrontier(pending: PendingEvents, nodes: readonly string[]): void {
  startWork(pending, { again: [], nodes });
}
