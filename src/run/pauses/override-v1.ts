/** Version 1 of the override rules: decisions without an `overrideVersion` must fold as they always did. */
import type { StateOverride } from '../../generated/schemas.js';
import type { Branch } from '../frontier/branch.js';
import { boundedFeedback, verdictOf } from '../frontier/branch.js';
import type { RunState } from '../state.js';
import { withProgress } from '../state.js';

/** The state after an override of every branch, also of ended ones. A later join takes its values as shared. */
export function overrideEveryBranch(state: RunState, override: StateOverride, source: string): RunState {
  const change = <T extends { readonly branch: Branch }>(each: T): T => ({
    ...each,
    branch: overrideBranch(each.branch, override, { source, passScore: state.request.limits.passScore }),
  });
  const { inputTopic, iterationCount, arrivals, frontier, ended } = state.progress;
  return withProgress(state, {
    inputTopic: override.input_topic ?? inputTopic,
    iterationCount: override.iteration_count ?? iterationCount,
    arrivals: arrivals.map(change),
    frontier: frontier.map(change),
    ended: ended.map(change),
  });
}

function overrideBranch(
  branch: Branch,
  override: StateOverride,
  { source, passScore }: { readonly source: string; readonly passScore: number },
): Branch {
  const changed: { -readonly [K in keyof Branch]: Branch[K] } = { ...branch };
  if (override.current_draft !== undefined) {
    changed.draft = override.current_draft;
    changed.draftFrom = source;
    changed.draftBy = null;
    changed.forks = changed.forks.map((fork) => ({ ...fork, draftFrom: source }));
  }
  if (override.critic_score !== undefined) {
    changed.score = changed.givenScore = override.critic_score;
    changed.scoreFrom = source;
    changed.scoreBy = null;
    changed.verdict = verdictOf(override.critic_score, passScore);
    changed.forks = changed.forks.map((fork) => ({ ...fork, scoreFrom: source }));
  }
  if (override.feedback_history !== undefined) {
    changed.feedback = boundedFeedback(
      override.feedback_history.map((text, index) => ({ from: `${source}.${index}`, text })),
    );
  }
  if (override.route_decision !== undefined) changed.verdict = override.route_decision;
  return changed;
}
