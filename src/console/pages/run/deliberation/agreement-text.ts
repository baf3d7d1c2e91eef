/** How far the members of a rank or jury agree, as a sentence. Agreement says nothing about whether answers are true. */
import type { JuryAgreement, RankAgreement } from '../../../../generated/schemas.js';
import { countOf, figureText } from '../../../record/counts.js';

export function rankAgreementText({ kendall_w: w, reviewers, reason }: RankAgreement): string {
  if (w !== null) return `Agreement: Kendall’s W ${figureText(w)}, from ${countOf(reviewers, 'reviewer')}.`;
  return `Agreement is not defined: ${reason === null ? UNKNOWN : RANK_REASONS[reason](reviewers)}.`;
}

const RANK_REASONS: Readonly<Record<NonNullable<RankAgreement['reason']>, (reviewers: number) => string>> = {
  few_reviewers: (reviewers) =>
    `it needs the orders of at least 3 reviewers, and ${countOf(reviewers, 'reviewer')} gave one`,
  few_answers: () => 'it needs at least 3 answers to order',
  unbalanced: () => 'some answers were shown to more reviewers than others',
};

export function juryAgreementText({ alpha, spread, reason }: JuryAgreement): string {
  const first = `Spread ${figureText(spread)}.`;
  if (alpha !== null) return `${first} Agreement over all rounds: Krippendorff’s alpha ${figureText(alpha)}.`;
  return `${first} Krippendorff’s alpha is not defined: ${reason === null ? UNKNOWN : JURY_REASONS[reason]}.`;
}

const JURY_REASONS: Readonly<Record<NonNullable<JuryAgreement['reason']>, string>> = {
  one_round: 'it compares rounds, and only one has several scores',
  no_variation: 'all scores are equal',
  one_rater: 'only one member has given scores',
};

const UNKNOWN = 'the record gives no reason';
