/** Which answers of panels a step's prompt shows, in which order, and without which names. */
import { letterAt, maskNames, namesToMask, orderShown } from '../council/deliberation/anonymity.js';
import { labelInOneLine } from '../graph/label.js';
import { relettered } from '../council/deliberation/relettered.js';
import type { Plan } from '../graph/plan.js';
import type { PromptInput } from '../models/port.js';
import type { PanelAnswers } from './deliberation.js';
import { draftOfAnswers } from './deliberation.js';
import type { StepPlace } from './members.js';
import { readsPanel } from './members.js';

/** The panels whose answers a step's prompt shows, each with those that this reader sees. */
function panelsShown(plan: Plan, { node, branch, member }: StepPlace): readonly PanelAnswers[] {
  const { deliberation } = branch;
  if (deliberation === null) return [];
  const { panel, inDraft } = deliberation;
  const reader = plan.node(node);
  if (!readsPanel(reader)) return inDraft;
  if (panel === null) return [];
  const leavesOutOwn = reader.role === 'rank' && reader.members === undefined && panel.answers.length >= 3;
  return leavesOutOwn ? [{ ...panel, answers: panel.answers.filter((each) => each.member !== member) }] : [panel];
}

/**
 * The members whose answers a step's prompt shows, in the order shown: sorted by a hash of the run, the step, the reader and
 * the member, so that it follows from the record and favours nobody.
 */
export function orderShownTo(
  plan: Plan,
  at: StepPlace,
  { runId, step, sha256 }: { readonly runId: string; readonly step: number; readonly sha256: (text: string) => string },
): readonly string[] {
  const reader = { runId, step, reviewer: at.member ?? at.node };
  return panelsShown(plan, at).flatMap(({ answers }) =>
    orderShown(
      reader,
      answers.map(({ member }) => member),
      sha256,
    ),
  );
}

/** Whether a recorded order holds exactly the members whose answers the step shows. */
export function isOrderOf(plan: Plan, at: StepPlace, order: readonly string[]): boolean {
  let from = 0;
  for (const { answers } of panelsShown(plan, at)) {
    const shown = order.slice(from, (from += answers.length));
    if (new Set(shown).size !== answers.length || !answers.every(({ member }) => shown.includes(member))) return false;
  }
  return from === order.length;
}

/** The part of a prompt that comes from panels, ranks and judges. */
export type DeliberationInput = Pick<PromptInput, 'draft' | 'answers' | 'ranking' | 'analysis'>;

/** The part of a step's prompt that follows from its branch, and the names that are hidden in it. */
export interface Shown {
  readonly input: DeliberationInput;
  readonly masked: readonly string[];
}

/** A step's draft, or the anonymous answers in its place, with their ranking and analysis. */
export function shownTo(plan: Plan, at: StepPlace, order: readonly string[]): Shown {
  const { draft, deliberation } = at.branch;
  const panels = panelsShown(plan, at);
  const [panel, ...others] = panels;
  if (panel === undefined || deliberation === null) return { input: { draft }, masked: [] };
  const { answers, masked } = anonymised(plan, panels, order);
  const isDraft = others.length === 0 && (readsPanel(plan.node(at.node)) || draft === draftOfAnswers(panel.answers));
  if (!isDraft) return { input: { draft: withoutLabels(draft ?? '', panels, answers) }, masked };
  const { points } = panel;
  const letterOf = (member: string): string => letterAt(order.indexOf(member));
  const ranking = points
    ?.filter(({ member }) => order.includes(member))
    .map(({ member, points: given }) => ({ letter: letterOf(member), points: given }));
  const { analysis } = deliberation;
  const input = {
    draft: null,
    answers,
    ...(ranking !== undefined && { ranking }),
    ...(analysis !== null && { analysis: relettered(analysis.value, analysis.order, order) }),
  };
  return { input, masked };
}

type Answers = NonNullable<PromptInput['answers']>;

/** The answers in the order shown, without the names of models and providers. */
function anonymised(
  plan: Plan,
  panels: readonly PanelAnswers[],
  order: readonly string[],
): { readonly answers: Answers; readonly masked: readonly string[] } {
  const names = namesToMask(panels.flatMap((panel) => modelsOf(plan, panel)));
  const masked = new Set<string>();
  let from = 0;
  const answers = panels.flatMap((panel) => {
    const shown = order.slice(from, from + panel.answers.length);
    const offset = from;
    from += shown.length;
    return shown.map((member, index) => {
      const text = panel.answers.find((each) => each.member === member)?.text ?? '';
      const hidden = maskNames(text, names);
      for (const name of hidden.masked) masked.add(name);
      return { letter: letterAt(offset + index), text: hidden.text };
    });
  });
  return { answers, masked: [...masked].sort() };
}

/** The names of the models that a panel's members were to ask or have asked. */
function modelsOf(plan: Plan, { node, answers }: PanelAnswers): readonly string[] {
  const { members = [], model, fallbacks = [] } = plan.node(node);
  const own = members.flatMap((member) => [member.model, ...(member.fallbacks ?? [])]);
  return [model, ...fallbacks, ...own, ...answers.map((each) => each.model)].filter(
    (name): name is string => name !== undefined && name !== null,
  );
}

/** A joined draft in which the answers of panels stand without the labels of their members. */
function withoutLabels(draft: string, panels: readonly PanelAnswers[], answers: Answers): string {
  let from = 0;
  return panels.reduce((text, panel) => {
    const own = answers.slice(from, (from += panel.answers.length));
    const anonymous = own.map(({ letter, text: answer }) => `## Response ${letter}\n${answer}`).join('\n\n');
    return text.replace(draftOfAnswers(panel.answers), () => anonymous);
  }, draft);
}

/** The feedback in a step's prompt, oldest first. Ranks and judges do not see the labels of a jury's members. */
export function feedbackShownTo(plan: Plan, { node, branch }: Pick<StepPlace, 'node' | 'branch'>): readonly string[] {
  const texts = branch.feedback.map(({ text }) => text);
  if (!readsPanel(plan.node(node))) return texts;
  const juries = plan.graph.nodes.filter(({ role, members }) => role === 'critic' && members !== undefined);
  const labels = juries.flatMap(({ members = [] }) => members.map(({ label }) => `## ${labelInOneLine(label)}`));
  const headings = new Set(labels);
  return texts.map((text) => {
    const lines = text.split('\n').map((line) => (headings.has(line) ? '## A critic' : line));
    return lines.join('\n');
  });
}
