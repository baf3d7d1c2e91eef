/** The deliberation of a run for a person: answers, rankings, analyses and juries. */
import type {
  Analysis,
  DeliberationRecord,
  JudgedAnalysis,
  JuryAgreement,
  JuryRecord,
  MemberAnswer,
  NodeFailedData,
  PanelClosedData,
  RankAgreement,
  RankingResult,
  ReviewerRanking,
} from '../../generated/schemas.js';
import type { RunEvent } from '../../run/events.js';
import { letterAt } from '../../council/deliberation/anonymity.js';
import type { Style, Styler } from './printer.js';
import { inOneLine, printable } from './printer.js';

/**
 * What the answers, the rankings, the analyses and the scores say, in the order in which it happened, with labels in place of
 * ids: first what the parents of a fork have recorded, last what is under way.
 *
 * @param events of the run, in order, from the first
 */
export function deliberationText(record: DeliberationRecord, events: readonly RunEvent[], style: Styler): string {
  // 1. How each execution has ended, in the order of the ends, and why members have failed, by their step.
  const ended = new Map<number, PanelClosedData | null>();
  const failures: Failure[] = [];
  const own = new Set<number>();
  for (const { type, data } of events) {
    if (type === 'NodeStarted') own.add(data.panelStep ?? data.step);
    if (type === 'PanelClosed') ended.set(data.panelStep, data);
    if (type === 'NodeCompleted' && 'analysis' in data.output) ended.set(data.step, null);
    if (type === 'NodeFailed' && data.final === true) failures.push(data);
  }
  // 2. The executions of the parents, those that have ended, and those under way.
  const { answers, rankings, results, analyses, juries } = record;
  const all: readonly { readonly step: number }[] = [answers, rankings, results, analyses, juries].flat();
  const steps = [...new Set(all.map(({ step }) => step))].toSorted((a, b) => a - b);
  const open = steps.filter((step) => !ended.has(step));
  const inOrder = [...open.filter((step) => !own.has(step)), ...ended.keys(), ...open.filter((step) => own.has(step))];
  // 3. The texts of each.
  const labels = labelsIn(events);
  const parts = inOrder.flatMap((step) => {
    const of = <Entry extends { readonly step: number }>(entries: readonly Entry[]) =>
      entries.filter((entry) => entry.step === step);
    const shown = { ...labels, closed: ended.get(step) ?? null, failures, style };
    const [answered, ranked] = [of(answers), of(rankings)];
    return [
      ...(answered.length === 0 ? [] : [answersText(answered, shown)]),
      ...of(results).map((result) => resultText(result, shown)),
      ...(ranked.length === 0 ? [] : [rankingsText(ranked, shown)]),
      ...of(analyses).map((analysis) => analysisText(analysis, shown)),
      ...of(juries).map((jury) => juryText(jury, shown)),
    ];
  });
  return parts.length === 0 ? 'The run has no answers of panels, ranks, judges or juries so far.\n' : parts.join('\n');
}

/** Why a member has failed. */
type Failure = Pick<NodeFailedData, 'panelStep' | 'member' | 'message'>;

/** What the text of an execution needs. */
interface Shown {
  /** The label of a node. */
  readonly nodeLabel: (node: string) => string;
  /** The label of a member, with its id if others have the same label. */
  readonly memberLabel: (member: string) => string;
  /** How the execution closed, or null if the run's events do not say. */
  readonly closed: PanelClosedData | null;
  readonly failures: readonly Failure[];
  readonly style: Styler;
}

/** The labels in the graph of the run; an id without one is shown itself. */
function labelsIn([first]: readonly RunEvent[]): Pick<Shown, 'nodeLabel' | 'memberLabel'> {
  const nodes = first?.type === 'RunRequested' ? first.data.graph.nodes : [];
  const labels = new Map(nodes.map(({ id, label }) => [id, label]));
  const members = new Map(nodes.flatMap(({ members: of = [] }) => of.map(({ id, label }) => [id, label] as const)));
  return {
    nodeLabel: (node) => labels.get(node) ?? node,
    memberLabel(member) {
      const label = members.get(member) ?? member;
      const isShared = [...members].some(([id, other]) => id !== member && other === label);
      return isShared ? `${label} (${member})` : label;
    },
  };
}

const STATUS_STYLES: Readonly<Record<MemberAnswer['status'], Style>> = {
  answered: 'green',
  failed: 'red',
  discarded: 'yellow',
};

function answersText(panel: readonly MemberAnswer[], { nodeLabel, memberLabel, style }: Shown): string {
  const blocks = panel.map(({ member, label, model, text, status, error }) => {
    const known = memberLabel(member);
    const name = inOneLine(known === member && label !== member ? `${label} (${member})` : known);
    const head = `  ${style('cyan', name)}  ${style(STATUS_STYLES[status], status)}  ${modelText(model)}`;
    if (status === 'discarded') return [head, '    It had not answered when the panel closed or the run ended.'];
    return [head, indented(text ?? error ?? '')];
  });
  return lines([heading(`Answers of panel ${nodeLabel(panel[0]?.node ?? '')}`, style), ...blocks.flat()]);
}

function resultText({ node, points, agreement }: RankingResult, shown: Shown): string {
  const { nodeLabel, memberLabel, style } = shown;
  const wide = Math.max(6, ...points.map(({ member }) => [...inOneLine(memberLabel(member))].length));
  const row = (rank: string, member: string, given: string): string =>
    `  ${rank.padStart(4)}  ${inOneLine(member).padEnd(wide)}  ${given.padStart(6)}`;
  return lines([
    heading(`Ranking by ${nodeLabel(node)}`, style),
    row('rank', 'answer', 'points'),
    ...points.map(({ member, points: given, rank }) => row(String(rank), memberLabel(member), rounded(given))),
    `  Agreement: ${rankAgreementText(agreement)}`,
    ...keptText(shown),
    ...withoutResult(shown),
  ]);
}

/** The answers that later nodes see, if the rank has left some out. */
function keptText({ closed, memberLabel }: Shown): readonly string[] {
  const result = closed?.result ?? null;
  if (result === null || !('kept' in result) || result.kept.length === result.points.length) return [];
  return [`  Kept for later nodes: ${result.kept.map((member) => inOneLine(memberLabel(member))).join(', ')}`];
}

/** The reviewers of a rank or the members of a jury without a result, with the reason. */
function withoutResult({ closed, failures, memberLabel, style }: Shown): readonly string[] {
  if (closed === null) return [];
  const failed = closed.failed.flatMap((member) => {
    const failure = failures.findLast((each) => each.panelStep === closed.panelStep && each.member === member);
    const why = failure?.message ?? '';
    return [`  ${style('cyan', inOneLine(memberLabel(member)))}  ${style('red', 'failed')}`, indented(why)];
  });
  const late = closed.discarded.map(
    (member) => `  ${style('cyan', inOneLine(memberLabel(member)))}  ${style('yellow', 'discarded')}`,
  );
  return [...failed, ...late];
}

const RANK_REASONS: Readonly<Record<NonNullable<RankAgreement['reason']>, string>> = {
  few_reviewers: 'it needs at least 3 reviewers',
  few_answers: 'it needs at least 3 answers',
  unbalanced: 'the reviewers saw different answers',
};

function rankAgreementText({ kendall_w: value, reviewers, reason }: RankAgreement): string {
  if (value === null) return `not defined${reason === null ? '' : `: ${RANK_REASONS[reason]}`}.`;
  const range = 'From 0, no common order, to 1, all ranked the answers the same.';
  return `${rounded(value)} among ${reviewers} reviewers (Kendall's W). ${range}`;
}

function rankingsText(rankings: readonly ReviewerRanking[], { nodeLabel, memberLabel, style }: Shown): string {
  const entries = rankings.flatMap(({ node, reviewer, model, order_shown: order, ranking, comment }) => {
    const best = ranking.map((member) => inOneLine(memberLabel(member))).join(', ');
    const name = style('cyan', inOneLine(memberLabel(reviewer)));
    const head = `  ${name} in ${inOneLine(nodeLabel(node))}, ${modelText(model)}: ${best}`;
    return [head, ...(comment === '' ? [] : [indented(comment), `    (${keyText(order, memberLabel)})`])];
  });
  return lines([heading('Rankings of the reviewers, best first', style), ...entries]);
}

/** Whose answers the letters of a reader stand for. */
function keyText(order: readonly string[], memberLabel: Shown['memberLabel']): string {
  return order.map((member, index) => `${letterAt(index)} is ${inOneLine(memberLabel(member))}`).join(', ');
}

function analysisText(
  { node, model, order_shown: order, analysis }: JudgedAnalysis,
  { nodeLabel, memberLabel, style }: Shown,
): string {
  const lists = listsOf(analysis).map(([name, items]) => [
    `  ${style('bold', name)}`,
    ...(items.length === 0 ? ['    none'] : items.map((item) => `    - ${inOneLine(item)}`)),
  ]);
  return lines([
    heading(`Analysis by judge ${nodeLabel(node)}`, style),
    `  ${modelText(model)}; response ${keyText(order, memberLabel)}`,
    ...lists.flat(),
  ]);
}

function listsOf(analysis: Analysis): readonly (readonly [name: string, items: readonly string[]])[] {
  return [
    ['Consensus', analysis.consensus],
    [
      'Contradictions',
      analysis.contradictions.map(({ topic, stances }) => {
        return `${topic} (${stances.map(({ response, stance }) => `${response}: ${stance}`).join('; ')})`;
      }),
    ],
    ['Covered by some', analysis.partial_coverage.map(({ responses, point }) => `${responses.join(', ')}: ${point}`)],
    ['Unique insights', analysis.unique_insights.map(({ response, insight }) => `${response}: ${insight}`)],
    ['Blind spots', analysis.blind_spots],
  ];
}

const AGGREGATES: Readonly<Record<JuryRecord['aggregate'], string>> = {
  median: 'the middle score',
  lowest: 'the lowest score',
  mean: 'the mean of the scores',
};

function juryText({ node, scores, aggregate, score, agreement }: JuryRecord, shown: Shown): string {
  const { nodeLabel, memberLabel, style } = shown;
  const entries = scores.flatMap(({ member, model, score: given, feedback }) => [
    `  ${style('cyan', inOneLine(memberLabel(member)))}  ${style('bold', String(given))}  ${modelText(model)}`,
    ...(feedback === '' ? [] : [indented(feedback)]),
  ]);
  return lines([
    heading(`Scores of jury ${nodeLabel(node)}`, style),
    ...entries,
    ...withoutResult(shown),
    score === null ? '  The jury has not closed.' : `  Score: ${rounded(score)}, ${AGGREGATES[aggregate]}`,
    ...(agreement === null ? [] : [`  Agreement: ${juryAgreementText(agreement)}`]),
  ]);
}

const JURY_REASONS: Readonly<Record<NonNullable<JuryAgreement['reason']>, string>> = {
  one_round: 'it needs two rounds of the jury with scores to compare',
  no_variation: 'all scores are equal',
  one_rater: 'it needs two scores in a round',
};

function juryAgreementText({ alpha, spread, reason }: JuryAgreement): string {
  const range = `the highest and the lowest score differ by ${rounded(spread)}.`;
  if (alpha === null) {
    return `${range} Krippendorff's alpha is not defined${reason === null ? '' : `: ${JURY_REASONS[reason]}`}.`;
  }
  const scale = '1 means equal scores in each round, 0 as much agreement as by chance, less than 0 even less.';
  return `${range} Krippendorff's alpha over the rounds is ${rounded(alpha)}: ${scale}`;
}

function modelText(model: string | null): string {
  return model === null ? 'no model yet' : inOneLine(model);
}

/** At most 3 decimals. */
function rounded(value: number): string {
  return String(Number(value.toFixed(3)));
}

function heading(text: string, style: Styler): string {
  return style('bold', inOneLine(text));
}

function indented(text: string): string {
  return printable(text)
    .trimEnd()
    .replaceAll(/^(?=.)/gm, '    ');
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('');
}
