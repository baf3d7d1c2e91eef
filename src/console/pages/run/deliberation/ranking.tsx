/** The result of a rank as a table: each answer with its points and its place with each reviewer. */
import type { RankResult } from '../../../../generated/schemas.js';
import type { Execution, MemberExecution } from '../../../record/executions.js';
import { labelsByLetter, rankingOf } from '../../../record/executions.js';
import { Prose } from '../../../ui/prose.js';
import { RankAgreementLine } from './agreement.js';
import { figureText } from '../../../record/counts.js';
import { withNames } from './with-names.js';

export interface RankingProps {
  readonly execution: Execution;
  readonly reviewers: readonly MemberExecution[];
  readonly result: RankResult;
}

export function Ranking({ execution, reviewers, result: { points, kept, agreement } }: RankingProps) {
  const labels = labelsOfAnswers(execution);
  const nameOf = (member: string): string => labels.get(member) ?? member;
  const isAllKept = kept.length === points.length;
  return (
    <>
      <div class="scrolling" tabIndex={0} role="group" aria-label={`Ranking of ${execution.label}`}>
        <table class="table ranking">
          <thead>
            <tr>
              <th scope="col">Rank</th>
              <th scope="col">Answer of</th>
              <th scope="col">Points</th>
              <th scope="col">Place with each reviewer</th>
            </tr>
          </thead>
          <tbody>
            {points.map(({ member, points: given, rank }) => (
              <tr key={member} class={kept.includes(member) ? undefined : 'muted'}>
                <td class="numeric">{rank}</td>
                <th scope="row">
                  {nameOf(member)}
                  {!isAllKept && !kept.includes(member) && <span class="small muted"> not kept</span>}
                </th>
                <td class="numeric">{figureText(given)}</td>
                <td class="small">
                  <ul>
                    {placesOf(member, reviewers).map((place, index) => (
                      <li key={index}>{place}</li>
                    ))}
                  </ul>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <RankAgreementLine agreement={agreement} />
      <Comments {...{ execution, reviewers }} />
    </>
  );
}

/** The labels of the ranked answers by member. */
export function labelsOfAnswers({ panelsRead }: Pick<Execution, 'panelsRead'>): ReadonlyMap<string, string> {
  return new Map(panelsRead.flatMap(({ answers }) => answers.map(({ member, label }) => [member, label] as const)));
}

function placesOf(member: string, reviewers: readonly MemberExecution[]): readonly string[] {
  return reviewers.flatMap((reviewer) => {
    const ranking = rankingOf(reviewer);
    const at = ranking?.indexOf(member) ?? -1;
    return ranking === null || at < 0 ? [] : [`${reviewer.label}: ${at + 1} of ${ranking.length}`];
  });
}

function Comments({ execution, reviewers }: Pick<RankingProps, 'execution' | 'reviewers'>) {
  const said = reviewers.flatMap((reviewer) => {
    const comment = commentOf(execution, reviewer);
    return comment === null ? [] : [{ ...reviewer, comment }];
  });
  if (said.length === 0) return null;
  return (
    <dl class="said">
      {said.map(({ member, label, comment }) => (
        <div key={member}>
          <dt>{label}</dt>
          <dd>
            <Prose text={comment} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The comment of a reviewer with the labels of members in place of letters, or null if it has none. */
export function commentOf({ panelsRead }: Execution, { output, orderShown }: MemberExecution): string | null {
  const value = output?.value;
  if (value === undefined || !('ranking' in value) || value.comment.trim() === '') return null;
  return withNames(value.comment, labelsByLetter({ orderShown, panelsRead }));
}
