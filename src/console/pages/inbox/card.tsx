/** One pause: what waits, since when and until when, who has said what, the draft, and the decision. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Approval, GodModeState, PauseVote } from '../../../generated/schemas.js';
import { countOf } from '../../record/counts.js';
import { tickingText } from '../../record/durations.js';
import { withoutMarks } from '../../record/plain-draft.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { actor, may } from '../../shell/session.js';
import { Badge, Button } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import { useResource, type Resource } from '../../ui/resource.js';
import { Failure, Loading } from '../../ui/states.js';
import { DraftDiff } from '../../ui/text-diff.js';
import { Ago, exactly, now, Since } from '../../ui/time.js';
import type { Drafts, SeenDrafts } from './seen-drafts.js';
import type { Card, InboxStore } from './store.js';

interface CardProps {
  readonly card: Card;
  /** Whether it is the one that is looked at: it shows its draft, and keys mean it. */
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
        if (event.target instanceof Element && event.target.closest('a, button, input') === null) store.look(card);
      }}
    >
      <Head pause={pause} id={id} />
      {isCurrent ? <Open card={card} store={store} seen={seen} /> : <Closed card={card} store={store} />}
    </article>
  );
}

function Head({ pause, id }: { readonly pause: Approval; readonly id: string }) {
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
            next: {node}
          </Badge>
        ))}
        <span>
          waits for <Since at={pause.waiting_since} />
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

/** What happens when nobody decides, and how soon. */
function Deadline({ pause: { deadline, deadline_then: then } }: { readonly pause: Approval }) {
  if (deadline === null) return null;
  const leftMs = Date.parse(deadline) - now.value;
  return (
    <span class={leftMs < 60_000 ? 'soon' : ''}>
      <time datetime={deadline} title={exactly(deadline)}>
        {leftMs > 0 ? `in ${tickingText(leftMs + 999)}` : 'now'}
      </time>
      : {typeof then === 'object' ? `${then.escalate.join(', ')} will be asked` : THEN[then ?? 'reject']}
    </span>
  );
}

const THEN = { approve: 'it goes on by itself', reject: 'it ends as rejected' } as const;

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
  // Others may be asked after its deadline: then it is another list of names.
  const { state, reload }: Resource<Looked> = useResource(`${key} ${pause.deadline}`, async (signal) => {
    const found = await council.run(pause.run_id).pause({ signal });
    const shown = found?.seq === pause.expected_seq ? found.state : null;
    return { shown, before: shown === null ? null : seen.look(shown) };
  });
  const { value: found } = state;
  const looked = found.status === 'ready' ? found.value : null;
  const shown = looked?.shown ?? null;
  useEffect(() => {
    if (shown !== null) store.know(pause, shown);
  }, [shown]);
  return (
    <>
      <Decide card={card} store={store} state={shown} isCurrent />
      <Votes votes={pause.votes} />
      {found.status === 'loading' && <Loading what="the draft" lines={3} />}
      {found.status === 'failed' && <Failure error={found.error} onRetry={reload} />}
      {looked !== null && <Read looked={looked} />}
    </>
  );
}

/** The state at a pause, unless it has gone meanwhile; and the drafts that were seen before. */
interface Looked {
  readonly shown: GodModeState | null;
  readonly before: Drafts | null;
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

function Read({ looked: { shown, before } }: { readonly looked: Looked }) {
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
            name={shown.next_nodes.includes(node) ? `Draft for ${node}` : `Draft that waits at ${node}`}
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
        {isChanged && ', changed since you last looked'}
        {before === text && ', as you last saw it'}
      </h3>
      {isChanged ? (
        <>
          <DraftDiff before={before} after={text} />
          <details>
            <summary class="small">The whole draft</summary>
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
  /** Null: it is not known. */
  readonly state: GodModeState | null;
  readonly isCurrent?: boolean;
}

function Decide({ card, store, state, isCurrent = false }: DecideProps) {
  const { pause, isBusy, mayDecide } = card;
  const link = (
    <a class="small" href={pageUrl(['runs', pause.run_id], { at: pause.expected_seq })}>
      The run at this pause
    </a>
  );
  if (!mayDecide) {
    return (
      <div class="row">
        <p class="muted small grow">{whyNot(pause, state)}</p>
        {link}
      </div>
    );
  }
  const hasApproved = pause.votes.some((vote) => vote.actor === actor.value && vote.action === 'approve');
  // Keys mean the card that is looked at.
  const keyOf = (key: string) => (isCurrent ? key : undefined);
  return (
    <>
      <div class="row decide">
        <Button
          tone="primary"
          disabled={isBusy || hasApproved}
          shortcut={keyOf('a')}
          onClick={() => void store.decide(card, 'approve')}
        >
          Approve
        </Button>
        <Button disabled={isBusy} shortcut={keyOf('e')} onClick={() => store.askForEdit(card)}>
          Edit
        </Button>
        <Button tone="danger" disabled={isBusy} shortcut={keyOf('r')} onClick={() => void store.decide(card, 'reject')}>
          Reject
        </Button>
        {link}
      </div>
      {isCurrent && <Comment card={card} store={store} />}
    </>
  );
}

/** Of the field for the comment on a pause. */
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
        placeholder={isRejecting ? 'Why? Enter rejects, Escape does not' : 'A comment, if you like'}
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
  if (!may('approve')) return 'This key may look, but not decide.';
  const by = state?.approvals?.by ?? null;
  if (by === null) return quorum > 1 ? `${quorum} others decide.` : 'Others decide.';
  return `${by.join(', ')} may decide.`;
}
