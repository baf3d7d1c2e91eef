/** What a human's override makes of a run's state. */
import type { StateOverride } from '../generated/schemas.js';
import type { Branch } from './branch.js';
import { overrideBranch } from './branch.js';
import type { RunState } from './state.js';

/** The state under a human's override, in every living branch; the last node, if it was alone, counts as overridden too. */
export function overrideState(state: RunState, override: StateOverride, gate: string): RunState {
  const change = <T extends { readonly branch: Branch }>(each: T): T => ({
    ...each,
    branch: overrideBranch(each.branch, override, { gate, passScore: state.limits.passScore }),
  });
  return {
    ...state,
    inputTopic: override.input_topic ?? state.inputTopic,
    iterationCount: override.iteration_count ?? state.iterationCount,
    arrivals: state.arrivals.map(change),
    front: state.front.map(change),
    ended: state.ended.map(change),
  };
}
