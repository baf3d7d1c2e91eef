/**
 * The result of a panel, rank or jury from the answers of its members: the contract's formulas (section 6.4) a second time,
 * in other forms than those of `src/council`.
 */
import type { GraphNode, JuryResult, RankResult } from '../../src/generated/schemas.js';

/** A reviewer's answer: members in the order shown, and letters, best first. */
export interface Review {
  readonly shown: readonly string[];
  readonly letters: readonly string[];
}

/** @param answers the members whose answers were ranked, in the order of their panel */
export function rankResult(
  reviews: readonly Review[],
  answers: readonly string[],
  { keep = answers.length }: Pick<GraphNode, 'keep'>,
): RankResult {
  const placed = reviews.map(({ shown, letters }) => {
    return new Map(letters.map((letter, index) => [shown[LETTERS.indexOf(letter)] ?? '', index + 1]));
  });
  const points = answers.map((member) => {
    const given = placed.flatMap((places) => {
      const place = places.get(member);
      return place === undefined ? [] : [places.size - place];
    });
    return { member, points: given.length === 0 ? 0 : total(given) / given.length };
  });
  const best = points.toSorted((a, b) => b.points - a.points).map((each, index) => ({ ...each, rank: index + 1 }));
  const agreement = { reviewers: reviews.length, ...concordance(placed, answers) };
  const kept = best.slice(0, keep).map(({ member }) => member);
  return { points: best, kept, agreement };
}

const LETTERS = 'ABCDEFGH';

type Places = ReadonlyMap<string, number>;

/** Kendall's W as the variance of the sums of ranks, less what it could be at most. */
function concordance(placed: readonly Places[], answers: readonly string[]): Concordance {
  if (placed.length < 3) return { kendall_w: null, reason: 'few_reviewers' };
  const n = answers.length;
  if (n < 3) return { kendall_w: null, reason: 'few_answers' };
  const sums = answers.map((member) => total(placed.map((places) => places.get(member) ?? 0)));
  const mean = total(sums) / n;
  const variance = total(sums.map((sum) => (sum - mean) ** 2));
  const m = placed.length;
  if (placed.every(({ size }) => size === n)) {
    return { kendall_w: (12 * variance) / (m ** 2 * (n ** 3 - n)), reason: null };
  }
  const missing = placed.map((places) => answers.filter((member) => !places.has(member)));
  const isEachMissingOnce =
    m === n && missing.every(({ length }) => length === 1) && new Set(missing.flat()).size === n;
  if (!isEachMissingOnce) return { kendall_w: null, reason: 'unbalanced' };
  // Any two answers are ranked together by n - 2 reviewers.
  return { kendall_w: (12 * variance) / ((n - 2) ** 2 * n * (n ** 2 - 1)), reason: null };
}

type Concordance = Pick<RankResult['agreement'], 'kendall_w' | 'reason'>;

/** @param rounds of each execution so far, this one last: the scores by member */
export function juryResult(
  rounds: readonly ReadonlyMap<string, number>[],
  { aggregate = 'median' }: Pick<GraphNode, 'aggregate'>,
): Omit<JuryResult, 'feedback'> {
  const scores = [...(rounds.at(-1)?.values() ?? [])].toSorted((a, b) => a - b);
  const middle = [scores[Math.ceil(scores.length / 2) - 1] ?? 0, scores[Math.floor(scores.length / 2)] ?? 0];
  const chosen = { median: middle, lowest: scores.slice(0, 1), mean: scores }[aggregate];
  const spread = (scores.at(-1) ?? 0) - (scores[0] ?? 0);
  return {
    score: total(chosen) / chosen.length,
    aggregate,
    agreement: { spread, members: scores.length, ...alpha(rounds) },
  };
}

/** Krippendorff's alpha: 1 less the mean squared difference within rounds by that among all scores. */
function alpha(rounds: readonly ReadonlyMap<string, number>[]): Pick<JuryResult['agreement'], 'alpha' | 'reason'> {
  if (rounds.length < 2) return { alpha: null, reason: 'one_round' };
  const units = rounds.map((each) => [...each.values()]).filter(({ length }) => length > 1);
  if (units.length === 0) return { alpha: null, reason: 'one_rater' };
  if (units.length === 1) return { alpha: null, reason: 'one_round' };
  const all = units.flat();
  const expected = differences(all) / (all.length * (all.length - 1));
  if (expected === 0) return { alpha: null, reason: 'no_variation' };
  const observed = total(units.map((unit) => differences(unit) / (unit.length - 1))) / all.length;
  return { alpha: 1 - observed / expected, reason: null };
}

/** Sum of squared differences of all ordered pairs. */
function differences(values: readonly number[]): number {
  return total(values.flatMap((one) => values.map((other) => (one - other) ** 2)));
}

function total(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0);
}

/** Whether two results are the same but for the last digits of their numbers. */
export function isSameResult(one: unknown, other: unknown): boolean {
  if (typeof one === 'number' && typeof other === 'number') return Math.abs(one - other) < 1e-9;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other;
  const [names, others] = [Object.keys(one).toSorted(), Object.keys(other).toSorted()];
  return (
    names.join(' ') === others.join(' ') &&
    names.every((name) => isSameResult(Reflect.get(one, name), Reflect.get(other, name)))
  );
}
