/** The card of a pause: its times, votes, draft and the buttons to decide. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Approval, GodModeState, PauseVote } from '../../../generated/schemas.js';
import { countOf } from '../../record/counts.js';
import { tickingText } from '../../record/durations.js';
import { withoutMarks } from '../../record/plain-draft.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { actor, may } from '../../shell/session.js';
import { settings } from '../../shell/settings.js';
import { BudgetPause } from '../../ui/budget-fields.js';
import { Badge, Button } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import { useResource, type Resource } from '../../ui/resource.js';
import { Failure, Loading } from '../../ui/states.js';
import { DraftDiff } from '../../ui/text-diff.js';
import { Ago, dateTimeText, now, Since } from '../../ui/time.js';
import type { DraftsByNode, SeenDrafts } from './seen-drafts.js';
import type { Card, InboxStore } from './store.js';
import { isForBudget } from './store.js';

interface CardProps {
  readonly card: Card;
  /** Whether it is the selected card: it shows its draft, and shortcuts apply to it. */
  readonly isCurrent: boolean;
  readonly store: InboxStore;
  readonly seen: SeenDrafts;
}

export function PauseCard({ card, isCurrent, store, seen }: CardProps) {
  const { key, pause, isBusy } = card;
  const id = `topic ${key}`.replaceAll(' ', '-');
  return (
    <article
      class="card pause-card"
      tabIndex={-1}
      aria-current={isCurrent ? 'true' : undefined}
      aria-labelledby={id}
      aria-busy={isBusy}
      onClick={(event) => {
        if (event.target instanceof Element && event.target.closest('a, button, input') === null) store.select(card);
      }}
    >
      <Head pause={pause} store={store} id={id} />
      {isCurrent ? <Open card={card} store={store} seen={seen} /> : <Closed card={card} store={store} />}
    </article>
  );
}

interface HeadProps {
  readonly pause: Approval;
  readonly store: InboxStore;
  readonly id: string;
}

function Head({ pause, store, id }: HeadProps) {
  const { input_topic: topic, blueprint, next_nodes: next, critic_score: score, iteration_count: drafts } = pause;
  return (
    <div class="stack">
      <h2 id={id} class="break clamp">
        {topic}
      </h2>
      <p class="row small pause-facts">
        <span class="muted break">{blueprint.name ?? 'Council'}</span>
        {next.map((node) => (
          <Badge key={node} tone="wait">
            next: {store.labelOf(pause, node)}
          </Badge>
        ))}
        {isForBudget(pause) && <Badge tone="wait">budget</Badge>}
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
      </p>
    </div>
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
      , {typeof then === 'object' ? `then ${then.escalate.join(', ')} may decide` : THEN[then ?? 'reject']}
    </span>
  );
}

const THEN = { approve: 'then the run is approved', reject: 'then the run is rejected' } as const;

interface Shown {
  readonly card: Card;
  readonly store: InboxStore;
}

function Closed({ card, store }: Shown) {
  const { pause } = card;
  return (
    <>
      <Decide card={card} store={store} state={null} />
      {pause.draft_preview !== null && <p class="preview clamp">{withoutMarks(pause.draft_preview)}</p>}
    </>
  );
}

function Open({ card, store, seen }: Shown & { readonly seen: SeenDrafts }) {
  const { key, pause } = card;
  // The approvers change when the deadline escalates the pause.
  const { state, reload }: Resource<LoadedPause> = useResource(`${key} ${pause.deadline}`, async (signal) => {
    const found = await council.run(pause.run_id).pause({ signal });
    const shown = found?.seq === pause.expected_seq ? found.state : null;
    return { shown, before: shown === null ? null : seen.markSeen(shown) };
  });
  const { value: found } = state;
  const loaded = found.status === 'ready' ? found.value : null;
  const shown = loaded?.shown ?? null;
  useEffect(() => {
    if (shown !== null) store.onStateLoaded(pause, shown);
  }, [shown]);
  return (
    <>
      <Decide card={card} store={store} state={shown} isCurrent />
      <Votes votes={pause.votes} />
      {found.status === 'loading' && <Loading what="the draft" lines={3} />}
      {found.status === 'failed' && <Failure error={found.error} onRetry={reload} />}
      {loaded !== null && <Drafts loaded={loaded} labelOf={(node) => store.labelOf(pause, node)} />}
    </>
  );
}

/** The state at a pause, or null if it was decided meanwhile, and the drafts that the user saw before. */
interface LoadedPause {
  readonly shown: GodModeState | null;
  readonly before: DraftsByNode | null;
}

function Votes({ votes }: { readonly votes: readonly PauseVote[] }) {
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

interface DraftsProps {
  readonly loaded: LoadedPause;
  readonly labelOf: (node: string) => string;
}

function Drafts({ loaded: { shown, before }, labelOf }: DraftsProps) {
  if (shown === null) return null;
  const { current_state: state, branches = [] } = shown;
  const feedback = state.feedback_history.at(-1);
  return (
    <>
      {feedback !== undefined && (
        <section class="last-feedback">
          <h3 class="small muted">Last feedback</h3>
          <Prose text={feedback} />
        </section>
      )}
      {branches.length === 0 ? (
        <Draft name="Draft" text={state.current_draft} before={before?.[''] ?? null} />
      ) : (
        branches.map(({ node, current_draft: draft }) => (
          <Draft
            key={node}
            name={shown.next_nodes.includes(node) ? `Draft for ${labelOf(node)}` : `Draft waiting at ${labelOf(node)}`}
            text={draft}
            before={before?.[node] ?? before?.[''] ?? null}
          />
        ))
      )}
    </>
  );
}

function Draft({
  name,
  text,
  before,
}: {
  readonly name: string;
  readonly text: string | null;
  readonly before: string | null;
}) {
  if (text === null) return <p class="muted">No draft yet.</p>;
  const isChanged = before !== null && before !== '' && before !== text;
  return (
    <section class="stack">
      <h3 class="small muted">
        {name}
        {isChanged && ', changed since your last visit'}
        {before === text && ', unchanged since your last visit'}
      </h3>
      {isChanged ? (
        <>
          <DraftDiff before={before} after={text} />
          <details>
            <summary class="small">Full draft</summary>
            <Prose text={text} />
          </details>
        </>
      ) : (
        <Prose text={text} />
      )}
    </section>
  );
}

interface DecideProps extends Shown {
  /** Or null before it is loaded. */
  readonly state: GodModeState | null;
  readonly isCurrent?: boolean;
}

function Decide({ card, store, state, isCurrent = false }: DecideProps) {
  const { pause, isBusy, mayDecide } = card;
  const isRaise = isForBudget(pause);
  const link = (
    <a class="small" href={pageUrl(['runs', pause.run_id], { at: pause.expected_seq })}>
      Open run
    </a>
  );
  if (!mayDecide) {
    return (
      <>
        {isRaise && <Limits card={card} store={store} />}
        <div class="row">
          <p class="muted small grow">{whyNot(pause, state)}</p>
          {link}
        </div>
      </>
    );
  }
  const hasApproved = pause.votes.some((vote) => vote.actor === actor.value && vote.action === 'approve');
  // Shortcuts apply to the selected card.
  const keyOf = (key: string) => (isCurrent && settings.value.shortcuts ? key : undefined);
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
        {!isRaise && (
          <Button disabled={isBusy} shortcut={keyOf('e')} onClick={() => store.askForEdit(card)}>
            Edit
          </Button>
        )}
        <Button tone="danger" disabled={isBusy} shortcut={keyOf('r')} onClick={() => void store.decide(card, 'reject')}>
          Reject
        </Button>
        {link}
      </div>
      {isCurrent && <Comment card={card} store={store} />}
    </>
  );
}

/** What a pause for the budget needs, and its new limits. */
function Limits({ card, store }: Shown) {
  const { key, pause, mayDecide } = card;
  const { value: found } = store.limitFaults;
  if (pause.budget === undefined) return null;
  return (
    <BudgetPause
      status={pause.budget}
      mayDecide={mayDecide}
      typed={store.limitsOf(card)}
      faults={found?.key === key ? found.faults : {}}
      onType={(change) => store.typeLimits(card, change)}
    />
  );
}

/** Id of the comment field of a pause. */
export function commentId(key: string): string {
  return `comment-${key.replace(' ', '-')}`;
}

function Comment({ card, store }: Shown) {
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
        value={store.commentOn(key)}
        disabled={isBusy}
        onInput={(event) => store.comment(key, event.currentTarget.value)}
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
