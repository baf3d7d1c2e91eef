/** What a branch carries from panels, ranks, judges and juries, and what the prompts of later nodes show of it. */
import type { Analysis, GraphMember, GraphNode, MemberPoints } from '../generated/schemas.js';
import type { Plan } from '../graph/plan.js';
import { labelInOneLine } from '../graph/label.js';
import { letterAt, maskNames, namesToMask, orderShown } from '../council/deliberation/anonymity.js';
import { relettered } from '../council/deliberation/relettered.js';
import type { PromptInput } from '../models/port.js';
import type { Branch } from './branch.js';
import type { FrontierNode } from './state.js';

/** A member's answer, with its label and the full name of its model at that time, or null if that was not recorded. */
export interface Contribution {
  readonly member: string;
  readonly label: string;
  readonly model: string | null;
  readonly text: string;
}

/** The answers of a panel, or those that a rank has kept. */
export interface PanelAnswers {
  /** Node of the panel. */
  readonly node: string;
  /** Number of the panel: the step of its first member. */
  readonly panelStep: number;
  /** In the order of the panel's members, or best first after a rank. */
  readonly answers: readonly Contribution[];
  /** Points of the last rank, best first, or null before. */
  readonly points: readonly MemberPoints[] | null;
}

/** A judge's comparison, in its own letters. */
export interface JudgeAnalysis {
  readonly value: Analysis;
  /** The members behind its letters. */
  readonly order: readonly string[];
}

export interface Deliberation {
  /** The panel that closed last, or null before the first. */
  readonly panel: PanelAnswers | null;
  /** The panels whose answers the draft holds: one after a panel, several after a join, none once a node writes a draft. */
  readonly inDraft: readonly PanelAnswers[];
  /** The last analysis of these answers, or null. */
  readonly analysis: JudgeAnalysis | null;
  /** Kendall's W of the last rank, or null if it has none. */
  readonly agreement: number | null;
  /** Highest less lowest score of the last jury, or null before. */
  readonly spread: number | null;
}

export const NO_DELIBERATION: Deliberation = {
  panel: null,
  inDraft: [],
  analysis: null,
  agreement: null,
  spread: null,
};

/** A change of a branch's deliberation. */
export function deliberated({ deliberation }: Branch, change: Partial<Deliberation>): Deliberation {
  return { ...(deliberation ?? NO_DELIBERATION), ...change };
}

/** The draft that a panel's answers make: each under its member's label. */
export function draftOfAnswers(answers: readonly Contribution[]): string {
  return answers.map(({ label, text }) => `## ${labelInOneLine(label)}\n${text}`).join('\n\n');
}

/** What the branches of a join carry on: of each part, that of the branch with the later panel. */
export function joinDeliberations(branches: readonly Branch[], written: readonly Branch[]): Deliberation | null {
  const all = branches.flatMap(({ deliberation }) => (deliberation === null ? [] : [deliberation]));
  const [first, ...others] = all;
  if (first === undefined) return null;
  const stepOf = ({ panel }: Deliberation): number => panel?.panelStep ?? 0;
  const latest = others.reduce((last, each) => (stepOf(each) > stepOf(last) ? each : last), first);
  const spread = all.find((each) => each.spread !== null)?.spread ?? null;
  return { ...latest, spread, inDraft: written.flatMap(({ deliberation }) => deliberation?.inDraft ?? []) };
}

/** Whether a node has members that answer in steps of their own. */
export function hasMembers({ role, members }: GraphNode): boolean {
  return role === 'panel' || role === 'rank' || (role === 'critic' && members !== undefined);
}

/** Whether a node reads the answers of a panel, whatever the draft is. */
export function readsPanel({ role }: GraphNode): boolean {
  return role === 'rank' || role === 'judge';
}

/** Whether a panel has closed on a branch. */
export function hasPanel({ deliberation }: Branch): boolean {
  return (deliberation?.panel ?? null) !== null;
}

/** A step's place in the run, as far as its node and prompt depend on it. */
export type StepPlace = Pick<FrontierNode, 'node' | 'branch'> & { readonly member: string | null };

/** The members of a node; the reviewers of a rank without members are those of the panel that it reviews. */
export function membersOf(plan: Plan, { node, branch }: Pick<StepPlace, 'node' | 'branch'>): readonly GraphMember[] {
  const { members, role } = plan.node(node);
  if (members !== undefined) return members;
  const panel = branch.deliberation?.panel ?? null;
  if (role !== 'rank' || panel === null) return [];
  const reviewed = plan.node(panel.node);
  return (reviewed.members ?? []).map((member) => reviewerOf(reviewed, member));
}

/** A panel's member as a reviewer: only its model, temperature, limit and fallbacks count. */
function reviewerOf(panel: GraphNode, { id, label, systemPrompt: _, ...own }: GraphMember): GraphMember {
  const { model, temperature, maxOutputTokens, fallbacks } = panel;
  const inherited = {
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(fallbacks !== undefined && { fallbacks }),
  };
  return { id, label, ...inherited, ...own };
}

/** The node of a step, with the settings of its member. A member is never named in a prompt, so the label is the node's. */
export function stepNode(plan: Plan, at: StepPlace): GraphNode {
  const node = plan.node(at.node);
  if (at.member === null) return node;
  const member = membersOf(plan, at).find(({ id }) => id === at.member);
  if (member === undefined) throw new Error(`Node "${at.node}" has no member "${at.member}"`);
  const { id: _, label: __, ...own } = member;
  return { ...node, ...own };
}

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
