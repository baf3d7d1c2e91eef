/** Who may decide an open pause: the rule, its votes, and why the user may not. */
import { countOf } from '../../record/counts.js';
import { deadlineText } from '../../record/decision-texts.js';
import type { PauseShown } from '../../record/run-record.js';
import { actor, may, session } from '../../shell/session.js';
import type { RunSummary } from './store.js';
import { Ago, dateTimeText } from '../../ui/time.js';

type Approvals = NonNullable<PauseShown['approvals']>;

/** Why the user may not decide, or null. The service checks it again. */
export function refusal(
  approvals: Approvals | null,
  started: Pick<RunSummary, 'actor' | 'earlierStarters'>,
): string | null {
  if (!may('approve')) return 'Your key may not decide.';
  if (approvals === null) return null;
  const isIn = approvals.by?.some(isUser) ?? true;
  if (!isIn) return `Only ${approvals.by?.join(', ')} may decide.`;
  const { value: user } = actor;
  const isStarter = user !== null && [started.actor, ...(started.earlierStarters ?? [])].includes(user);
  return approvals.notByStarter && isStarter ? 'You have started this run or one that it was forked from.' : null;
}

/** Whether a named approver is the user, by key name or by scope. */
function isUser(approver: string): boolean {
  const { value: now } = session;
  const scopes = now.status === 'in' ? now.session.scopes : [];
  return approver === actor.value || scopes.some((scope) => approver === `scope:${scope}`);
}

export function Rules({ approvals }: { readonly approvals: Approvals }) {
  const { by, quorum, votes, deadline, deadlineThen, notByStarter } = approvals;
  return (
    <ul class="rules small">
      <li>{by === null ? 'Every key that may approve can decide' : `${by.join(', ')} may decide`}</li>
      {notByStarter && <li>except users who started the run or one that it was forked from</li>}
      {quorum > 1 && (
        <li>
          {votes.length} of {countOf(quorum, 'vote')}
        </li>
      )}
      {votes.map((vote) => (
        <li key={vote.at}>
          {vote.actor ?? 'A user'} voted to {vote.choice.action} <Ago at={vote.at} />
          {vote.comment !== null && `: “${vote.comment}”`}
        </li>
      ))}
      {deadline !== null && (
        <li>
          until <time datetime={deadline}>{dateTimeText(deadline)}</time>, {deadlineText(deadlineThen)}
        </li>
      )}
    </ul>
  );
}
