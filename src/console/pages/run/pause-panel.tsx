/** The open pause of a run: what follows, what has changed, and the buttons to decide it. */
import { useMemo } from 'preact/hooks';
import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import type { GodModeState } from '../../../generated/schemas.js';
import type { LimitFaults, TypedLimits } from '../../record/budget.js';
import { raisedLimits, suggestedLimits } from '../../record/budget.js';
import { effectText, outcomeText } from '../../record/decision-texts.js';
import { council, pendingApprovals } from '../../shell/council.js';
import type { Decision, Outcome } from '../../shell/decisions.js';
import { pauseKey } from '../../shell/pending-approvals.js';
import { pageUrl } from '../../shell/router.js';
import { actor } from '../../shell/session.js';
import { decisions } from '../../shell/undo.js';
import { BudgetPause } from '../../ui/budget-fields.js';
import { Button, TextBox } from '../../ui/controls.js';
import { NextStep } from '../../ui/next-step.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import { DraftDiff } from '../../ui/text-diff.js';
import { Since, serviceTime } from '../../ui/time.js';
import { EditDialog } from '../inbox/edit-dialog.js';
import { Editing } from '../inbox/editing.js';
import type { PauseContent } from '../inbox/pause-content.js';
import { loadPause } from '../inbox/pause-content.js';
import type { PauseShown } from '../../record/run-record.js';
import { Rules, refusal } from './pause-rules.js';
import type { RunStore, RunSummary } from './store.js';

export interface OpenPauseProps {
  readonly store: RunStore;
  readonly summary: RunSummary;
  readonly pause: PauseShown;
}

export function OpenPause({ store, summary, pause }: OpenPauseProps) {
  const { approvals, seq } = pause;
  const runId = store.source.id;
  const content = useResource(`${runId} ${seq}`, (signal) => loadPause(council, { runId, seq }, signal));
  const isForBudget = pause.reason === 'budget';
  return (
    <section class="card run-pause" aria-labelledby="pause">
      <div class="row spread pause-head">
        <h2 id="pause">
          {isForBudget ? 'Waiting for a larger budget before ' : 'Waiting for a decision before '}
          {summary.now.nextNodes.map((node) => store.labelOf(node)).join(', ')}
        </h2>
        <span class="small">
          for <Since at={pause.pausedAt} /> · <a href={pageUrl(['inbox'], { run: runId })}>Open in inbox</a>
        </span>
      </div>
      {approvals !== null && <Rules approvals={approvals} />}
      <WhenLoaded of={content} what="what follows" lines={3}>
        {(loaded) => <Loaded {...{ store, summary, pause, content: loaded }} />}
      </WhenLoaded>
    </section>
  );
}

interface LoadedProps extends OpenPauseProps {
  readonly content: PauseContent;
}

function Loaded({ content, ...props }: LoadedProps) {
  const { state, next, before } = content;
  const { summary, pause } = props;
  const whyNot = refusal(pause.approvals, summary);
  if (state === null) return null;
  const draft = state.current_state.current_draft;
  return (
    <>
      {whyNot === null ? (
        <Decide {...props} state={state} />
      ) : (
        <>
          {state.pause_reason === 'budget' && <Spent state={state} />}
          <p class="muted">{whyNot}</p>
        </>
      )}
      {next !== null && <NextStep next={next} />}
      {before !== null && draft !== null && before !== draft && (
        <details class="changes">
          <summary class="small">Changes since the last pause</summary>
          <DraftDiff before={before} after={draft} />
        </details>
      )}
    </>
  );
}

function Spent({ state: { budget } }: { readonly state: GodModeState }) {
  if (budget === undefined) return null;
  return (
    <BudgetPause status={budget} mayDecide={false} typed={suggestedLimits(budget)} faults={{}} onType={() => {}} />
  );
}

interface DecideProps extends OpenPauseProps {
  readonly state: GodModeState;
}

function Decide(props: DecideProps) {
  const { store, pause, state } = props;
  const runId = store.source.id;
  const key = pauseKey({ run_id: runId, expected_seq: pause.seq });
  const comment = useSignal('');
  const limits = useSignal<TypedLimits | null>(null);
  const editing = useMemo(() => editingOf(props), [key]);
  const underway = decisions.of(key);
  // The message at the edge of the window says what is decided, and undoes it.
  if (underway !== null) return <p class="muted">Your decision is not recorded yet.</p>;
  if (pendingApprovals.isDecided(key)) return <p class="muted">Your decision is recorded.</p>;
  return (
    <div class="stack">
      <Buttons {...props} {...{ comment, limits, editing }} />
      <TextBox
        label="Comment"
        isLabelUnseen
        placeholder="Comment (optional)"
        value={comment.value}
        onType={(text) => (comment.value = text)}
      />
      {state.allowed_actions.includes('modify') && <EditDialog editing={editing} />}
    </div>
  );
}

interface ButtonsProps extends DecideProps {
  readonly comment: Signal<string>;
  /** Or null until the user types some. */
  readonly limits: Signal<TypedLimits | null>;
  readonly editing: Editing;
}

function Buttons({ comment, limits, editing, ...props }: ButtonsProps) {
  const { store, summary, pause, state } = props;
  const { budget } = state;
  const faults = useSignal<LimitFaults>({});
  const isRaise = state.pause_reason === 'budget' && budget !== undefined;
  const typed = limits.value ?? (isRaise ? suggestedLimits(budget) : null);
  const hasApproved = pause.approvals?.votes.some(
    (vote) => vote.actor !== null && vote.actor === actor.value && vote.choice.action === 'approve',
  );
  const send = (choice: Choice): void => void decide(props, { ...choice, comment: comment.value.trim() || undefined });
  function approve(): void {
    if (!isRaise || typed === null) return send({ action: 'approve' });
    const raised = raisedLimits(typed, budget);
    faults.value = raised.faults;
    if (Object.keys(raised.faults).length === 0) send({ action: 'approve', budget: raised.limits });
  }
  return (
    <>
      {isRaise && typed !== null && (
        <BudgetPause
          status={budget}
          mayDecide
          typed={typed}
          faults={faults.value}
          onType={(change) => (limits.value = { ...typed, ...change })}
        />
      )}
      <div class="row decide">
        <Button tone="primary" disabled={hasApproved === true} onClick={approve}>
          Approve
        </Button>
        {state.allowed_actions.includes('modify') && (
          <Button
            onClick={() => editing.open({ state, topic: summary.now.topic, labelOf: (node) => store.labelOf(node) })}
          >
            Edit
          </Button>
        )}
        <Button tone="danger" onClick={() => send({ action: 'reject' })}>
          Reject
        </Button>
      </div>
    </>
  );
}

type Choice = Pick<Decision, 'action' | 'comment' | 'budget' | 'change'>;

function editingOf(props: OpenPauseProps): Editing {
  return new Editing({
    send: ({ change, comment }) => decide(props, { action: 'modify', change, comment }),
    outcomeOf(key, topic) {
      const gone = pendingApprovals.isDecided(key) ? null : pendingApprovals.outcomeOf(key);
      return gone === null ? null : outcomeText(topic, gone, serviceTime());
    },
  });
}

function decide({ store, summary, pause: { seq, approvals } }: OpenPauseProps, choice: Choice): Promise<Outcome> {
  const { topic, nextNodes } = summary.now;
  const isVote = approvals !== null && approvals.votes.length + 1 < approvals.quorum;
  const next = nextNodes.map((node) => store.labelOf(node));
  return decisions.decide({
    runId: store.source.id,
    seq,
    topic,
    effect: effectText(choice.action, { next, isVote }),
    ...choice,
  });
}
