/** What a branch carries from panels, ranks, judges and juries. */
import type { Analysis, MemberPoints } from '../../generated/schemas.js';
import { labelInOneLine } from '../../graph/label.js';

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
  /** Its place among the run's panels in the order in which they closed, from 1. */
  readonly closing: number;
  /** In the order of the panel's members, or best first after a rank. */
  readonly answers: readonly Contribution[];
  /** Points of the last rank, best first, or null before. */
  readonly points: readonly MemberPoints[] | null;
}

/** A judge's comparison, in its own letters. */
interface JudgeAnalysis {
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

const NO_DELIBERATION: Deliberation = {
  panel: null,
  inDraft: [],
  analysis: null,
  agreement: null,
  spread: null,
};

/** The part of a branch that this file reads. */
interface Carrier {
  readonly deliberation: Deliberation | null;
}

/** A change of a branch's deliberation. */
export function deliberated({ deliberation }: Carrier, change: Partial<Deliberation>): Deliberation {
  return { ...(deliberation ?? NO_DELIBERATION), ...change };
}

/** The draft that a panel's answers make: each under its member's label. */
export function draftOfAnswers(answers: readonly Contribution[]): string {
  return answers.map(({ label, text }) => `## ${labelInOneLine(label)}\n${text}`).join('\n\n');
}

/**
 * The answers of panels in an order of members' ids. An id may occur once for each panel that has such a member; its places
 * stand for the answers in these panels, in the order of the panels.
 */
export function answersInOrder(panels: readonly PanelAnswers[], order: readonly string[]): readonly Contribution[] {
  const left = panels.flatMap(({ answers }) => answers);
  return order.flatMap((member) => {
    const at = left.findIndex((answer) => answer.member === member);
    return at < 0 ? [] : left.splice(at, 1);
  });
}

/**
 * The deliberation of a join: that of the branch whose panel closed last, with the first spread and the panels in all drafts.
 *
 * @param written the branches whose drafts the join takes
 */
export function joinDeliberations(branches: readonly Carrier[], written: readonly Carrier[]): Deliberation | null {
  const all = branches.flatMap(({ deliberation }) => (deliberation === null ? [] : [deliberation]));
  const [first, ...others] = all;
  if (first === undefined) return null;
  const closingOf = ({ panel }: Deliberation): number => panel?.closing ?? 0;
  const latest = others.reduce((last, each) => (closingOf(each) > closingOf(last) ? each : last), first);
  const spread = all.find((each) => each.spread !== null)?.spread ?? null;
  return { ...latest, spread, inDraft: written.flatMap(({ deliberation }) => deliberation?.inDraft ?? []) };
}
