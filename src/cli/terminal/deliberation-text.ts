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
import type { Style, Styler } from './printer.js';
import { inOneLine, printable } from './printer.js';

/** What the answers, the rankings, the analyses and the scores say, each in a part with a heading. */
export function deliberationText(deliberation: DeliberationRecord, style: Styler): string {
  const { answers, rankings, results, analyses, juries } = deliberation;
  const parts = [
    ...panelsIn(answers).map((panel) => answersText(panel, style)),
    ...results.map((result) => resultText(result, style)),
    ...(rankings.length === 0 ? [] : [rankingsText(rankings, style)]),
    ...analyses.map((analysis) => analysisText(analysis, style)),
    ...juries.map((jury) => juryText(jury, style)),
  ];
  return parts.length === 0 ? 'The run has no answers of panels, ranks, judges or juries so far.\n' : parts.join('\n');
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

function answersText(panel: readonly MemberAnswer[], style: Styler): string {
  const blocks = panel.map(({ member, label, model, text, status, error }) => {
    const name = label === member ? inOneLine(member) : `${inOneLine(label)} (${inOneLine(member)})`;
    const head = `  ${style('cyan', name)}  ${style(STATUS_STYLES[status], status)}  ${modelText(model)}`;
    if (status === 'discarded') return [head, '    It had not answered when the panel closed.'];
    return [head, indented(text ?? error ?? '')];
  });
  return lines([heading(`Answers of panel ${panel[0]?.node ?? ''}`, style), ...blocks.flat()]);
}

function resultText({ node, points, agreement }: RankingResult, style: Styler): string {
  const wide = Math.max(6, ...points.map(({ member }) => [...inOneLine(member)].length));
  const row = (rank: string, member: string, given: string): string =>
    `  ${rank.padStart(4)}  ${inOneLine(member).padEnd(wide)}  ${given.padStart(6)}`;
  return lines([
    heading(`Ranking by ${node}`, style),
    row('rank', 'answer', 'points'),
    ...points.map(({ member, points: given, rank }) => row(String(rank), member, rounded(given))),
    `  Agreement: ${rankAgreementText(agreement)}`,
  ]);
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

function rankingsText(rankings: readonly ReviewerRanking[], style: Styler): string {
  const entries = rankings.flatMap(({ node, reviewer, model, ranking, comment }) => {
    const best = ranking.map(inOneLine).join(', ');
    const head = `  ${style('cyan', inOneLine(reviewer))} in ${inOneLine(node)}, ${modelText(model)}: ${best}`;
    return [head, ...(comment === '' ? [] : [indented(comment)])];
  });
  return lines([heading('Rankings of the reviewers, best first', style), ...entries]);
}

function analysisText({ node, model, order_shown: order, analysis }: JudgedAnalysis, style: Styler): string {
  const shown = order.map((member, index) => `${'ABCDEFGH'.charAt(index)} is ${inOneLine(member)}`).join(', ');
  const lists = listsOf(analysis).map(([name, items]) => [
    `  ${style('bold', name)}`,
    ...(items.length === 0 ? ['    none'] : items.map((item) => `    - ${inOneLine(item)}`)),
  ]);
  return lines([
    heading(`Analysis by judge ${node}`, style),
    `  ${modelText(model)}; response ${shown}`,
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

function juryText({ node, scores, aggregate, score, agreement }: JuryRecord, style: Styler): string {
  const entries = scores.flatMap(({ member, model, score: given, feedback }) => [
    `  ${style('cyan', inOneLine(member))}  ${style('bold', String(given))}  ${modelText(model)}`,
    ...(feedback === '' ? [] : [indented(feedback)]),
  ]);
  return lines([
    heading(`Scores of jury ${node}`, style),
    ...entries,
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
