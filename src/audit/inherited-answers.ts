/** The answers of panels that closed before a fork. */
import type { Contribution } from '../run/panels/deliberation.js';
import type { RunState } from '../run/state.js';

export interface InheritedAnswer {
  /** Node of the panel. */
  readonly node: string;
  readonly panelStep: number;
  /** Step of the member. */
  readonly step: number;
  readonly answer: Contribution;
}

/** The answers that the branches of a fork hold at its start, in the order of their steps. */
export function inheritedAnswers({ plan, progress }: RunState): readonly InheritedAnswer[] {
  const { frontier, arrivals, ended } = progress;
  const panels = [...frontier, ...arrivals, ...ended].flatMap(({ branch: { deliberation } }) =>
    deliberation === null ? [] : [deliberation.panel, ...deliberation.inDraft],
  );
  const bySteps = new Map<number, InheritedAnswer>();
  for (const { node, panelStep, answers } of panels.filter((panel) => panel !== null)) {
    const ids = (plan.node(node).members ?? []).map(({ id }) => id);
    for (const answer of answers) {
      const step = panelStep + ids.indexOf(answer.member);
      bySteps.set(step, { node, panelStep, step, answer });
    }
  }
  return [...bySteps.values()].toSorted((a, b) => a.step - b.step);
}
