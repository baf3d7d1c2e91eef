/** What follows when all nodes of a frontier have ended. */
import type { ConditionFacts } from '../../graph/condition.js';
import { noRoute } from '../../graph/routing.js';
import { startWork } from '../budget/work.js';
import { isTooLarge } from './branch.js';
import { hasPanel, readsPanel } from '../panels/members.js';
import { complete, fail, failTooLarge, pause } from '../ends.js';
import { branchAtEnd, branchInto, nextFrontier, stoppedSteps } from './frontier.js';
import type { PendingEvents } from '../pending-events.js';
import { labelOf } from '../state.js';

/** Starts the next frontier, pauses before it, or completes the run. All nodes of the frontier must have ended. */
export function endFrontier(pending: PendingEvents): void {
  const again = stoppedSteps(pending.run).map((at) => ({ at, delayMs: 0 }));
  if (again.length > 0) return startWork(pending, { again, nodes: [] });
  scheduleWithinLimits(pending, nextFrontier(pending.run), pending.run.request.godMode ? pause : startFrontier);
}

/**
 * Begins a frontier, by starting it or pausing before it; completes the run if it is empty, and fails the run if it
 * would exceed a limit. Further attempts of a step do not count again. Check a new limit of the next nodes here.
 * Check any other limit in the command that reaches it, as `claim` does for takeovers.
 */
export function scheduleWithinLimits(
  pending: PendingEvents,
  next: readonly string[],
  begin: typeof startFrontier,
): void {
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

/** Starts the first attempts of all nodes of a frontier. */
export function startFrontier(pending: PendingEvents, nodes: readonly string[]): void {
  startWork(pending, { again: [], nodes });
}

/** Fails a run because no edge after a node holds. */
export function failWithoutRoute(pending: PendingEvents, node: string, facts: ConditionFacts): void {
  fail(pending, { kind: 'no_route', error: noRoute(pending.run.plan, node, facts), node });
}
