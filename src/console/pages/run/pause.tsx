/** The open pause of a run, with buttons to decide it. */
import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import type { Pause } from '../../../client/pause.js';
import { BudgetDecision } from './budget-decision.js';
import type { DecidedPause } from './decision.js';
import { CommentBox, useDecision } from './decision.js';
import { countOf } from '../../record/counts.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { actor, may, session } from '../../shell/session.js';
import { Button, TextBox } from '../../ui/controls.js';
import { Ago, Since, dateTimeText } from '../../ui/time.js';
import type { RunStore, RunSummary } from './store.js';

type Approvals = NonNullable<NonNullable<RunSummary['now']['pause']>['approvals']>;

export function PausePanel({ store }: { readonly store: RunStore }) {
  const { value: summary } = store.summary;
  const pause = summary?.now.pause ?? null;
  if (summary === null || pause === null || pause.decision !== null) return null;
  const { approvals } = pause;
  const whyNot = refusal(approvals, summary.actor);
  const isForBudget = pause.reason === 'budget';
  const decided = { pause: council.run(store.source.id).pauseAt(pause.seq), topic: summary.now.topic };
  return (
    <section class="card run-pause" aria-labelledby="pause">
      <div class="row spread">
        <h2 id="pause">
          {isForBudget ? 'Paused for its budget before ' : 'Waiting for a decision before '}
          {summary.now.nextNodes.map((node) => store.labelOf(node)).join(', ')}
        </h2>
        <span class="small">
          for <Since at={pause.pausedAt} />
        </span>
      </div>
      {approvals !== null && <Rules approvals={approvals} />}
      {isForBudget && <BudgetDecision key={pause.seq} pause={decided} mayDecide={whyNot === null} />}
      {!isForBudget && whyNot === null && <Decide key={pause.seq} pause={decided} now={summary.now} />}
      {whyNot !== null && <p class="muted">{whyNot}</p>}
    </section>
  );
}

/** Why the user may not decide, or null. The service checks it again. */
function refusal(approvals: Approvals | null, starter: string | null): string | null {
  if (!may('approve')) return 'Your key may not decide.';
  if (approvals === null) return null;
  const isIn = approvals.by?.some(isUser) ?? true;
  if (!isIn) return `Only ${approvals.by?.join(', ')} may decide.`;
  if (approvals.notByStarter && starter === actor.value) return 'The user who started the run may not decide.';
  const hasVoted = approvals.votes.some((vote) => vote.actor !== null && vote.actor === actor.value);
  return hasVoted ? 'You have voted. The run waits for more votes.' : null;
}

/** Whether a named approver is the user, by key name or by scope. */
function isUser(approver: string): boolean {
  const { value: now } = session;
  const scopes = now.status === 'in' ? now.session.scopes : [];
  return approver === actor.value || scopes.some((scope) => approver === `scope:${scope}`);
}

function Rules({ approvals: { by, quorum, votes, deadline, notByStarter } }: { readonly approvals: Approvals }) {
  return (
    <ul class="rules small">
      <li>{by === null ? 'Every key that may approve can decide' : `${by.join(', ')} may decide`}</li>
      {notByStarter && <li>except the user who started the run</li>}
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
          until <time datetime={deadline}>{dateTimeText(deadline)}</time>
        </li>
      )}
    </ul>
  );
}

function Decide({ pause: decided, now }: { readonly pause: DecidedPause; readonly now: RunSummary['now'] }) {
  const { pause } = decided;
  const { comment, isBusy, send } = useDecision(decided);
  const draft = useSignal<string | null>(null);
  const decide = (action: Action): Promise<void> =>
    send(DONE[action], (options) =>
      action === 'modify' ? pause.modify({ current_draft: draft.value }, options) : pause[action](options),
    );
  const buttons = { pause, now, draft, isBusy, onDecide: (action: Action) => void decide(action) };
  return (
    <div class="stack">
      {draft.value !== null && (
        <TextBox label="Draft" rows={12} value={draft.value} onType={(text) => (draft.value = text)} />
      )}
      <CommentBox comment={comment} />
      <div class="row">{draft.value === null ? <DecisionButtons {...buttons} /> : <EditButtons {...buttons} />}</div>
    </div>
  );
}

/** What the user's decision did. */
const DONE = { approve: 'Approved', reject: 'Rejected', modify: 'Changed the draft of' } as const;

type Action = keyof typeof DONE;

interface ButtonsProps {
  readonly pause: Pause;
  readonly now: RunSummary['now'];
  /** The edited draft, or null if the user does not edit. */
  readonly draft: Signal<string | null>;
  readonly isBusy: boolean;
  readonly onDecide: (action: Action) => void;
}

function DecisionButtons({ pause, now, draft, isBusy, onDecide }: ButtonsProps) {
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
        Open in inbox
      </a>
    </>
  );
}

function EditButtons({ now, draft, isBusy, onDecide }: ButtonsProps) {
  const isSame = draft.value === now.draft;
  return (
    <>
      <Button tone="primary" disabled={isBusy || isSame} onClick={() => onDecide('modify')}>
        Continue with this draft
      </Button>
      <Button onClick={() => (draft.value = null)}>Discard changes</Button>
    </>
  );
}
