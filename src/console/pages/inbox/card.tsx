/** The card of the selected pause: what waits, what follows, the changes, the draft, and the buttons to decide. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Approval, GodModeState } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { actor, may } from '../../shell/session.js';
import { settings } from '../../shell/settings.js';
import { decisions } from '../../shell/undo.js';
import { BudgetPause } from '../../ui/budget-fields.js';
import { Button } from '../../ui/controls.js';
import { NextStep } from '../../ui/next-step.js';
import { Citations } from '../../ui/prose.js';
import { useResource } from '../../ui/resource.js';
import { Failure, Loading } from '../../ui/states.js';
import { useCitations } from './citations.js';
import { Drafts } from './drafts.js';
import { Facts, Votes } from './facts.js';
import { loadPause } from './pause-content.js';
import type { Card, InboxStore } from './store.js';
import { isForBudget } from './store.js';

interface CardProps {
  readonly card: Card;
  readonly store: InboxStore;
}

export function PauseCard({ card, store }: CardProps) {
  const { key, pause, isBusy, late } = card;
  const id = `topic ${key}`.replaceAll(' ', '-');
  return (
    <article class="card pause-card" tabIndex={-1} aria-current="true" aria-labelledby={id} aria-busy={isBusy}>
      <div class="stack">
        <h2 id={id} class="break clamp">
          {pause.input_topic}
        </h2>
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
