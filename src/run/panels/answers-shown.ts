/** Which answers of panels a step's prompt shows, in which order, and without which names. */
import { letterAt, orderShown, withoutAuthor } from '../../council/deliberation/anonymity.js';
import { labelInOneLine } from '../../graph/label.js';
import { relettered, withoutLetters } from '../../council/deliberation/relettered.js';
import type { Plan } from '../../graph/plan.js';
import type { PromptInput } from '../../models/port.js';
import type { Contribution, PanelAnswers } from './deliberation.js';
import { answersInOrder, draftOfAnswers } from './deliberation.js';
import type { StepPlace } from './panels.js';
import { readsPanel } from './panels.js';

/** The panels whose answers a step's prompt shows, each with those that this reader sees. */
function panelsShown(plan: Plan, { node, branch, member }: StepPlace): readonly PanelAnswers[] {
  const { deliberation } = branch;
  if (deliberation === null) return [];
  const { panel, inDraft } = deliberation;
  const reader = plan.node(node);
  // A council sends no prompt.
  if (reader.role === 'council') return [];
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

/** The part of a step's prompt that follows from its branch, and the names that it hides. */
export interface Shown {
  readonly input: DeliberationInput;
  readonly masked: readonly string[];
}

/**
 * A step's draft, or the answers in its place under letters, with their ranking and analysis. A rank and a judge read each
 * answer without the names by which it presents its author, every other node as it is (contract, section 6.4).
 */
export function shownTo(plan: Plan, at: StepPlace, { order, topic }: Asked): Shown {
  const { draft, deliberation } = at.branch;
  if (deliberation === null) return { input: { draft }, masked: [] };
  const panels = panelsShown(plan, at);
  const compared = analysisIn(deliberation, order);
  const [panel, ...others] = panels;
  if (panel === undefined) return { input: { draft, ...compared }, masked: [] };
  const rest = { ...(others.length === 0 && rankingIn(panel, order)), ...compared };
  const isReviewing = readsPanel(plan.node(at.node));
  if (!isReviewing && (others.length > 0 || draft !== draftOfAnswers(panel.answers))) {
    return { input: { draft: withoutLabels(draft ?? '', panels, order), ...rest }, masked: [] };
  }
  const answers = answersInOrder(panels, order);
  const shown = isReviewing
    ? withoutAuthors(answers, deliberation.panel?.answers ?? [], topic)
    : answers.map(({ text }) => ({ text, masked: [] }));
  const lettered = shown.map(({ text }, index) => ({ letter: letterAt(index), text }));
  const masked = [...new Set(shown.flatMap((each) => each.masked))].toSorted();
  return { input: { draft: null, answers: lettered, ...rest }, masked };
}

/** Answers without their authors. In the others of the panel, a name by which these present their own authors does not count. */
function withoutAuthors(
  answers: readonly Contribution[],
  all: readonly Contribution[],
  topic: string,
): readonly ReturnType<typeof withoutAuthor>[] {
  const bare = all.map((answer) => ({ member: answer.member, text: withoutAuthor(answer.text, answer, []).text }));
  return answers.map((answer) => {
    const others = bare.filter(({ member }) => member !== answer.member).map(({ text }) => text);
    return withoutAuthor(answer.text, answer, [topic, ...others]);
  });
}

/** What a step's prompt shows besides its branch. */
interface Asked {
  /** The members whose answers it shows, in this order. */
  readonly order: readonly string[];
  readonly topic: string;
}

/** A panel's ranking in the letters shown, if it has one. */
function rankingIn({ points }: PanelAnswers, order: readonly string[]): Pick<PromptInput, 'ranking'> {
  if (points === null) return {};
  const shown = points.filter(({ member }) => order.includes(member));
  const ranking = shown.map((each) => ({ letter: letterAt(order.indexOf(each.member)), points: each.points }));
  return { ranking };
}

/** The judge's analysis in the letters shown, if there is one. */
function analysisIn(
  { analysis }: NonNullable<StepPlace['branch']['deliberation']>,
  order: readonly string[],
): Pick<PromptInput, 'analysis'> {
  return analysis === null ? {} : { analysis: relettered(analysis.value, { from: analysis.order, to: order }) };
}

/** A joined or edited draft, with a letter in place of each heading that holds a member's label. */
function withoutLabels(draft: string, panels: readonly PanelAnswers[], order: readonly string[]): string {
  const shown = answersInOrder(panels, order);
  const headingOf = (answer: Contribution): string => `Response ${letterAt(shown.indexOf(answer))}`;
  return panels.reduce((text, { answers }) => {
    const labelled = draftOfAnswers(answers);
    if (!text.includes(labelled)) return withoutHeadings(text, answers, headingOf);
    return text.replace(labelled, () => draftOfAnswers(answers.map((each) => ({ ...each, label: headingOf(each) }))));
  }, draft);
}

/** A draft that a human has edited: the first line that is a member's heading counts as it. */
function withoutHeadings(
  draft: string,
  answers: readonly Contribution[],
  headingOf: (answer: Contribution) => string,
): string {
  const left = answers.map((answer) => ({ line: `## ${labelInOneLine(answer.label)}`, heading: headingOf(answer) }));
  const lines = draft.split('\n').map((line) => {
    const at = left.findIndex((each) => each.line === line);
    const [found] = at < 0 ? [] : left.splice(at, 1);
    return found === undefined ? line : `## ${found.heading}`;
  });
  return lines.join('\n');
}

/**
 * The feedback in a step's prompt, oldest first. Where the prompt shows the anonymous answers of panels, the headings with
 * the labels of a jury's members are replaced, and so are letters: the critic saw the answers in another order. Its other
 * words stay.
 */
export function feedbackShownTo(plan: Plan, at: StepPlace, order: readonly string[]): readonly string[] {
  const texts = at.branch.feedback.map(({ text }) => text);
  if (panelsShown(plan, at).length === 0) return texts;
  const juries = plan.graph.nodes.filter(({ role, members }) => role === 'critic' && members !== undefined);
  const labels = juries.flatMap(({ members = [] }) => members.map(({ label }) => `## ${labelInOneLine(label)}`));
  const headings = new Set(labels);
  return texts.map((text) => {
    const lines = text.split('\n').map((line) => (headings.has(line) ? '## A critic' : line));
    return withoutLetters(lines.join('\n'), order.length);
  });
}
