/**
 * Decides which facts a command leads to. They are recorded in one append. Pure: the chart checks each fact before the
 * next is decided, so the service records nothing that the chart does not allow.
 */
import { isOutput } from '../graph/output-node.js';
import type { ModelFailureKind } from '../errors.js';
import { laterOf } from '../eventsourcing/aggregate.js';
import type {
  ChildEndedData,
  NodeCompletedData,
  NodeFailedData,
  RunFailedData,
  ToolCalledData,
} from '../generated/schemas.js';
import { mayEnd } from './children/children.js';
import { continueCouncil } from './children/council.js';
import { endChildren, fail, release } from './ends.js';
import { nextFrontier, stoppedSteps, unstartedNodes } from './frontier/frontier.js';
import type { Chart, RunSnapshot } from './chart/machine.js';
import { nodeOf } from './frontier/node-start.js';
import { routeOf } from './frontier/node-route.js';
import { afterOutput, conditionFacts } from './frontier/output.js';
import {
  closeDuePanels,
  closeIfGraceOver,
  completeMember,
  settlePanel,
  settlePanels,
  settleStopped,
  withRecordedCalls,
} from './panels/panel-decisions.js';
import type { DecisionContext } from './pending-events.js';
import { PendingEvents } from './pending-events.js';
import type { NextCall, Work } from './frontier/start.js';
import {
  failWithoutRoute,
  goOn,
  missingBudget,
  notYetBegun,
  reserveCall,
  startFrontier,
  startWork,
} from './frontier/start.js';
import type { FrontierNode, RunState } from './state.js';
import { attemptInFlight, delayLeft, isFinished, isFrontierDone, memberOf } from './state.js';

export type RunCommand =
  /** An instance claims the run: for the first time, or from a dead or stopped owner. */
  | { readonly type: 'ClaimRun'; readonly reason: 'started' | 'recovered' | 'handover' }
  /** A tool call of an attempt has a result. */
  | { readonly type: 'RecordToolCall'; readonly call: Omit<ToolCalledData, 'node'> }
  /** An attempt has succeeded. */
  | { readonly type: 'CompleteNode'; readonly result: Omit<NodeCompletedData, 'route' | 'node'> }
  /** A call of an attempt was answered, and the attempt asks to make another. */
  | { readonly type: 'ReserveCall'; readonly next: NextCall }
  /** A council begins its step. */
  | { readonly type: 'StartChildren'; readonly step: number }
  /** A run of a council has ended. `failure` is how this run ends, if that one was cancelled for its end. */
  | { readonly type: 'EndChild'; readonly end: ChildEndedData; readonly failure: RunFailedData | null }
  /** An attempt has failed. `retryInMs` is null if no further attempt follows. */
  | {
      readonly type: 'FailNode';
      readonly failure: Omit<NodeFailedData, 'node'>;
      readonly retryInMs: number | null;
    }
  | { readonly type: 'CancelRun'; readonly actor: string | null }
  /** The run's parent ends. */
  | { readonly type: 'EndWithParent'; readonly failure: RunFailedData }
  /** The service itself has a fault. */
  | { readonly type: 'FailRun'; readonly error: string }
  /** The grace of the panels that wait until a time, ISO 8601, or an earlier one, is over by this instance's timer. */
  | { readonly type: 'ClosePanels'; readonly until: string }
  /** The instance stops: any instance may claim the run. */
  | { readonly type: 'ReleaseRun' };

/**
 * The facts that a command leads to, and the state after them; none if it comes too late to have an effect.
 *
 * @param ends of the runs that councils wait for. If a decision without them ends the run, the caller ends these runs and
 *   decides again, so that their usage counts.
 */
export function decide(
  chart: Chart,
  snapshot: RunSnapshot,
  {
    command,
    context,
    ends = [],
  }: { readonly command: RunCommand; readonly context: DecisionContext; readonly ends?: PendingEvents['ends'] },
): PendingEvents {
  // The timer has measured the grace; the clock of this instance may be behind that of the one that recorded its end.
  const at = command.type === 'ClosePanels' ? laterOf(context.at, command.until) : context.at;
  const pending = new PendingEvents(chart, snapshot, { ...context, at, ends });
  if (!isFinished(pending.run)) carryOut(pending, command);
  return pending;
}

function carryOut(pending: PendingEvents, command: RunCommand): void {
  switch (command.type) {
    case 'ClaimRun':
      return claim(pending, command.reason);
    case 'RecordToolCall':
      return recordToolCall(pending, command.call);
    case 'ReserveCall':
      reserveCall(pending, command.next);
      return settleStopped(pending, command.next.step);
    case 'CompleteNode':
      return completeNode(pending, command.result);
    case 'StartChildren':
      return followCouncil(pending, command.step);
    case 'EndChild':
      if (pending.run.phase.status !== 'running' || !mayEnd(pending.run, command.end)) return;
      pending.write({ type: 'ChildEnded', data: command.end });
      return command.failure === null ? followCouncil(pending, command.end.step) : fail(pending, command.failure);
    case 'FailNode':
      return failNode(pending, command.failure, command.retryInMs);
    case 'CancelRun':
      return fail(pending, { kind: 'cancelled', error: 'Cancelled by the user', node: null, actor: command.actor });
    case 'EndWithParent':
      return fail(pending, command.failure);
    case 'FailRun':
      return fail(pending, { kind: 'internal', error: command.error, node: pending.run.progress.activeNode });
    case 'ClosePanels':
      closeDuePanels(pending);
      return;
    case 'ReleaseRun':
      return release(pending, 'shutdown');
    default:
      command satisfies never;
  }
}

/** Claims the run for this instance and continues it; nothing while it is paused. */
export function claim(pending: PendingEvents, reason: 'started' | 'recovered' | 'handover'): void {
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
  } else if (!hasClosed) {
    // If a panel has closed, its close has continued the run.
    if (run.progress.isApproved) scheduleNext(pending, nextFrontier(run));
    else goOn(pending);
  }
}

/** The nodes still to start if the run was forked while its frontier started. */
function missingStarts(run: RunState): readonly string[] {
  return run.progress.frontier.length > 0 && run.progress.frontier.every((each) => each.active)
    ? unstartedNodes(run)
    : [];
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
      ...askedModel(at),
      route: route ?? { next: [], reason: 'no condition holds' },
      ...withRecordedCalls(run, result),
    },
  });
  if (route === null) {
    failWithoutRoute(pending, at.node, conditionFacts(branch, iterationCount));
  } else if (isFrontierDone(pending.run)) {
    goOn(pending);
  }
}

/** Starts the next runs of a council; completes or fails its step once it has ended. */
function followCouncil(pending: PendingEvents, step: number): void {
  const at = pending.run.progress.frontier.find((each) => each.active && each.step === step);
  if (at === undefined) return;
  const { attempt } = at;
  const progress = continueCouncil(pending, at);
  if (progress.kind === 'completed') {
    const durationMs = Math.max(0, Date.parse(pending.context.at) - Date.parse(at.startedAt));
    const usage = { inputTokens: null, outputTokens: null };
    completeNode(pending, { step, attempt, output: { draft: progress.draft }, usage, durationMs });
  } else if (progress.kind === 'failed') {
    const { error: message } = progress;
    const isOverBudget = progress.isOverBudget === true && pending.run.spending !== null;
    const kind = isOverBudget ? 'budget_exceeded' : 'council_failed';
    // The council is active until its runs have ended.
    endChildren(pending);
    recordFailure(pending, at, { step, attempt, kind, message, retryable: false });
    const error = `Node "${at.node}": ${message}`;
    fail(pending, { kind: kind === 'budget_exceeded' ? kind : 'node_failed', error, node: at.node });
  }
}

function failNode(pending: PendingEvents, failure: Omit<NodeFailedData, 'node'>, retryInMs: number | null): void {
  const at = attemptInFlight(pending.run, failure);
  if (at === undefined || (at.seat !== null && closeIfGraceOver(pending, at.seat))) return;
  const fallbackTo = retryInMs === null ? fallbackAfter(pending, at, failure.kind) : null;
  const isFinal = retryInMs === null && fallbackTo === null;
  recordFailure(pending, at, { ...failure, ...(fallbackTo !== null && { fallbackTo }), ...(isFinal && FINAL) });
  if (!isFinal) {
    startAgain(pending, { at: { ...at, model: fallbackTo ?? at.model }, delayMs: retryInMs ?? 0 });
  } else if (at.seat !== null) {
    settlePanel(pending, at.seat.panelStep);
  } else {
    failRun(pending, at.node, failure.message);
  }
}

/** The failure of the node of the final output has a kind of its own, because the draft is complete. */
function failRun(pending: PendingEvents, node: string, message: string): void {
  const kind = isOutput(pending.run.plan.node(node)) ? 'output_invalid' : 'node_failed';
  fail(pending, { kind, error: `Node "${node}": ${message}`, node });
}

/** Starts another attempt of a step. If the budget stops a member, its panel may have enough answers to close without it. */
function startAgain(pending: PendingEvents, again: Work['again'][number]): void {
  const work = { again: [again], nodes: [] };
  const { seat } = again.at;
  if (seat !== null && missingBudget(pending, work) !== null) settlePanel(pending, seat.panelStep);
  else startWork(pending, work);
}

/** The model of an attempt, as its end records it; a council asks none. */
function askedModel({ model }: FrontierNode): { model?: string } {
  return model === null || model === '' ? {} : { model };
}

const FINAL = { final: true } as const;

/** Records a failed attempt. If no other follows, a member's event says so; after a node's, the run fails. */
function recordFailure(
  pending: PendingEvents,
  at: FrontierNode,
  { final: isFinal, ...failure }: Omit<NodeFailedData, 'node'>,
): void {
  const data = { node: at.node, ...memberOf(at), ...askedModel(at), ...withRecordedCalls(pending.run, failure) };
  pending.write({ type: 'NodeFailed', data: { ...data, ...(at.seat !== null && isFinal === true && FINAL) } });
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
 * Failures of a model that another may not share: its server cannot be reached or limits the rate for longer than the step
 * waits, refuses the key or the account, or does not know the model. A content refusal, an unusable answer and a bad request
 * are not among them (contract, section 6.1).
 */
const FALLS_BACK: ReadonlySet<string> = new Set<ModelFailureKind>([
  ...(['connection_refused', 'connection_lost', 'host_unknown', 'unreachable', 'network_error', 'tls_failed'] as const),
  ...(['bad_gateway', 'unavailable', 'overloaded', 'rate_limited'] as const),
  ...(['unauthorized', 'forbidden', 'quota_used_up', 'model_unknown', 'model_unusable', 'not_configured'] as const),
]);

/** Starts these nodes after a decided pause, or completes the run if there are none. */
export function scheduleNext(pending: PendingEvents, nodes: readonly string[]): void {
  if (closeDuePanels(pending)) return;
  const again = stoppedSteps(pending.run).map((at) => ({ at, delayMs: 0 }));
  if (again.length > 0) return startWork(pending, { again, nodes: notYetBegun(pending.run, nodes) });
  startFrontier(pending, nodes);
}
