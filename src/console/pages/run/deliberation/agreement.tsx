/** How far the members of a rank or jury agree, with the meaning of each number. */
import type { ComponentChildren } from 'preact';
import type { JuryAgreement, RankAgreement } from '../../../../generated/schemas.js';
import { countOf } from '../../../record/counts.js';
import { figureText } from './figure-text.js';

export function RankAgreementLine({ agreement }: { readonly agreement: RankAgreement }) {
  const { kendall_w: w, reviewers, reason } = agreement;
  return (
    <AgreementLine
      title="What is Kendall’s W?"
      meaning={
        <>
          <p>
            Kendall’s W compares the orders of the reviewers. It is 1 if all of them chose the same order, and near 0 if
            their orders have nothing in common.
          </p>
          <p>
            If every reviewer leaves out its own answer, Durbin’s form of W is used. The service computes it from the
            orders; no model is asked. It does not say whether the answers are true.
          </p>
        </>
      }
    >
      {w === null ? (
        <>Agreement is not defined: {reason === null ? 'no reason is recorded' : RANK_REASONS[reason](reviewers)}.</>
      ) : (
        <>
          Agreement: Kendall’s W <strong class="numeric">{figureText(w)}</strong>, from {countOf(reviewers, 'reviewer')}
        </>
      )}
    </AgreementLine>
  );
}

const RANK_REASONS: Readonly<Record<NonNullable<RankAgreement['reason']>, (reviewers: number) => string>> = {
  few_reviewers: (reviewers) => `it needs the orders of at least 3 reviewers, and there ${areText(reviewers)}`,
  few_answers: () => 'it needs at least 3 answers to order',
  unbalanced: () => 'some answers were shown to more reviewers than others',
};

function areText(count: number): string {
  return count === 1 ? 'is 1' : `are ${count}`;
}

export function JuryAgreementLine({ agreement }: { readonly agreement: JuryAgreement }) {
  const { alpha, spread, reason } = agreement;
  return (
    <AgreementLine
      title="What are spread and Krippendorff’s alpha?"
      meaning={
        <>
          <p>The spread is the highest score minus the lowest score of this round.</p>
          <p>
            Krippendorff’s alpha looks at all rounds of this jury in the run. It is 1 if the members give equal scores
            in every round, near 0 if they differ as much as scores drawn at random, and below 0 if they differ more.
            The service computes both from the scores; no model is asked.
          </p>
        </>
      }
    >
      Spread <strong class="numeric">{figureText(spread)}</strong>.{' '}
      {alpha === null ? (
        <>Krippendorff’s alpha is not defined: {reason === null ? 'no reason is recorded' : JURY_REASONS[reason]}.</>
      ) : (
        <>
          Agreement over all rounds: Krippendorff’s alpha <strong class="numeric">{figureText(alpha)}</strong>
        </>
      )}
    </AgreementLine>
  );
}

const JURY_REASONS: Readonly<Record<NonNullable<JuryAgreement['reason']>, string>> = {
  one_round: 'it compares rounds, and there is one so far',
  no_variation: 'all scores are equal',
  one_rater: 'only one member has given a score',
};

interface AgreementLineProps {
  /** The question that the mark answers. */
  readonly title: string;
  readonly meaning: ComponentChildren;
  readonly children: ComponentChildren;
}

function AgreementLine({ title, meaning, children }: AgreementLineProps) {
  return (
    <div class="agreement">
      <p>{children}</p>
      <details>
        <summary aria-label={title} title={title}>
          ?
        </summary>
        <div class="stack tight small">{meaning}</div>
      </details>
    </div>
  );
}
