/** Which nodes run next and on which branch. A branch waits at a join for the others that can reach it. */
import type { Branch, Joining } from './branch.js';
import { joinBranches, partsOfJoin } from './branch.js';
import { isOpen, isOutstanding } from '../fork-snapshot.js';
import type { Plan } from '../../graph/plan.js';
import type { Arrival, FrontierNode, RunState } from '../state.js';
import { labelOf } from '../state.js';

/**
 * The next frontier, in the order of the edges by which the branches arrived: every node with an arrival that no other
 * live branch can still reach by forward edges. Empty only if no branch is live, because forward edges have no cycle.
 *
 * Only decisions use it, never the fold: events name the nodes that start or wait, so runs that were recorded under an
 * earlier rule fold the same.
 */
export function nextFrontier({ plan, progress }: RunState): readonly string[] {
  return readyNodes(plan, progress.arrivals);
}

function readyNodes(plan: Plan, arrivals: readonly Arrival[]): readonly string[] {
  if (arrivals.length < 2) return arrivals.map(({ node }) => node);
  const reached = [...new Set([...arrivals].sort((a, b) => a.order - b.order).map((each) => each.node))];
  return reached.filter((node) => !reached.some((other) => other !== node && plan.canStillReach(other, node)));
}

/**
 * Nodes of the current frontier without a recorded start, in a fork from the middle of a frontier's start. No node of the
 * frontier may have ended: its arrivals would count as part of the frontier.
 */
export function unstartedNodes({ plan, progress }: RunState): readonly string[] {
  const { frontier, arrivals } = progress;
  const started = frontier.map(({ node, step, branch }) => ({ node, from: step, order: -1, branch }));
  const complete = readyNodes(plan, [...started, ...arrivals]);
  return complete.filter((node) => !frontier.some((each) => each.node === node));
}

/** The nodes about to run: those in flight and the rest of their frontier, or the next frontier if none is in flight. */
export function nodesAhead(run: RunState): readonly string[] {
  const open = run.progress.frontier.filter((each) => isOpen(run, each));
  if (open.length === 0) return nextFrontier(run);
  const others = open.length === run.progress.frontier.length ? unstartedNodes(run) : [];
  return [...new Set(open.map(({ node }) => node)), ...others];
}

/** The branch that a node of the next frontier works on: the join of its arrivals. */
export function branchInto(state: RunState, node: string, step: number): Branch {
  const joining = state.progress.arrivals.filter((each) => each.node === node);
  const joined = joinBranches(joining, {
    from: String(step),
    by: node,
    labelOf: (id) => labelOf(state.plan.graph, id),
  });
  return joining.length < 2 ? joined : { ...joined, forks: openForks(joined, state, node) };
}

/** The branches whose drafts are concatenated before a node; empty if it works on one draft or none. */
export function partsInto(state: RunState, node: string): readonly Branch[] {
  return partsOfJoin(state.progress.arrivals.filter((each) => each.node === node));
}

/** The branches whose drafts are concatenated at the run's end; empty if the result is one draft or none. */
export function partsAtEnd(state: RunState): readonly Branch[] {
  return partsOfJoin(endings(state));
}

/** The branch that clients see at a pause: the one that the first waiting node would work on. */
export function branchShown(state: RunState, nextNodes: readonly string[]): Branch {
  const [first] = nextNodes;
  const begun = state.progress.frontier.find((each) => each.node === first && isOpen(state, each));
  if (begun !== undefined && state.spending !== null) return begun.branch;
  return first === undefined ? state.progress.shown : branchInto(state, first, state.progress.steps + 1);
}

/** The steps that wait for the budget to allow another attempt: their last one has ended without a result. */
export function stoppedSteps(run: RunState): readonly FrontierNode[] {
  if (run.spending === null) return [];
  return run.progress.frontier.filter((each) => !each.active && isOutstanding(run, each));
}

/** The result of a run that ends at its budget: the join of its branches as they are. */
export function branchAtBudget(state: RunState): Branch {
  return joinBranches(atBudget(state), { from: null, by: null, labelOf: (id) => labelOf(state.plan.graph, id) });
}

/** The branches whose drafts are concatenated if the run ends at its budget; empty if the result is one draft or none. */
export function partsAtBudget(state: RunState): readonly Branch[] {
  return partsOfJoin(atBudget(state));
}

/** All branches, in the order of the graph's nodes; those that wait at the same node in the order of their edges. */
function atBudget(state: RunState): readonly Joining[] {
  const { arrivals, ended, frontier } = state.progress;
  const waiting = [...arrivals].sort((a, b) => a.order - b.order);
  const begun = frontier.filter((each) => isOpen(state, each));
  return [...waiting, ...begun, ...ended].map(({ node, branch }) => ({ branch, order: state.plan.nodeOrder(node) }));
}

/** The run's result: the join of its ended branches, in the order of the graph's nodes. */
export function branchAtEnd(state: RunState): Branch {
  return joinBranches(endings(state), { from: null, by: null, labelOf: (id) => labelOf(state.plan.graph, id) });
}

function endings({ plan, progress }: RunState): readonly Joining[] {
  return progress.ended.map(({ node, branch }) => ({ branch, order: plan.nodeOrder(node) }));
}

/** Forks of a joined branch from which another branch, live or ended, is still separate. */
function openForks(joined: Branch, state: RunState, into: string): Branch['forks'] {
  const others: readonly Branch[] = [
    ...state.progress.arrivals.filter((each: Arrival) => each.node !== into).map((each) => each.branch),
    ...state.progress.frontier.filter((each) => each.active || each.seat !== null).map((each) => each.branch),
    ...state.progress.ended.map((each) => each.branch),
  ];
  const lastOpen = joined.forks.findLastIndex((fork, depth) =>
    others.some((other) => other.forks[depth]?.step === fork.step),
  );
  return joined.forks.slice(0, lastOpen + 1);
}
