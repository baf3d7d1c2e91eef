/** The deliberation of a run for a person: answers, rankings, analyses and juries. */
import type {
  Analysis,
  DeliberationRecord,
  JudgedAnalysis,
  JuryAgreement,
  JuryRecord,
  MemberAnswer,
  RankAgreement,
  RankingResult,
  ReviewerRanking,
} from '../../generated/schemas.js';
import type { RunEvent } from '../../run/events.js';
import { letterAt } from '../../council/deliberation/anonymity.js';
import type { DeliberationStory, Execution } from './deliberation-story.js';
import { failureKey, storyOf } from './deliberation-story.js';
import type { Style, Styler } from './printer.js';
import { inOneLine, printable } from './printer.js';

/**
 * What the answers, the rankings, the analyses and the scores say, in the order in which it happened, with labels in place of
 * ids.
 *
 * @param events of the run
 */
export function deliberationText(record: DeliberationRecord, events: readonly RunEvent[], style: Styler): string {
  const story = storyOf(record, events);
  const parts = story.executions.flatMap((execution) => {
    const shown = { ...story, execution, style };
    return [
      ...panelsIn(execution.answers).map((panel) => answersText(panel, shown)),
      ...execution.results.map((result) => resultText(result, shown)),
      ...(execution.rankings.length === 0 ? [] : [rankingsText(execution.rankings, shown)]),
      ...execution.analyses.map((analysis) => analysisText(analysis, shown)),
      ...execution.juries.map((jury) => juryText(jury, shown)),
    ];
  });
  return parts.length === 0 ? 'The run has no answers of panels, ranks, judges or juries so far.\n' : parts.join('\n');
}

/** What the text of an execution needs. */
interface Shown extends DeliberationStory {
  readonly execution: Execution;
  readonly style: Styler;
}

/** The answers of each execution of a panel: another begins when the node changes or a member answers again. */
function panelsIn(answers: readonly MemberAnswer[]): readonly (readonly MemberAnswer[])[] {
  const panels: MemberAnswer[][] = [];
  for (const answer of answers) {
    const last = panels.at(-1);
    const isSame = last?.[0]?.node === answer.node && !last.some(({ member }) => member === answer.member);
    if (isSame) last.push(answer);
    else panels.push([answer]);
  }
  return panels;
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
  const { nodeLabel, memberLabel, execution, style } = shown;
  const wide = Math.max(6, ...points.map(({ member }) => [...inOneLine(memberLabel(member))].length));
  const row = (rank: string, member: string, given: string): string =>
    `  ${rank.padStart(4)}  ${inOneLine(member).padEnd(wide)}  ${given.padStart(6)}`;
  return lines([
    heading(`Ranking by ${nodeLabel(node)}`, style),
    row('rank', 'answer', 'points'),
    ...points.map(({ member, points: given, rank }) => row(String(rank), memberLabel(member), rounded(given))),
    `  Agreement: ${rankAgreementText(agreement)}`,
    ...keptText(execution, memberLabel),
    ...withoutResult(shown),
  ]);
}

/** The answers that later nodes see, if the rank has left some out. */
function keptText({ closed }: Execution, memberLabel: DeliberationStory['memberLabel']): readonly string[] {
  const result = closed?.result ?? null;
  if (result === null || !('kept' in result) || result.kept.length === result.points.length) return [];
  return [`  Kept for later nodes: ${result.kept.map((member) => inOneLine(memberLabel(member))).join(', ')}`];
}

/** The reviewers of a rank or the members of a jury without a result, with the reason. */
function withoutResult({ execution: { closed }, failures, memberLabel, style }: Shown): readonly string[] {
  if (closed === null) return [];
  const failed = closed.failed.flatMap((member) => {
    const why = failures.get(failureKey(closed.panelStep, member)) ?? '';
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
function keyText(order: readonly string[], memberLabel: DeliberationStory['memberLabel']): string {
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
