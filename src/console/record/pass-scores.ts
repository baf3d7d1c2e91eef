/** The score from which a draft passes a critic, by the conditions of the recorded graph. */
import { routeAfter } from '../../graph/routing.js';
import type { RunState } from '../../run/state.js';

export interface PassScore {
  readonly score: number;
  /** Whether a draft must score more than that. */
  readonly isExclusive: boolean;
}

/** A step between two scores that is smaller than those of models. */
const LITTLE = 0.001;
const NUMBERS = /\d+(?:\.\d+)?/g;

/** The lowest score with which a critic does not send the draft back, or null if no score decides that. */
export function passScoreOf({ plan, request }: Pick<RunState, 'plan' | 'request'>, critic: string): PassScore | null {
  if (!plan.hasNode(critic)) return null;
  const { passScore } = request.limits;
  const passes = (score: number): boolean => {
    const facts = { iteration: 1, draftLength: () => 1, agreement: null, spread: null };
    const route = routeAfter(plan, critic, { ...facts, score, route: score >= passScore ? 'approve' : 'rework' });
    return route !== null && !route.next.some((target) => plan.leadsBack(critic, target));
  };
  if (passes(0) || !passes(10)) return null;
  const named = plan.edgesFrom(critic).flatMap(({ condition }) => condition?.match(NUMBERS) ?? []);
  const candidates = [...new Set([passScore, ...named.map(Number)])].sort((a, b) => a - b);
  for (const score of candidates) {
    if (passes(score)) return { score, isExclusive: false };
    if (passes(score + LITTLE)) return { score, isExclusive: true };
  }
  return null;
}

/** A score that passes, in words: `8`, or `more than 7`. */
export function passScoreText({ score, isExclusive }: PassScore): string {
  return isExclusive ? `more than ${score}` : String(score);
}
