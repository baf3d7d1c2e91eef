/** The card of the selected pause: what waits, what follows, the changes, the draft, and the buttons to decide. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Approval, GodModeState, PauseVote } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { actor, may } from '../../shell/session.js';
import { settings } from '../../shell/settings.js';
import { decisions } from '../../shell/undo.js';
import { BudgetPause } from '../../ui/budget-fields.js';
import { Later, chunk } from '../../ui/chunks.js';
import { Button, Badge } from '../../ui/controls.js';
import { NextStep, WideOpen } from '../../ui/next-step.js';
import { pauseKey } from '../../shell/pending-approvals.js';
import { onDraftSeen } from '../../shell/reviews.js';
import { OnScreen } from '../../ui/on-screen.js';
import { Citations, Prose } from '../../ui/prose.js';
import { useResource } from '../../ui/resource.js';
import { Failure, Loading } from '../../ui/states.js';
import { useCitations } from './citations.js';
import type { PauseContent } from './pause-content.js';
import { loadPause, labelIn } from './pause-content.js';
import type { Card, InboxStore } from './store.js';
import { isForBudget } from './store.js';
import { DraftDiff } from '../../ui/text-diff.js';
import { countOf } from '../../record/counts.js';
import { deadlineText } from '../../record/decision-texts.js';
import { tickingText } from '../../record/durations.js';
import { pageUrl } from '../../shell/router.js';
import { Ago, dateTimeText, now, Since } from '../../ui/time.js';

/** Loads with the first run that a council has started. */
const trail = chunk(() => import('../run/trail.js'));

interface CardProps {
  readonly card: Card;
  readonly store: InboxStore;
}

export function PauseCard({ card, store }: CardProps) {
  const { key, pause, isBusy, late } = card;
  const { parent_run: parent } = pause;
  const id = `topic ${key}`.replaceAll(' ', '-');
  return (
    <article class="card pause-card" tabIndex={-1} aria-current="true" aria-labelledby={id} aria-busy={isBusy}>
      <div class="stack">
        <h2 id={id} class="break clamp">
          {pause.input_topic}
        </h2>
        {parent !== undefined && (
          <Later of={trail}>{({ Trail }) => <Trail of={{ ...parent, runId: parent.run_id }} />}</Later>
        )}
        <Facts pause={pause} />
      </div>
      {late === null ? <Open card={card} store={store} /> : <Late card={card} text={late} />}
    </article>
  );
}

/** What happened instead of the user's decision. */
function Late({ card: { key }, text }: { readonly card: Card; readonly text: string }) {
  return (
    <>
      <p class="notice wait">{text}</p>
      <div class="row">
        <Button onClick={() => decisions.dismiss(key)}>Dismiss</Button>
      </div>
    </>
  );
}

function Open({ card, store }: CardProps) {
  const { key, pause } = card;
  const { run_id: runId, expected_seq: seq, deadline } = pause;
  // The approvers change when the deadline escalates the pause.
  const { state, reload } = useResource(`${key} ${deadline}`, (signal) => loadPause(council, { runId, seq }, signal));
  const { value: found } = state;
  const content = found.status === 'ready' ? found.value : null;
  const citations = useCitations(pause, content);
  useEffect(() => {
    if (content !== null) store.onLoaded(key, content);
  }, [content]);
  return (
    <>
      <Decide card={card} store={store} state={content?.state ?? null} />
      <Votes votes={pause.votes} />
      {found.status === 'loading' && <Loading what="the draft" lines={3} />}
      {found.status === 'failed' && <Failure error={found.error} onRetry={reload} />}
      {content !== null && content.state !== null && (
        <>
          {content.next === null ? (
            <p class="notice">
              <span class="grow">What this run sends to its models next could not be loaded.</span>
              <Button onClick={reload}>Try again</Button>
            </p>
          ) : (
            <NextStep next={content.next} />
          )}
          <Citations.Provider value={citations}>
            <Drafts content={content} state={content.state} />
          </Citations.Provider>
        </>
      )}
    </>
  );
}

interface DecideProps extends CardProps {
  /** Or null before it is loaded. */
  readonly state: GodModeState | null;
}

function Decide({ card, store, state }: DecideProps) {
  const { pause, isBusy, mayDecide } = card;
  const isRaise = isForBudget(pause);
  if (!mayDecide) {
    return (
      <>
        {isRaise && <Limits card={card} store={store} />}
        <div class="row">
          <p class="muted small grow">{whyNot(pause, state)}</p>
        </div>
      </>
    );
  }
  const hasApproved = pause.votes.some((vote) => vote.actor === actor.value && vote.action === 'approve');
  const hasEdit = state === null ? !isRaise : state.allowed_actions.includes('modify');
  const keyOf = (key: string) => (settings.value.shortcuts ? key : undefined);
  return (
    <>
      {isRaise && <Limits card={card} store={store} />}
      <div class="row decide">
        <Button
          tone="primary"
          disabled={isBusy || hasApproved}
          shortcut={keyOf('a')}
          onClick={() => void store.decide(card, 'approve')}
        >
          Approve
        </Button>
        {hasEdit && (
          <Button disabled={isBusy} shortcut={keyOf('e')} onClick={() => store.askForEdit(card)}>
            Edit
          </Button>
        )}
        <Button tone="danger" disabled={isBusy} shortcut={keyOf('r')} onClick={() => void store.decide(card, 'reject')}>
          Reject
        </Button>
      </div>
      <Comment card={card} store={store} />
    </>
  );
}

/** What a pause for the budget needs, and its new limits. */
function Limits({ card, store }: CardProps) {
  const { key, pause, mayDecide } = card;
  const { value: found } = store.limitFaults;
  if (pause.budget === undefined) return null;
  return (
    <BudgetPause
      status={pause.budget}
      mayDecide={mayDecide}
      typed={store.typed.limitsOf(card)}
      faults={found?.key === key ? found.faults : {}}
      onType={(change) => store.typed.changeLimits(card, change)}
    />
  );
}

/** Id of the comment field of a pause. */
export function commentId(key: string): string {
  return `comment-${key.replace(' ', '-')}`;
}

function Comment({ card, store }: CardProps) {
  const { key, isBusy } = card;
  const isRejecting = store.rejecting.value === key;
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (isRejecting) field.current?.focus();
  }, [isRejecting]);
  function onKeyDown({ key: pressed, isComposing }: KeyboardEvent): void {
    if (isComposing || (pressed !== 'Enter' && pressed !== 'Escape')) return;
    if (pressed === 'Enter' && isRejecting) void store.decide(card, 'reject');
    field.current?.blur();
  }
  return (
    <label>
      <span class="unseen">Comment</span>
      <input
        ref={field}
        id={commentId(key)}
        class="input"
        maxLength={2_000}
        placeholder={isRejecting ? 'Reason. Enter rejects, Escape cancels' : 'Comment (optional)'}
        value={store.typed.commentOn(key)}
        disabled={isBusy}
        onInput={(event) => store.typed.comment(key, event.currentTarget.value)}
        onBlur={() => (store.rejecting.value = null)}
        onKeyDown={onKeyDown}
      />
    </label>
  );
}

function whyNot({ quorum }: Approval, state: GodModeState | null): string {
  if (!may('approve')) return 'Your key may not decide.';
  const by = state?.approvals?.by ?? null;
  if (by === null) return quorum > 1 ? `${quorum} other approvers decide.` : 'Another approver decides.';
  return `Only ${by.join(', ')} may decide.`;
}

interface DraftsProps {
  readonly content: PauseContent;
  readonly state: GodModeState;
}

export function Drafts({ content, state: session }: DraftsProps) {
  const { run_id: runId, seq, current_state: state, branches = [], next_nodes: next } = session;
  const { before } = content;
  const feedback = state.feedback_history.at(-1);
  const key = pauseKey({ run_id: runId, expected_seq: seq });
  return (
    <>
      {feedback !== undefined && (
        <section class="last-feedback">
          <h3 class="small muted">Last feedback</h3>
          <Prose text={feedback} />
        </section>
      )}
      <OnScreen of={key} onSeen={() => void onDraftSeen(key, state.current_draft)} />
      {branches.length === 0 ? (
        <Draft name="Draft" text={state.current_draft} before={before} />
      ) : (
        branches.map(({ node, current_draft: draft }) => (
          <Draft
            key={node}
            name={`${next.includes(node) ? 'Draft for' : 'Draft waiting at'} ${labelIn(content, node)}`}
            text={draft}
            before={before}
          />
        ))
      )}
    </>
  );
}

interface DraftProps {
  readonly name: string;
  readonly text: string | null;
  /** The draft at the pause before, or null. */
  readonly before: string | null;
}

function Draft({ name, text, before }: DraftProps) {
  if (text === null) return <p class="muted">No draft yet.</p>;
  const isChanged = before !== null && before !== text;
  return (
    <section class="stack">
      {isChanged && (
        <WideOpen look="changes" title={<span class="small muted">Changes since the last pause</span>}>
          <DraftDiff before={before} after={text} />
        </WideOpen>
      )}
      <h3 class="small muted">
        {name}
        {before === text && ', unchanged since the last pause'}
      </h3>
      <Prose text={text} />
    </section>
  );
}

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
