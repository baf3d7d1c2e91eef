/**
 * Decisions: what a command makes of a run, as facts to record in one append. Pure; what follows a fact is asked of
 * the chart before it is written down, so nothing is recorded that the chart does not allow.
 */
import type { ConditionFacts } from '../graph/condition.js';
import { unknownMarks } from '../council/citations.js';
import { MAX_DRAFT_BYTES } from '../graph/limits.js';
import { noRoute } from '../graph/routing.js';
import type { NodeCompletedData, NodeFailedData, RunFailedData, ToolCalledData } from '../generated/schemas.js';
import { isTooLarge } from './branch.js';
import { branchAtEnd, branchInto, branchShown, nextFront, notYetStarted } from './frontier.js';
import type { Chart, RunSnapshot } from './machine.js';
import type { DecisionScene } from './pending-events.js';
import { Minutes } from './pending-events.js';
import { routeOf } from './node-route.js';
import { startAgain, startNode } from './node-start.js';
import { afterOutput } from './output.js';
import { routingFacts } from './output.js';
import type { FrontNode, RunState } from './state.js';
import { delayLeft, isFinished, isFrontDone, iterationShown, labelOf } from './state.js';

export type RunCommand =
  /** An instance takes the run to run it: for the first time, or from a dead or stopped owner. */
  | { readonly type: 'ClaimRun'; readonly reason: 'started' | 'recovered' | 'handover' }
  /** A tool has answered a node's attempt. */
  | { readonly type: 'RecordToolCall'; readonly call: Omit<ToolCalledData, 'node'> }
  /** A node's attempt has ended well. */
  | { readonly type: 'CompleteNode'; readonly result: Omit<NodeCompletedData, 'route' | 'node'> }
  /** A node's attempt has failed; `retryInMs` is null when no further attempt will be made. */
  | {
      readonly type: 'FailNode';
      readonly failure: Omit<NodeFailedData, 'node'>;
      readonly retryInMs: number | null;
    }
  | { readonly type: 'CancelRun' }
  /** A fault of the service itself: no node is to blame. */
  | { readonly type: 'FailRun'; readonly error: string }
  /** The instance stops: anyone may go on. */
  | { readonly type: 'ReleaseRun' };

/** The facts a command leads to, and where they lead; none when it comes too late to mean anything. */
export function decide(
  chart: Chart,
  snapshot: RunSnapshot,
  { command, scene }: { readonly command: RunCommand; readonly scene: DecisionScene },
): Minutes {
  const minutes = new Minutes(chart, snapshot, scene);
  if (isFinished(minutes.run)) return minutes;
  switch (command.type) {
    case 'ClaimRun':
      claim(minutes, command.reason);
      break;
    case 'RecordToolCall':
      recordToolCall(minutes, command.call);
      break;
    case 'CompleteNode':
      completeNode(minutes, command.result);
      break;
    case 'FailNode':
      failNode(minutes, command.failure, command.retryInMs);
      break;
    case 'CancelRun':
      fail(minutes, { kind: 'cancelled', error: 'Cancelled by the user', node: null });
      break;
    case 'FailRun':
      fail(minutes, { kind: 'internal', error: command.error, node: minutes.run.activeNode });
      break;
    case 'ReleaseRun':
      release(minutes, 'shutdown');
      break;
    default:
      command satisfies never;
  }
  return minutes;
}

function claim(minutes: Minutes, reason: 'started' | 'recovered' | 'handover'): void {
  const { run, scene } = minutes;
  if (run.status === 'paused') return;
  const epoch = run.epoch + 1;
  minutes.write({ type: 'RunClaimed', data: { epoch, instanceId: scene.instanceId, reason } });
  if (run.status === 'pending') minutes.write({ type: 'RunStarted', data: { epoch } });
  if (minutes.run.takeovers > run.limits.maxTakeovers) {
    const error = `Taken over ${minutes.run.takeovers} times without a completed step`;
    fail(minutes, { kind: 'takeover_limit', error, node: run.activeNode });
    return;
  }
  takeUp(minutes, run.status === 'pending' ? frontOfFork(run) : []);
}

/** Goes on where the record stands: with the steps under way, and `others` beside them, or with what comes next. */
function takeUp(minutes: Minutes, others: readonly string[]): void {
  const { run, scene } = minutes;
  const stuck = run.ended.find(({ node }) => run.plan.edgesFrom(node).length > 0);
  const outstanding = run.front.filter((each) => each.active);
  if (stuck !== undefined) {
    failWithoutRoute(minutes, stuck.node, routingFacts(stuck.branch, run.iterationCount));
  } else if (outstanding.length > 0) {
    for (const each of outstanding) startAgain(minutes, each, delayLeft(each, scene.at));
    startFront(minutes, others);
  } else if (run.isApproved) {
    proceed(minutes, nextFront(run));
  } else {
    advance(minutes);
  }
}

/** What belongs to the front of a run forked while that was being started. */
function frontOfFork(run: RunState): readonly string[] {
  return run.front.length > 0 && run.front.every((each) => each.active) ? notYetStarted(run) : [];
}

function failWithoutRoute(minutes: Minutes, node: string, facts: ConditionFacts): void {
  fail(minutes, { kind: 'no_route', error: noRoute(node, facts), node });
}

function recordToolCall(minutes: Minutes, call: Omit<ToolCalledData, 'node'>): void {
  const at = underWay(minutes.run, call);
  if (at !== undefined) minutes.write({ type: 'ToolCalled', data: { node: at.node, ...call } });
}

function completeNode(minutes: Minutes, result: Omit<NodeCompletedData, 'route' | 'node'>): void {
  const { run } = minutes;
  const at = underWay(run, result);
  if (at === undefined) return;
  const { branch, iterationCount } = afterOutput(run, result.step, result.output);
  const route = routeOf(run, { node: at.node, branch, iterationCount });
  minutes.write({
    type: 'NodeCompleted',
    data: { node: at.node, route: route ?? { next: [], reason: 'no condition holds' }, ...result },
  });
  if (route === null) {
    failWithoutRoute(minutes, at.node, routingFacts(branch, iterationCount));
  } else if (isFrontDone(minutes.run)) {
    advance(minutes);
  }
}

function failNode(minutes: Minutes, failure: Omit<NodeFailedData, 'node'>, retryInMs: number | null): void {
  const at = underWay(minutes.run, failure);
  if (at === undefined) return;
  minutes.write({ type: 'NodeFailed', data: { node: at.node, ...failure } });
  if (retryInMs !== null) {
    startAgain(minutes, at, retryInMs);
  } else {
    fail(minutes, { kind: 'node_failed', error: `Node "${at.node}": ${failure.message}`, node: at.node });
  }
}

/** An attempt's report counts only while that attempt is the one under way. */
function underWay(run: RunState, report: { readonly step: number; readonly attempt: number }): FrontNode | undefined {
  return run.front.find((each) => each.active && each.step === report.step && each.attempt === report.attempt);
}

/** All nodes of the front have ended: the next front, a pause before it, or the end. */
function advance(minutes: Minutes): void {
  goOn(minutes, nextFront(minutes.run), minutes.run.godMode ? pause : startFront);
}

/** A pause was decided: these nodes start, or the run ends when there are none. */
export function proceed(minutes: Minutes, nodes: readonly string[]): void {
  goOn(minutes, nodes, startFront);
}

/** Goes on with a front, however that begins, as far as the limits allow. */
function goOn(minutes: Minutes, next: readonly string[], begin: typeof startFront): void {
  const { run } = minutes;
  const { maxNodeExecutions } = run.limits;
  const oversized = next.find((node) => isTooLarge(branchInto(run, node, run.steps + 1)));
  if (next.length === 0) {
    finish(minutes);
  } else if (run.steps + next.length > maxNodeExecutions) {
    const beyond = `${next.length} more would pass the limit of ${maxNodeExecutions}`;
    const error = `Stopped after ${run.steps} node executions: ${beyond}`;
    fail(minutes, { kind: 'execution_limit', error, node: next[0] ?? null });
  } else if (oversized !== undefined) {
    failTooLarge(minutes, { place: `before "${labelOf(run.plan.graph, oversized)}"`, node: oversized });
  } else {
    begin(minutes, next);
  }
}

function startFront(minutes: Minutes, nodes: readonly string[]): void {
  for (const node of nodes) {
    const step = minutes.run.steps + 1;
    const branch = branchInto(minutes.run, node, step);
    startNode(minutes, { node, step, attempt: 1, branch }, 0);
  }
}

function pause(minutes: Minutes, nextNodes: readonly string[]): void {
  const { run } = minutes;
  minutes.write({
    type: 'RunPaused',
    data: {
      gate: run.gates + 1,
      nextNodes: [...nextNodes],
      criticScore: branchShown(run, nextNodes).score,
      iteration: run.iterationCount,
    },
  });
  release(minutes, 'paused');
}

function release(minutes: Minutes, reason: 'paused' | 'shutdown'): void {
  const { epoch, owner } = minutes.run;
  if (owner === null) return;
  minutes.write({ type: 'RunReleased', data: { epoch, instanceId: owner, reason } });
}

function finish(minutes: Minutes): void {
  const { run } = minutes;
  const last = branchAtEnd(run);
  if (isTooLarge(last)) return failTooLarge(minutes, { place: 'at the end', node: run.activeNode });
  minutes.write({
    type: 'RunCompleted',
    data: {
      finalDraft: last.draft,
      criticScore: last.score,
      iterationCount: iterationShown(run),
      ...unknownMarks(last.draft, run.sources),
    },
  });
}

export function fail(minutes: Minutes, failure: RunFailedData): void {
  minutes.write({ type: 'RunFailed', data: failure });
}

function failTooLarge(
  minutes: Minutes,
  { place, node }: { readonly place: string; readonly node: string | null },
): void {
  const error = `The drafts joined ${place} are larger than ${MAX_DRAFT_BYTES} bytes`;
  fail(minutes, { kind: 'draft_too_large', error, node });
}
