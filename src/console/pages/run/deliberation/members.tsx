/** The members of a panel, rank or jury, each of which opens to its answer, attempts and prompt. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { lengthText } from '../../../record/durations.js';
import { memberText } from '../../../record/event-text.js';
import { stepUsageText } from '../../../record/usage-text.js';
import type { Execution, MemberExecution, MemberState } from '../../../record/executions.js';
import { rankingOf } from '../../../record/executions.js';
import type { Fact, Tone } from '../../../ui/controls.js';
import { Badge, Facts } from '../../../ui/controls.js';
import { Prose } from '../../../ui/prose.js';
import { dateTimeText } from '../../../ui/time.js';
import { AttemptDetails } from '../attempt-details.js';
import { StepPrompt } from '../step-prompt.js';
import type { RunStore } from '../store.js';
import { Critique } from './critique.js';
import { commentOf, labelsOfAnswers } from './ranking.js';

const TONES = {
  waiting: 'wait',
  active: 'busy',
  answered: 'good',
  failed: 'bad',
  discarded: 'plain',
  cancelled: 'plain',
} as const satisfies Record<MemberState, Tone>;

interface MembersProps {
  readonly store: RunStore;
  readonly execution: Execution;
}

export function Members({ store, execution }: MembersProps) {
  const { panel, label } = execution;
  return (
    <ul class="members" aria-label={`Members of ${label}`}>
      {panel?.members.map((member) => (
        <li key={member.member}>
          <Member {...{ store, execution, member }} />
        </li>
      ))}
    </ul>
  );
}

interface MemberProps extends MembersProps {
  readonly member: MemberExecution;
}

/** Renders the details only while they are open, because their prompt is asked of the service. */
function Member({ store, execution, member }: MemberProps) {
  const isChosen = store.selectedStep.value === execution.step && store.selectedMember.value === member.member;
  const isOpen = useSignal(isChosen);
  useEffect(() => {
    if (isChosen) isOpen.value = true;
  }, [isChosen]);
  const { label, state, model, durationMs } = member;
  const words = [model, durationMs === null ? null : lengthText(durationMs)];
  return (
    <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <span class="member-name">{label}</span> <Badge tone={TONES[state]}>{memberText(state)}</Badge>{' '}
        <span class="muted small break">{words.filter((word) => word !== null).join(' · ')}</span>
      </summary>
      {isOpen.value && <MemberDetails {...{ store, execution, member }} />}
    </details>
  );
}

function MemberDetails({ store, execution, member }: MemberProps) {
  const { attempts, error, step, inherited } = member;
  return (
    <div class="stack">
      <MemberOutput {...{ store, execution, member }} />
      {inherited !== null && <p class="muted small">Kept from the parent run.</p>}
      {error !== null && attempts.length === 0 && <p class="notice bad break">{error}</p>}
      <Facts facts={factsOf(member).filter(([, value]) => value !== null)} />
      {attempts.map((attempt) => (
        <AttemptDetails key={attempt.attempt} store={store} attempt={attempt} isOnly={attempts.length === 1} />
      ))}
      {attempts.length > 0 && <StepPrompt store={store} work={{ step, attempts }} />}
    </div>
  );
}

/** Rows with null are hidden. */
function factsOf({ startedAt, usage, state }: MemberExecution): readonly Fact[] {
  const step = { usage, isInherited: false, state: state === 'answered' ? 'done' : 'active' } as const;
  return [
    ['Started', startedAt === null ? null : dateTimeText(startedAt)],
    ['Usage', startedAt === null ? null : stepUsageText(step)],
  ];
}

function MemberOutput({ store, execution, member }: MemberProps) {
  const value = member.output?.value;
  if (value === undefined) {
    const writing = store.isFollowing.value ? store.tokens.value.find(({ step }) => step === member.step) : undefined;
    return writing === undefined ? null : (
      <section class="writing stack" aria-label={`${member.label} is writing`}>
        {writing.from > 0 && <p class="small muted">The beginning appears when the answer is finished.</p>}
        <Prose text={writing.text} />
      </section>
    );
  }
  if ('answer' in value) return <Prose text={value.answer} />;
  if ('score' in value) return <Critique {...value} />;
  return 'ranking' in value ? <Order {...{ execution, member }} /> : null;
}

/** A reviewer's order of the answers, best first. */
function Order({ execution, member }: Omit<MemberProps, 'store'>) {
  const labels = labelsOfAnswers(execution);
  const comment = commentOf(execution, member);
  return (
    <>
      <ol class="marked">
        {rankingOf(member)?.map((each) => (
          <li key={each}>{labels.get(each) ?? each}</li>
        ))}
      </ol>
      {comment !== null && (
        <blockquote>
          <Prose text={comment} />
        </blockquote>
      )}
    </>
  );
}
