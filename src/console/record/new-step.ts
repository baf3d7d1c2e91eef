/** How steps and attempts begin in the history of a run. */
import type { RunEvent } from '../../client/run-events.js';
import type { RunState } from '../../run/state.js';
import { newPanel, panelsReadBy } from './panel-steps.js';
import type { Attempt, EventRef, Incoming, Step } from './run-history.js';

type NodeStarted = Extract<RunEvent, { type: 'NodeStarted' }>;

/**
 * The step of a node, panel, rank or jury that an event starts; its pause is not known here.
 *
 * @param first the run's first event
 */
export function newStep(
  { data: { step, node, iteration } }: NodeStarted,
  { before, after, first }: { readonly before: RunState; readonly after: RunState; readonly first: EventRef },
): Step {
  const begun = after.progress.frontier.find((each) => each.step === step);
  return {
    ...{ ...NEW_STEP, step, node, iteration, incoming: incomingOf(before, node) },
    panel: newPanel(after, step, first),
    panelsRead: begun === undefined ? [] : panelsReadBy(after, begun),
  };
}

/** The attempt that an event starts. @param before the state before it: it knows of an outage */
export function attemptOf(event: NodeStarted, before: RunState): Attempt {
  const { step, attempt, delayMs, model, tools, inputHash, order_shown: orderShown = [] } = event.data;
  const outageMs = before.progress.frontier.find((each) => each.step === step)?.outage?.budgetMs ?? null;
  return {
    ...{ attempt, started: { seq: event.seq, at: event.at }, delayMs, outageMs, model, tools, inputHash, orderShown },
    ...{ toolCalls: [], costs: [], ended: null },
  };
}

function incomingOf({ plan, progress }: RunState, node: string): readonly Incoming[] {
  return progress.arrivals
    .filter((each) => each.node === node)
    .sort((a, b) => a.order - b.order)
    .map(({ from, order }) => ({ fromStep: from, edge: plan.graph.edges[order]?.id ?? null }));
}

/** The steps of a fork's parent that its first state names. The fork executes those that are still open. */
export function stepsBefore(run: RunState, first: EventRef): readonly Step[] {
  const { frontier, arrivals, ended, iterationCount: iteration } = run.progress;
  const nodes = new Map<number, string>();
  for (const { from, order } of arrivals) {
    const source = run.plan.graph.edges[order]?.source;
    if (source !== undefined) nodes.set(from, source);
  }
  for (const { node, from } of ended) nodes.set(from, node);
  for (const { node, step, seat } of frontier) nodes.set(seat?.panelStep ?? step, node);
  const open = new Map(frontier.flatMap((each) => (each.active || each.seat !== null ? [[each.step, each]] : [])));
  return [...nodes]
    .sort(([a], [b]) => a - b)
    .map(([step, node]) => {
      const found = open.get(step);
      return {
        ...{ ...NEW_STEP, step, node, iteration, isInherited: found === undefined },
        ...(found !== undefined && { panel: newPanel(run, step, first), panelsRead: panelsReadBy(run, found) }),
      };
    });
}

/** A step without attempts. */
const NEW_STEP = {
  ...{ isInherited: false, pause: null, incoming: [], attempts: [], output: null, routes: [] },
  ...{ panel: null, panelsRead: [] },
};
