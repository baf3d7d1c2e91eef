/** Starts nodes: what follows when a frontier has ended, and attempts within the run's budget. */
import type { CallUsage, Reservation } from '../../generated/schemas.js';
import type { ConditionFacts } from '../../graph/condition.js';
import { noRoute } from '../../graph/routing.js';
import { needText } from '../budget/budget-text.js';
import {
  exceededLimits,
  neededAgain,
  neededByStep,
  neededFor,
  costReserved,
  reservationFor,
  reservationOf,
  withoutCall,
  withoutCalls,
} from '../budget/spending.js';
import type { Cost, RunSpending } from '../budget/spending.js';
import { limitsText } from '../cost-text.js';
import { complete, fail, failTooLarge, pause } from '../ends.js';
import { hasPanel, readsPanel } from '../panels/panels.js';
import type { DecisionContext, PendingEvents } from '../pending-events.js';
import type { FrontierNode, RunState } from '../state.js';
import { attemptInFlight, labelOf, memberOf, openPauseOf } from '../state.js';
import { isTooLarge } from './branch.js';
import { branchAtBudget, branchAtEnd, branchInto, nextFrontier, stoppedSteps } from './frontier.js';
import { attemptsOfNodes, firstAttempts, firstReservation, nodeOf, startNextAttempt, startNode } from './node-start.js';

/** Starts the next frontier, pauses before it, or completes the run. All nodes of the frontier must have ended. */
export function goOn(pending: PendingEvents): void {
  const again = stoppedSteps(pending.run).map((at) => ({ at, delayMs: 0 }));
  if (again.length > 0) return startWork(pending, { again, nodes: [] });
  startFrontier(pending, nextFrontier(pending.run), { pauses: pending.run.request.godMode });
}

/**
 * Starts the first attempts of all nodes of a frontier, or pauses before them. Completes the run if the frontier is empty, and
 * fails it if it would exceed a limit. Further attempts of a step do not count again. Check a new limit of the next nodes here,
 * and any other limit in the command that reaches it, as `claim` does for takeovers.
 */
export function startFrontier(
  pending: PendingEvents,
  next: readonly string[],
  { pauses = false }: { readonly pauses?: boolean } = {},
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
  } else if (pauses) {
    pause(pending, next);
  } else {
    startWork(pending, { again: [], nodes: next });
  }
}

/** Fails a run because no edge after a node holds. */
export function failWithoutRoute(pending: PendingEvents, node: string, facts: ConditionFacts): void {
  fail(pending, { kind: 'no_route', error: noRoute(pending.run.plan, node, facts), node });
}

// Within the budget.

/** Attempts to begin together: further ones of steps, and the first ones of nodes. */
export interface Work {
  readonly again: readonly { readonly at: FrontierNode; readonly delayMs: number }[];
  readonly nodes: readonly string[];
}

/** Begins attempts, all of them or, if their calls would pass the budget, none. */
export function startWork(pending: PendingEvents, work: Work): void {
  const needed = missingBudget(pending, work);
  if (needed !== null) return stopAtBudget(pending, work, needed);
  for (const { at, delayMs } of work.again) startNextAttempt(pending, at, delayMs);
  for (const node of work.nodes) {
    const step = pending.run.progress.steps + 1;
    const branch = branchInto(pending.run, node, step);
    for (const attempt of firstAttempts(pending.run, { node, step, branch })) startNode(pending, attempt, 0);
  }
}

/** The budget that a run lacks to begin attempts, or null if it lacks none. */
export function missingBudget({ run, context }: PendingEvents, work: Work): Cost | null {
  const { spending } = run;
  if (spending === null) return null;
  const needed = neededToStart({ ...run, spending }, work, context);
  return exceededLimits(spending.budget, needed).length > 0 ? needed : null;
}

/** The budget that a run needs to begin attempts. */
function neededToStart(run: RunWithBudget, { again, nodes }: Work, context: DecisionContext): Cost {
  const { spending } = run;
  return neededFor(spending, [
    ...again.map(({ at }) => neededByStep(spending, at.step, firstReservation(run, at, context))),
    ...attemptsOfNodes(run, nodes).map((each) => costReserved(firstReservation(run, each, context))),
  ]);
}

type RunWithBudget = RunState & { readonly spending: RunSpending };

/** The budget that a paused run needs to begin its next attempts. */
export function neededAfterPause(run: RunWithBudget, next: readonly string[], context: DecisionContext): Cost {
  const again = stoppedSteps(run).map((at) => ({ at, delayMs: 0 }));
  return neededToStart(run, { again, nodes: notYetBegun(run, next) }, context);
}

/** The least budget with which a run goes on, or null if it is not paused for its budget. */
export function neededBudget(run: RunState, context: DecisionContext): Reservation | null {
  const pause = openPauseOf(run);
  const { spending } = run;
  if (pause?.reason !== 'budget' || spending === null) return null;
  return reservationFor(neededAfterPause({ ...run, spending }, pause.nextNodes, context));
}

/** The nodes among these of which no step has begun. */
export function notYetBegun({ progress }: RunState, nodes: readonly string[]): readonly string[] {
  return nodes.filter((node) => !progress.frontier.some((each) => each.node === node));
}

/**
 * Does not begin attempts whose calls would pass the budget: pauses, completes or fails the run. While other nodes are
 * active, a pause or completion waits for them: their calls are made, and may cost less than they have reserved.
 */
function stopAtBudget(pending: PendingEvents, { again, nodes }: Work, needed: Cost): void {
  const { run } = pending;
  if (run.spending === null) return;
  const { onExceeded } = run.spending.budget;
  const steps = again.map(({ at }) => at.step);
  const isUnderWay = ({ active, step, children }: FrontierNode): boolean =>
    active && (!steps.includes(step) || children.some(({ end }) => end === null));
  if (onExceeded !== 'fail' && run.progress.frontier.some(isUnderWay)) return stopAttempts(pending, again);
  const next = [...new Set([...again.map(({ at }) => at.node), ...nodes])];
  const result = branchAtBudget(run);
  if (onExceeded === 'pause') {
    const { usd, tokens } = run.spending.budget;
    const { spent } = withoutCalls(run.spending);
    pause(pending, next, { usd, tokens, spent: reservationFor(spent), needed: reservationFor(needed) });
  } else if (onExceeded === 'finish' && result.draft !== null) {
    complete(pending, result, 'budget');
  } else {
    const error = `Stopped at the budget: ${stopText(withoutCalls(run.spending), needed)}`;
    fail(pending, { kind: 'budget_exceeded', error, node: next[0] ?? null });
  }
}

/** Ends attempts that were lost with their instance while runs of councils hold the rest of the budget, until those end. */
function stopAttempts(pending: PendingEvents, again: Work['again']): void {
  for (const { at } of again) {
    const isLost = attemptInFlight(pending.run, at) !== undefined;
    if (!isLost || pending.run.plan.node(at.node).role === 'council') continue;
    const { step, node, attempt, model } = at;
    const message = `Node "${node}" waits for what the runs of councils do not spend of the budget`;
    const failure = { kind: 'budget_exceeded', message, retryable: true };
    pending.write({
      type: 'NodeFailed',
      data: { step, node, attempt, ...memberOf(at), ...(model !== null && { model }), ...failure },
    });
  }
}

function stopText({ spent, budget }: RunSpending, needed: Cost): string {
  const amounts = `${limitsText(reservationFor(spent))} spent of ${limitsText(budget)}`;
  return `${amounts}. ${needText(budget, reservationFor(needed))}`;
}

/** Another call of an attempt in a run with a budget. */
export interface NextCall {
  readonly step: number;
  readonly attempt: number;
  /** The texts of its request. */
  readonly texts: readonly string[];
  /** How many tools it declares. */
  readonly tools: number;
  /** Usage of the call before, and of all calls of the attempt so far. */
  readonly last: CallUsage;
  readonly total: CallUsage;
}

/** Records that an attempt makes another call, or ends the attempt if the call would pass the budget. */
export function reserveCall(pending: PendingEvents, { step, attempt, texts, tools, last, total }: NextCall): void {
  const { run, context } = pending;
  const at = attemptInFlight(run, { step, attempt });
  if (at === undefined || run.spending === null) return;
  const { node, model } = at;
  const price = model === null ? null : context.priceOf(model);
  const reserved = reservationOf(nodeOf(run, at), { texts, tools, price });
  const spending = withoutCall(run.spending, step, last);
  if (exceededLimits(spending.budget, neededFor(spending, [costReserved(reserved)])).length === 0) {
    pending.write({ type: 'CallReserved', data: { step, node, attempt, ...last, reserved } });
    return;
  }
  // The step begins again from its first call.
  const needed = neededFor(spending, [neededAgain(run.spending, { step, last, reserved })]);
  const message = `Node "${node}" was stopped at the budget: ${stopText(spending, needed)}`;
  const failure = { kind: 'budget_exceeded', message, retryable: true, ...total, lastCall: last, reserved };
  pending.write({
    type: 'NodeFailed',
    data: { step, node, attempt, ...memberOf(at), ...(model !== null && { model }), ...failure },
  });
  if (at.seat === null) stopAtBudget(pending, { again: [{ at, delayMs: 0 }], nodes: [] }, needed);
}
