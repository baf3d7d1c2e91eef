/** The members' part of panels, ranks and juries in the history of a run. */
import { inheritedAnswers } from '../../audit/inherited-answers.js';
import type { PanelAnswers } from '../../run/panels/deliberation.js';
import { membersOf, readsPanel } from '../../run/panels/members.js';
import type { OpenPanel } from '../../run/panels/panels.js';
import { openPanel } from '../../run/panels/panels.js';
import type { FrontierNode, RunState } from '../../run/state.js';
import type { Attempt, EventRef, KeptAnswers, MemberStep, PanelEnd, PanelSteps } from './run-history.js';

/**
 * The members of a panel, rank or jury under way, none of which has an attempt in this run.
 *
 * @param first the run's first event: it holds the answers of a fork's parent
 * @returns null if the step is that of a node
 */
export function newPanel(run: RunState, panelStep: number, first: EventRef): PanelSteps | null {
  const panel = openPanel(run, panelStep);
  if (panel === null) return null;
  const labels = new Map(membersOf(run.plan, panel).map(({ id, label }) => [id, label]));
  return { members: panel.steps.map((each) => memberOf(each, labels, first)), quorum: null, closed: null };
}

function memberOf(
  { step, model, seat, orderShown }: OpenPanel['steps'][number],
  labels: ReadonlyMap<string, string>,
  first: EventRef,
): MemberStep {
  const { member, output, error } = seat;
  return {
    ...{ step, member, label: labels.get(member) ?? member, attempts: [] },
    output: output === null ? null : { ...first, value: output },
    inherited: output === null && error === null ? null : { model, error, orderShown },
  };
}

/** A panel with its end: the calls of members that have not answered are aborted. */
export function closedPanel(panel: PanelSteps, closed: PanelEnd): PanelSteps {
  const discarded = ({ ended, ...attempt }: Attempt): Attempt => ({
    ...attempt,
    ended: ended ?? { seq: closed.seq, at: closed.at, how: 'discarded' },
  });
  return {
    ...panel,
    closed,
    members: panel.members.map((member) => ({ ...member, attempts: member.attempts.map(discarded) })),
  };
}

/** The panels whose answers a step's prompt shows. */
export function panelsReadBy({ plan }: RunState, { node, branch }: FrontierNode): readonly PanelAnswers[] {
  const { panel = null, inDraft = [] } = branch.deliberation ?? {};
  if (!readsPanel(plan.node(node))) return inDraft;
  return panel === null ? [] : [panel];
}

/** The answers of closed panels that a fork holds at its start, by panel. */
export function answersKept(run: RunState): readonly KeptAnswers[] {
  const panels = new Map<number, KeptAnswers>();
  for (const { node, panelStep, answer } of inheritedAnswers(run)) {
    const { answers = [] } = panels.get(panelStep) ?? {};
    panels.set(panelStep, { node, panelStep, answers: [...answers, answer] });
  }
  return [...panels.values()];
}
