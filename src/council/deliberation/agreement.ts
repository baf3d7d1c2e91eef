/** How far reviewers and juries agree, computed from their answers (contract, section 6.4). No result is rounded. */
import type { Aggregate, JuryAgreement, MemberPoints, RankAgreement } from '../../generated/schemas.js';
import { elementAt } from '../../system/element.js';

/** A reviewer's order of the answers that it saw: ids of members, best first, each once. */
export interface ReviewerRanking {
  readonly reviewer: string;
  readonly ranking: readonly string[];
}

/**
 * Kendall's W if every reviewer ranked all answers; in Durbin's form if every answer is missing once, because each reviewer
 * left out its own. Otherwise null with the reason.
 *
 * @param answers ids of the members whose answers were ranked
 */
export function rankAgreement(rankings: readonly ReviewerRanking[], answers: readonly string[]): RankAgreement {
  const reviewers = rankings.length;
  const without = (reason: NonNullable<RankAgreement['reason']>): RankAgreement => {
    return { kendall_w: null, reviewers, reason };
  };
  if (reviewers < 3) return without('few_reviewers');
  if (answers.length < 3) return without('few_answers');
  const ranks = rankings.map(({ ranking }) => answers.map((answer) => ranking.indexOf(answer) + 1));
  const n = answers.length;
  if (rankings.every(({ ranking }) => ranking.length === n)) {
    return { kendall_w: concordance(ranks, { k: n, r: reviewers, lambda: reviewers }), reviewers, reason: null };
  }
  if (!isEachMissingOnce(rankings, answers)) return without('unbalanced');
  return { kendall_w: concordance(ranks, { k: n - 1, r: n - 1, lambda: n - 2 }), reviewers, reason: null };
}

/** How many answers each reviewer ranked (k), how many reviewers ranked each answer (r), and how many each pair (lambda). */
interface Design {
  readonly k: number;
  readonly r: number;
  readonly lambda: number;
}

/**
 * The coefficient of concordance in Durbin's form (Brit. J. Psych. Stat. 4, 1951), of which Kendall's W is the case in
 * which every reviewer ranked all answers. Corrected for ties in that case; rankings of reviewers have none.
 *
 * @param ranks of each reviewer: the rank of each answer, in the same order of answers; 0 if it did not rank it. Ties have
 * their mean rank; not all may be tied.
 */
export function concordance(ranks: readonly (readonly number[])[], { k, r, lambda }: Design): number {
  const sums = elementAt(ranks, 0).map((_, answer) => sum(ranks.map((each) => elementAt(each, answer))));
  const n = sums.length;
  const squares = sum(sums.map((each) => each ** 2));
  const ties = k === n ? r * sum(ranks.map(tieTerm)) : 0;
  return (12 * squares - 3 * n * r ** 2 * (k + 1) ** 2) / (lambda ** 2 * n * (n ** 2 - 1) - ties);
}

/** The sum of t³ − t over the groups of t equal ranks. */
function tieTerm(ranks: readonly number[]): number {
  const groups = new Map<number, number>();
  for (const rank of ranks) groups.set(rank, (groups.get(rank) ?? 0) + 1);
  return sum([...groups.values()].map((size) => size ** 3 - size));
}

function isEachMissingOnce(rankings: readonly ReviewerRanking[], answers: readonly string[]): boolean {
  if (rankings.length !== answers.length) return false;
  const missing = rankings.map(({ ranking }) => answers.filter((answer) => !ranking.includes(answer)));
  return missing.every((each) => each.length === 1) && new Set(missing.flat()).size === answers.length;
}

/**
 * The points of each ranked answer, best first: the mean over the reviewers that saw it of the number of answers shown less
 * its position, from 1. An answer that no reviewer saw has 0 points.
 *
 * @param order ids of the members whose answers were ranked; equal points go by this order
 */
export function memberPoints(rankings: readonly ReviewerRanking[], order: readonly string[]): MemberPoints[] {
  const points = order.map((member) => ({ member, points: pointsOf(rankings, member) }));
  return points.toSorted((a, b) => b.points - a.points).map((each, index) => ({ ...each, rank: index + 1 }));
}

function pointsOf(rankings: readonly ReviewerRanking[], member: string): number {
  const seen = rankings.filter(({ ranking }) => ranking.includes(member));
  const given = seen.map(({ ranking }) => ranking.length - ranking.indexOf(member) - 1);
  return seen.length === 0 ? 0 : sum(given) / seen.length;
}

/** A round of a jury: the score of each member, in the order of members, or null if it has none. */
type JuryRound = readonly (number | null)[];

/**
 * The spread of the last round, and Krippendorff's alpha for intervals over all rounds, or null with the reason: fewer than
 * two rounds with scores to compare (`one_round`), rounds with one score each (`one_rater`), or equal scores only
 * (`no_variation`).
 *
 * @param rounds the executions of this jury in the run, oldest first
 */
export function juryAgreement(rounds: readonly JuryRound[]): JuryAgreement {
  const scores = scoresIn(rounds.at(-1) ?? []);
  const factor = decimalFactor(scores);
  const whole = scores.map((score) => timesFactor(score, factor));
  const spread = scores.length === 0 ? 0 : (Math.max(...whole) - Math.min(...whole)) / factor;
  return { spread, members: scores.length, ...alphaOf(rounds.map(scoresIn)) };
}

function alphaOf(rounds: readonly (readonly number[])[]): Pick<JuryAgreement, 'alpha' | 'reason'> {
  const units = rounds.filter((scores) => scores.length > 1);
  if (rounds.length < 2) return { alpha: null, reason: 'one_round' };
  if (units.length === 0) return { alpha: null, reason: 'one_rater' };
  if (units.length === 1) return { alpha: null, reason: 'one_round' };
  const alpha = krippendorffAlpha(units);
  return alpha === null ? { alpha, reason: 'no_variation' } : { alpha, reason: null };
}

/**
 * Krippendorff's alpha for intervals, or null if all values are equal.
 *
 * @param units the values of each unit, at least two each
 */
function krippendorffAlpha(units: readonly (readonly number[])[]): number | null {
  // Alpha does not depend on the scale of the values.
  const factor = decimalFactor(units.flat());
  const scaled = units.map((values) => values.map((value) => timesFactor(value, factor)));
  const all = scaled.flat();
  const expected = squaredDifferences(all);
  if (expected === 0) return null;
  const observed = sum(scaled.map((values) => squaredDifferences(values) / (values.length - 1)));
  return 1 - ((all.length - 1) * observed) / expected;
}

/** Sum of the squared differences of all pairs. It is 0 if all values are equal, which a form by means would miss. */
function squaredDifferences(values: readonly number[]): number {
  let total = 0;
  for (const [index, value] of values.entries()) {
    for (let other = 0; other < index; other += 1) total += (value - elementAt(values, other)) ** 2;
  }
  return total;
}

function scoresIn(round: JuryRound): readonly number[] {
  return round.filter((score) => score !== null);
}

/**
 * One score for those of a jury: the middle one, or the mean of the middle two; the lowest; or the mean.
 *
 * @param scores at least one
 */
export function aggregateScore(scores: readonly number[], aggregate: Aggregate): number {
  const sorted = scores.toSorted((a, b) => a - b);
  const half = (sorted.length - 1) / 2;
  if (aggregate === 'lowest') return meanOf(sorted.slice(0, 1));
  return meanOf(aggregate === 'mean' ? sorted : sorted.slice(Math.floor(half), Math.ceil(half) + 1));
}

function meanOf(scores: readonly number[]): number {
  const factor = decimalFactor(scores);
  return sum(scores.map((score) => timesFactor(score, factor))) / (scores.length * factor);
}

/**
 * The power of ten that makes all scores whole numbers, or 1 if one of them has more than 12 decimals. Sums of whole numbers
 * are exact: the mean of 8.2, 7.7 and 8.1 is 8, which approves a draft, and 8.3 less 6.3 is 2.
 */
function decimalFactor(scores: readonly number[]): number {
  return POWERS.find((power) => scores.every((score) => Math.round(score * power) / power === score)) ?? 1;
}

function timesFactor(score: number, factor: number): number {
  return factor === 1 ? score : Math.round(score * factor);
}

const POWERS: readonly number[] = Array.from({ length: 13 }, (_, decimals) => 10 ** decimals);

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
