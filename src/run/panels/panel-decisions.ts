/** What follows from the answers of the members of panels, ranks and juries: part of `decide.ts`. */
import type { NodeCompletedData, NodeFailedData } from '../../generated/schemas.js';
import { isTooLarge } from '../frontier/branch.js';
import { callsCounted } from '../effort.js';
import { fail, failTooLarge } from '../ends.js';
import { routeOf } from '../frontier/node-route.js';
import { conditionFacts } from '../frontier/output.js';
import type { OpenPanel, SeatedStep } from './panels.js';
import { isGraceOver, openPanel, openPanels, outcomeOf, progressOf } from './panels.js';
import type { PendingEvents } from '../pending-events.js';
import { failWithoutRoute, goOn } from '../frontier/start.js';
import type { RunState, Seat } from '../state.js';
import { isFinished, labelOf, memberOf } from '../state.js';

/** Records a member's answer, or discards it if the grace of its panel is over. */
export function completeMember(
  pending: PendingEvents,
  at: SeatedStep,
  { output, ...result }: Omit<NodeCompletedData, 'route' | 'node'>,
): void {
  if (closeIfGraceOver(pending, at.seat)) return;
  const model = at.model !== null && { model: at.model };
  const data = { node: at.node, ...memberOf(at), ...model, output, ...withRecordedCalls(pending.run, result) };
  pending.write({ type: 'NodeCompleted', data });
  settlePanel(pending, at.seat.panelStep);
}

/** Closes a panel if its grace is over. @returns whether it did */
export function closeIfGraceOver(pending: PendingEvents, { panelStep }: Seat): boolean {
  const panel = openPanel(pending.run, panelStep);
  if (panel === null || !isGraceOver(panel, pending.context.at)) return false;
  settlePanel(pending, panelStep);
  return true;
}

/** Closes the panels whose grace is over. @returns whether there are any */
export function closeDuePanels(pending: PendingEvents): boolean {
  if (pending.run.phase.status !== 'running') return false;
  const due = openPanels(pending.run).filter((panel) => isGraceOver(panel, pending.context.at));
  for (const { panelStep } of due) if (!isFinished(pending.run)) settlePanel(pending, panelStep);
  return due.length > 0;
}

/**
 * Settles the panels of a run that continues: a fork's record may lack what follows from the last answer.
 *
 * @returns whether one has closed
 */
export function settlePanels(pending: PendingEvents): boolean {
  const before = openPanels(pending.run);
  for (const { panelStep } of before) if (!isFinished(pending.run)) settlePanel(pending, panelStep);
  return before.some(({ panelStep }) => openPanel(pending.run, panelStep) === null);
}

/** Settles the panel of a member whose attempt the budget has stopped. */
export function settleStopped(pending: PendingEvents, step: number): void {
  const at = pending.run.progress.frontier.find((each) => each.step === step);
  if (at !== undefined && at.seat !== null && !at.active) settlePanel(pending, at.seat.panelStep);
}

/** Records what follows from the answers of a panel's members so far. */
export function settlePanel(pending: PendingEvents, panelStep: number): void {
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
  if (pending.run.progress.frontier.every(({ active }) => !active)) goOn(pending);
}

function closePanel(pending: PendingEvents, panel: OpenPanel): void {
  const { node, panelStep } = panel;
  const { branch, iterationCount, answered, failed, discarded, result } = outcomeOf(pending.run, panel);
  const route = routeOf(pending.run, { node, branch, iterationCount });
  pending.write({
    type: 'PanelClosed',
    data: {
      node,
      panelStep,
      answered,
      failed,
      discarded,
      result,
      route: route ?? { next: [], reason: 'no condition holds' },
    },
  });
  if (route === null) {
    failWithoutRoute(pending, node, conditionFacts(branch, iterationCount));
  } else if (isTooLarge(branch)) {
    failTooLarge(pending, { place: `of "${labelOf(pending.run.plan.graph, node)}"`, node });
  } else if (pending.run.progress.frontier.every(({ active }) => !active)) {
    goOn(pending);
  }
}

/**
 * A result as its event records its calls. With a budget, the usage of the last call; without one, the number of calls,
 * unless the events of its attempt already show as many.
 */
export function withRecordedCalls<T extends CallsOfEnd>({ spending, effort }: RunState, result: T): T {
  const { lastCall, calls, ...rest } = result;
  if (spending !== null) return { ...rest, ...(lastCall !== undefined && { lastCall }) } as T;
  const isCounted = calls === undefined || calls <= callsCounted(effort, result.step);
  return { ...rest, ...(!isCounted && { calls }) } as T;
}

type CallsOfEnd = Pick<NodeFailedData, 'step' | 'lastCall' | 'calls'>;
