/** The scores of a jury, and the one score that follows from them. */
import type { Aggregate, JuryResult } from '../../../../generated/schemas.js';
import type { MemberExecution } from '../../../record/executions.js';
import { JuryAgreementLine } from './agreement.js';
import { figureText } from '../../../record/counts.js';

const AGGREGATES: Readonly<Record<Aggregate, string>> = {
  median: 'Median of the scores',
  lowest: 'Lowest score',
  mean: 'Mean of the scores',
};

export interface JuryProps {
  readonly label: string;
  readonly members: readonly MemberExecution[];
  /** Or null while the jury is at work. */
  readonly result: JuryResult | null;
}

export function Jury({ label, members, result }: JuryProps) {
  const scores = members.flatMap(({ member, label: name, model, output }) => {
    const value = output?.value;
    return value !== undefined && 'score' in value ? [{ member, name, model, score: value.score }] : [];
  });
  if (scores.length === 0) return null;
  return (
    <>
      <div class="scrolling" tabIndex={0} role="group" aria-label={`Scores of ${label}`}>
        <table class="table ranking">
          <thead>
            <tr>
              <th scope="col">Member</th>
              <th scope="col">Score</th>
              <th scope="col">Model</th>
            </tr>
          </thead>
          <tbody>
            {scores.map(({ member, name, model, score }) => (
              <tr key={member}>
                <th scope="row">{name}</th>
                <td class="numeric">{score}</td>
                <td class="small break">{model}</td>
              </tr>
            ))}
          </tbody>
          {result !== null && (
            <tfoot>
              <tr>
                <th scope="row">{AGGREGATES[result.aggregate]}</th>
                <td class="numeric">
                  <strong>{figureText(result.score)}</strong>
                </td>
                <td />
              </tr>
            </tfoot>
          )}
        </table>
      </div>
      {result !== null && <JuryAgreementLine agreement={result.agreement} />}
    </>
  );
}
