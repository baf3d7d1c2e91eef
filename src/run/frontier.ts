/** Which nodes run next, and what they run on: branches that move in step, wait for each other and join. */
import type { Branch, Joining } from './branch.js';
import { joinBranches, partsOfJoin } from './branch.js';
import { isOutstanding } from './fork-snapshot.js';
import type { Arrival, RunState } from './state.js';
import { labelOf } from './state.js';

/**
 * The next front, in the order of the edges the branches came by: every node reached that no other live branch can
 * still reach onward. None is left only when no branch lives, for edges that lead onward have no cycle.
 *
 * Asked when a run is decided on, never when it is folded: its events name the nodes that start or wait, so runs whose
 * fronts were chosen by another rule fold as they were.
 */
export function nextFrontier({ arrivals, plan }: Pick<RunState, 'arrivals' | 'plan'>): readonly string[] {
  const reached = [...new Set([...arrivals].sort((a, b) => a.order - b.order).map((each) => each.node))];
  return reached.filter((node) => !reached.some((other) => other !== node && plan.canStillReach(other, node)));
}

/**
 * Nodes of a front whose start is recorded only up to some node of it, as it can be where a run is forked. None of the
 * front may have ended yet: what has arrived since would count as part of it.
 */
export function notYetStarted({ frontier, arrivals, plan }: RunState): readonly string[] {
  const underWay = frontier.map(({ node, step, branch }) => ({ node, from: step, order: -1, branch }));
  const whole = nextFrontier({ plan, arrivals: [...underWay, ...arrivals] });
  return whole.filter((node) => !frontier.some((each) => each.node === node));
}

/** What is about to run: the nodes under way with those of their front not yet started, or else the next front. */
export function nodesAhead(run: RunState): readonly string[] {
  const underWay = run.frontier.filter((each) => isOutstanding(run, each));
  if (underWay.length === 0) return nextFrontier(run);
  const others = underWay.length === run.frontier.length ? notYetStarted(run) : [];
  return [...underWay.map(({ node }) => node), ...others];
}

/** What a node of the next front works on: its arrivals, joined. */
export function branchInto(state: RunState, node: string, step: number): Branch {
  const joining = state.arrivals.filter((each) => each.node === node);
  const joined = joinBranches(joining, {
    from: String(step),
    by: node,
    labelOf: (id) => labelOf(state.plan.graph, id),
  });
  return joining.length < 2 ? joined : { ...joined, forks: openForks(joined, state, node) };
}

/** The branches whose drafts are put together before a node; none: it works on one draft as it is, or on none. */
export function partsInto(state: RunState, node: string): readonly Branch[] {
  return partsOfJoin(state.arrivals.filter((each) => each.node === node));
}

/** The branches whose drafts are put together at the run's end; none: its last word is one draft as it is, or none. */
export function partsAtEnd(state: RunState): readonly Branch[] {
  return partsOfJoin(endings(state));
}

/** What is shown while nodes wait for a human: what the first of them would work on. */
export function branchShown(state: RunState, nextNodes: readonly string[]): Branch {
  const [first] = nextNodes;
  return first === undefined ? state.shown : branchInto(state, first, state.steps + 1);
}

/** The run's last word: the branches that ended, joined in the order of the graph's nodes. */
export function branchAtEnd(state: RunState): Branch {
  return joinBranches(endings(state), { from: null, by: null, labelOf: (id) => labelOf(state.plan.graph, id) });
}

function endings({ ended, plan }: RunState): readonly Joining[] {
  return ended.map(({ node, branch }) => ({ branch, order: plan.nodeOrder(node) }));
}

/** Forks of a joined branch that still have another living or ended branch to meet. */
function openForks(joined: Branch, state: RunState, into: string): Branch['forks'] {
  const others: readonly Branch[] = [
    ...state.arrivals.filter((each: Arrival) => each.node !== into).map((each) => each.branch),
    ...state.frontier.filter((each) => each.active).map((each) => each.branch),
    ...state.ended.map((each) => each.branch),
  ];
  const lastOpen = joined.forks.findLastIndex((fork, depth) =>
    others.some((other) => other.forks[depth]?.step === fork.step),
  );
  return joined.forks.slice(0, lastOpen + 1);
}
