/** A branch leaves the node that it was at: where it goes on to, or that it ends there. */
import type { Branch } from './branch.js';
import type { Arrival, RunState } from './state.js';

/** A branch, the step that it comes from, and the nodes that it goes on to; none: it ends. */
export interface Leaving {
  readonly node: string;
  readonly step: number;
  readonly branch: Branch;
  readonly next: readonly string[];
}

export function leave(state: RunState, { node, step, branch, next }: Leaving): Pick<RunState, 'arrivals' | 'ended'> {
  if (next.length === 0) {
    // Inside a rework loop a branch may end at a node again: the round before is out of date.
    const others = state.ended.filter((each) => each.node !== node);
    return { arrivals: state.arrivals, ended: [...others, { node, from: step, branch }] };
  }
  const { draftFrom, scoreFrom } = branch;
  const parted = next.length < 2 ? branch : { ...branch, forks: [...branch.forks, { step, draftFrom, scoreFrom }] };
  const arrivals: Arrival[] = next.map((target) => ({
    node: target,
    from: step,
    order: state.plan.edgeOrder(node, target),
    branch: parted,
  }));
  // Sent back before its target has run, a branch comes by the same edge again: what it left there is out of date.
  const others = state.arrivals.filter((each) => !arrivals.some(({ order }) => order === each.order));
  return { arrivals: [...others, ...arrivals], ended: state.ended };
}

/** The state after its last front's only node has taken another route. */
export function rerouted(state: RunState, next: readonly string[]): RunState {
  const [last] = state.frontier;
  if (last === undefined) return state;
  const others = {
    ...state,
    arrivals: state.arrivals.filter((each) => each.from !== last.step),
    ended: state.ended.filter((each) => each.from !== last.step),
  };
  return { ...others, ...leave(others, { node: last.node, step: last.step, branch: last.branch, next }) };
}
