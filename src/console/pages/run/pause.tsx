/** A run that waits for a human, decided right here. */
import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { StalePauseError } from '../../../client/errors.js';
import type { Pause } from '../../../client/pause.js';
import { countOf } from '../../record/counts.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { actor, may, session } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Button, TextBox } from '../../ui/controls.js';
import { Ago, Since, exactly } from '../../ui/time.js';
import type { RunStore, RunSummary } from './store.js';

type Approvals = NonNullable<NonNullable<RunSummary['now']['pause']>['approvals']>;

/** Nothing, unless the run waits now. */
export function PausePanel({ store }: { readonly store: RunStore }) {
  const { value: summary } = store.summary;
  const pause = summary?.now.pause ?? null;
  if (summary === null || pause === null || pause.decision !== null) return null;
  const { approvals } = pause;
  const whyNot = refusal(approvals, summary.actor);
  return (
    <section class="card run-pause" aria-labelledby="pause">
      <div class="row spread">
        <h2 id="pause">
          Waits for a decision before {summary.now.nextNodes.map((node) => store.labelOf(node)).join(', ')}
        </h2>
        <span class="small">
          for <Since at={pause.pausedAt} />
        </span>
      </div>
      {approvals !== null && <Rules approvals={approvals} />}
      {whyNot === null ? (
        <Decide key={pause.seq} pause={council.run(store.source.id).pauseAt(pause.seq)} now={summary.now} />
      ) : (
        <p class="muted">{whyNot}</p>
      )}
    </section>
  );
}

/** Why whoever looks may not decide; null: they may. The service has the last word. */
function refusal(approvals: Approvals | null, starter: string | null): string | null {
  if (!may('approve')) return 'This key may look, but not decide.';
  if (approvals === null) return null;
  const isIn = approvals.by?.some(isOneself) ?? true;
  if (!isIn) return `Only ${approvals.by?.join(', ')} may decide.`;
  if (approvals.notByStarter && starter === actor.value) return 'Whoever started the run may not decide.';
  const hasVoted = approvals.votes.some((vote) => vote.actor !== null && vote.actor === actor.value);
  return hasVoted ? 'You have voted. Others are waited for.' : null;
}

/** Whether an approver that is named is whoever looks: by name, or by what their key may do. */
function isOneself(approver: string): boolean {
  const { value: now } = session;
  const scopes = now.status === 'in' ? now.session.scopes : [];
  return approver === actor.value || scopes.some((scope) => approver === `scope:${scope}`);
}

function Rules({ approvals: { by, quorum, votes, deadline, notByStarter } }: { readonly approvals: Approvals }) {
  return (
    <ul class="rules small">
      <li>{by === null ? 'Whoever may approve decides' : `${by.join(', ')} may decide`}</li>
      {notByStarter && <li>not who started the run</li>}
      {quorum > 1 && (
        <li>
          {votes.length} of {countOf(quorum, 'vote')}
        </li>
      )}
      {votes.map((vote) => (
        <li key={vote.at}>
          {vote.actor ?? 'Someone'} said {vote.choice.action} <Ago at={vote.at} />
          {vote.comment !== null && `: “${vote.comment}”`}
        </li>
      ))}
      {deadline !== null && (
        <li>
          until <time datetime={deadline}>{exactly(deadline)}</time>
        </li>
      )}
    </ul>
  );
}

function Decide({ pause, now }: { readonly pause: Pause; readonly now: RunSummary['now'] }) {
  const comment = useSignal('');
  const isBusy = useSignal(false);
  const draft = useSignal<string | null>(null);
  async function decide(action: Action): Promise<void> {
    isBusy.value = true;
    const options = comment.value.trim() === '' ? {} : { comment: comment.value };
    try {
      if (action === 'modify') await pause.modify({ current_draft: draft.value }, options);
      else await pause[action](options);
      toast('Your decision is recorded.', 'good');
    } catch (error) {
      if (error instanceof StalePauseError) toast('Too late: this pause has been decided already.', 'wait');
      else toastError(error);
      isBusy.value = false;
    }
  }
  const buttons = { pause, now, draft, isBusy: isBusy.value, onDecide: (action: Action) => void decide(action) };
  return (
    <div class="stack">
      {draft.value !== null && (
        <TextBox label="Draft" rows={12} value={draft.value} onType={(text) => (draft.value = text)} />
      )}
      <TextBox
        label="Comment"
        isLabelUnseen
        placeholder="Why (recorded beside the decision)"
        value={comment.value}
        onType={(text) => (comment.value = text)}
      />
      <div class="row">{draft.value === null ? <Words {...buttons} /> : <WordsOnEdit {...buttons} />}</div>
    </div>
  );
}

type Action = 'approve' | 'reject' | 'modify';

interface WordsProps {
  readonly pause: Pause;
  readonly now: RunSummary['now'];
  /** As it is edited; null: it is not. */
  readonly draft: Signal<string | null>;
  readonly isBusy: boolean;
  readonly onDecide: (action: Action) => void;
}

function Words({ pause, now, draft, isBusy, onDecide }: WordsProps) {
  return (
    <>
      <Button tone="primary" disabled={isBusy} onClick={() => onDecide('approve')}>
        Approve
      </Button>
      {now.branches.length < 2 && now.draft !== null && (
        <Button disabled={isBusy} onClick={() => (draft.value = now.draft)}>
          Edit the draft
        </Button>
      )}
      <Button tone="danger" disabled={isBusy} onClick={() => onDecide('reject')}>
        Reject
      </Button>
      <a class="small" href={pageUrl(['inbox'], { run: pause.runId })}>
        More in the inbox
      </a>
    </>
  );
}

function WordsOnEdit({ now, draft, isBusy, onDecide }: WordsProps) {
  const isSame = draft.value === now.draft;
  return (
    <>
      <Button tone="primary" disabled={isBusy || isSame} onClick={() => onDecide('modify')}>
        Go on with this draft
      </Button>
      <Button onClick={() => (draft.value = null)}>Leave it as it was</Button>
    </>
  );
}
