/** How far the members of a rank or jury agree, with the meaning of each number behind a question mark. */
import type { ComponentChildren } from 'preact';
import type { JuryAgreement, RankAgreement } from '../../../../generated/schemas.js';
import { juryAgreementText, rankAgreementText } from './agreement-text.js';

export function RankAgreementLine({ agreement }: { readonly agreement: RankAgreement }) {
  return (
    <AgreementLine text={rankAgreementText(agreement)} question="What is Kendall’s W?">
      <p>
        Kendall’s W compares the orders of the reviewers. It is 1 if all of them chose the same order, and near 0 if
        their orders have nothing in common.
      </p>
      <p>
        If every reviewer leaves out its own answer, Durbin’s form of W is used. The service computes it from the
        orders; no model is asked. It does not say whether the answers are true.
      </p>
    </AgreementLine>
  );
}

export function JuryAgreementLine({ agreement }: { readonly agreement: JuryAgreement }) {
  return (
    <AgreementLine text={juryAgreementText(agreement)} question="What are spread and Krippendorff’s alpha?">
      <p>The spread is the highest score minus the lowest score of this round.</p>
      <p>
        Krippendorff’s alpha looks at all rounds of this jury in the run. It is 1 if the members give equal scores in
        every round, near 0 if they differ as much as scores drawn at random, and below 0 if they differ more. The
        service computes both from the scores; no model is asked.
      </p>
    </AgreementLine>
  );
}

interface AgreementLineProps {
  readonly text: string;
  readonly question: string;
  /** The answer to the question. */
  readonly children: ComponentChildren;
}

function AgreementLine({ text, question, children }: AgreementLineProps) {
  return (
    <div class="agreement">
      <p>{text}</p>
      <details>
        <summary aria-label={question} title={question}>
          ?
        </summary>
        <div class="stack tight small">{children}</div>
      </details>
    </div>
  );
}
