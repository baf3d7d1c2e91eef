/** The facts and the votes of a pause. */
import type { Approval, PauseVote } from '../../../generated/schemas.js';
import { countOf } from '../../record/counts.js';
import { deadlineText } from '../../record/decision-texts.js';
import { tickingText } from '../../record/durations.js';
import { pageUrl } from '../../shell/router.js';
import { Badge } from '../../ui/controls.js';
import { Ago, dateTimeText, now, Since } from '../../ui/time.js';
import { isForBudget } from './store.js';

export function Facts({ pause }: { readonly pause: Approval }) {
  const { blueprint, critic_score: score, iteration_count: drafts } = pause;
  return (
    <p class="row small pause-facts">
      {isForBudget(pause) && <Badge tone="wait">budget reached</Badge>}
      <span class="muted break">{blueprint.name ?? 'Built-in council'}</span>
      <span>
        waiting for <Since at={pause.waiting_since} />
      </span>
      {score !== null && <span>score {score}</span>}
      {drafts > 0 && <span class="muted">{countOf(drafts, 'draft')} so far</span>}
      <Deadline pause={pause} />
      {pause.quorum > 1 && (
        <span>
          {pause.votes.length} of {pause.quorum} votes
        </span>
      )}
      <a href={pageUrl(['runs', pause.run_id], { at: pause.expected_seq })}>Open run</a>
    </p>
  );
}

/** The deadline, and what happens then. */
function Deadline({ pause: { deadline, deadline_then: then } }: { readonly pause: Approval }) {
  if (deadline === null) return null;
  const leftMs = Date.parse(deadline) - now.value;
  return (
    <span class={leftMs < 60_000 ? 'soon' : ''}>
      <time datetime={deadline} title={dateTimeText(deadline)}>
        {leftMs > 0 ? `in ${tickingText(leftMs + 999)}` : 'now'}
      </time>
      , {deadlineText(then)}
    </span>
  );
}

export function Votes({ votes }: { readonly votes: readonly PauseVote[] }) {
  if (votes.length === 0) return null;
  return (
    <ul class="votes small">
      {votes.map(({ actor: who, action, at, comment }) => (
        <li key={who}>
          <b>{who}</b>: {action} <Ago at={at} />
          {comment !== null && <q class="break">{comment}</q>}
        </li>
      ))}
    </ul>
  );
}
