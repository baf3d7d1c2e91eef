/** One ranking out of several whose scores do not compare. */
import { byScore, type Scored } from './nearest.js';

/**
 * Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): a row scores 1 / (60 + its place, from 1) in each
 * ranking that has it. 60 is theirs: a smaller number makes the first places of one ranking outweigh the agreement of
 * both.
 */
const FUSION_OFFSET = 60;

/** The rows of all rankings, each best first; the best of all first, ties by key. */
export function fused(rankings: readonly (readonly Scored[])[]): readonly Scored[] {
  const scores = new Map<number, number>();
  for (const ranking of rankings) {
    ranking.forEach(({ key }, place) => {
      scores.set(key, (scores.get(key) ?? 0) + 1 / (FUSION_OFFSET + place + 1));
    });
  }
  return [...scores].map(([key, score]) => ({ key, score })).sort(byScore);
}
