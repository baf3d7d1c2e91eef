/** Which answers of panels a step's prompt shows, in which order, and without which names. */
import { letterAt, maskNames, namesToMask, orderShown } from '../../council/deliberation/anonymity.js';
import { labelInOneLine } from '../../graph/label.js';
import { relettered, withoutLetters } from '../../council/deliberation/relettered.js';
import type { Plan } from '../../graph/plan.js';
import type { PromptInput } from '../../models/port.js';
import type { PanelAnswers } from './deliberation.js';
import { answersInOrder, draftOfAnswers } from './deliberation.js';
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
 * the member, so that it can be recomputed from the record and favours no member.
 */
export function orderShownTo(
  plan: Plan,
  at: StepPlace,
  { runId, step, sha256 }: { readonly runId: string; readonly step: number; readonly sha256: (text: string) => string },
): readonly string[] {
  const members = panelsShown(plan, at).flatMap(({ answers }) => answers.map(({ member }) => member));
  return orderShown({ runId, step, reviewer: at.member ?? at.node }, members, sha256);
}

/** Whether a recorded order holds exactly the members whose answers the step shows. */
export function isOrderOf(plan: Plan, at: StepPlace, order: readonly string[]): boolean {
  const panels = panelsShown(plan, at);
  const count = panels.reduce((sum, { answers }) => sum + answers.length, 0);
  return order.length === count && answersInOrder(panels, order).length === count;
}

/** The part of a prompt that comes from panels, ranks and judges. */
type DeliberationInput = Pick<PromptInput, 'draft' | 'answers' | 'ranking' | 'analysis'>;

/** The part of a step's prompt that follows from its branch, and the names of models that it hides. */
export interface Shown {
  readonly input: DeliberationInput;
  readonly masked: readonly string[];
}

/** A step's draft, or the anonymous answers in its place, with their ranking and analysis. */
export function shownTo(plan: Plan, at: StepPlace, order: readonly string[]): Shown {
  const { draft, deliberation } = at.branch;
  if (deliberation === null) return { input: { draft }, masked: [] };
  const panels = panelsShown(plan, at);
  const names = namesToMask(panels.flatMap((each) => modelsOf(plan, each)));
  const compared = analysisIn(deliberation, order, names);
  const [panel, ...others] = panels;
  if (panel === undefined) return { input: { draft, ...compared }, masked: [] };
  const rest = { ...(others.length === 0 && rankingIn(panel, order)), ...compared };
  const isWhole = others.length === 0 && (readsPanel(plan.node(at.node)) || draft === draftOfAnswers(panel.answers));
  if (!isWhole) {
    const { text, masked } = maskNames(withoutLabels(draft ?? '', panels, order), names);
    return { input: { draft: text, ...rest }, masked: masked.toSorted() };
  }
  const hidden = answersInOrder(panels, order).map(({ text }) => maskNames(text, names));
  const answers = hidden.map(({ text }, index) => ({ letter: letterAt(index), text }));
  const masked = [...new Set(hidden.flatMap((each) => each.masked))].toSorted();
  return { input: { draft: null, answers, ...rest }, masked };
}

/** A panel's ranking in the letters shown, if it has one. */
function rankingIn({ points }: PanelAnswers, order: readonly string[]): Pick<PromptInput, 'ranking'> {
  if (points === null) return {};
  const shown = points.filter(({ member }) => order.includes(member));
  const ranking = shown.map((each) => ({ letter: letterAt(order.indexOf(each.member)), points: each.points }));
  return { ranking };
}

/** The judge's analysis in the letters shown, if there is one, without the names of models. */
function analysisIn(
  { analysis }: NonNullable<StepPlace['branch']['deliberation']>,
  order: readonly string[],
  names: readonly string[],
): Pick<PromptInput, 'analysis'> {
  if (analysis === null) return {};
  const orders = { from: analysis.order, to: order };
  return { analysis: relettered(analysis.value, orders, (text) => maskNames(text, names).text) };
}

/** The names of the models that a panel's members were to ask or have asked. */
function modelsOf(plan: Plan, { node, answers }: PanelAnswers): readonly string[] {
  const { members = [], model, fallbacks = [] } = plan.node(node);
  const own = members.flatMap((member) => [member.model, ...(member.fallbacks ?? [])]);
  return [model, ...fallbacks, ...own, ...answers.map((each) => each.model)].filter(
    (name): name is string => name !== undefined && name !== null,
  );
}

/** A joined or edited draft, with a letter in place of each heading that holds a member's label. */
function withoutLabels(draft: string, panels: readonly PanelAnswers[], order: readonly string[]): string {
  const shown = answersInOrder(panels, order);
  const headings = panels
    .flatMap(({ answers }) => answers)
    .map((answer) => ({ line: `## ${labelInOneLine(answer.label)}`, letter: letterAt(shown.indexOf(answer)) }));
  const lines = draft.split('\n').map((line) => {
    const at = headings.findIndex((heading) => heading.line === line);
    const [heading] = at < 0 ? [] : headings.splice(at, 1);
    return heading === undefined ? line : `## Response ${heading.letter}`;
  });
  return lines.join('\n');
}

/**
 * The feedback in a step's prompt, oldest first. Where the prompt shows the anonymous answers of panels, the names of their
 * models and the labels of a jury's members are hidden, and so are letters: the critic saw the answers in another order.
 */
export function feedbackShownTo(plan: Plan, at: StepPlace, order: readonly string[]): readonly string[] {
  const texts = at.branch.feedback.map(({ text }) => text);
  const panels = panelsShown(plan, at);
  if (panels.length === 0) return texts;
  const names = namesToMask(panels.flatMap((each) => modelsOf(plan, each)));
  const juries = plan.graph.nodes.filter(({ role, members }) => role === 'critic' && members !== undefined);
  const labels = juries.flatMap(({ members = [] }) => members.map(({ label }) => `## ${labelInOneLine(label)}`));
  const headings = new Set(labels);
  return texts.map((text) => {
    const lines = text.split('\n').map((line) => (headings.has(line) ? '## A critic' : line));
    return maskNames(withoutLetters(lines.join('\n'), order.length), names).text;
  });
}
