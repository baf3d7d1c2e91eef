/** What the conditions behind a node look at. */
import type { ConditionFacts } from '../blueprint/condition.js';
import { codePoints } from '../council/limits.js';
import type { Branch } from './branch.js';

/** The draft is counted when the first condition asks, and only then. */
export function routingFacts(branch: Branch, iteration: number): ConditionFacts {
  return new RoutingFacts(branch, iteration);
}

class RoutingFacts implements ConditionFacts {
  readonly route: Branch['decision'];
  readonly score: number | null;
  readonly iteration: number;
  readonly #draft: string;
  #counted: number | null = null;

  constructor({ decision, score, draft }: Branch, iteration: number) {
    this.route = decision;
    this.score = score;
    this.iteration = iteration;
    this.#draft = draft ?? '';
  }

  get draftLength(): number {
    return (this.#counted ??= codePoints(this.#draft));
  }
}
