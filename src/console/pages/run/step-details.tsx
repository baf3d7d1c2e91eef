/** One execution of a node: its input, tool calls, output, route and usage. */
import { useSignal } from '@preact/signals';
import { countOf } from '../../record/counts.js';
import { lengthText } from '../../record/durations.js';
import { executionText, membersText } from '../../record/event-text.js';
import { stepUsageText } from '../../record/usage-text.js';
import type { ExecutionTrace, Execution } from '../../record/executions.js';
import { labelsByLetter } from '../../record/executions.js';
import type { RouteTaken } from '../../../run/history/history.js';
import { pageUrl } from '../../shell/router.js';
import { roleName } from '../../record/page-words.js';
import type { Fact } from '../../ui/controls.js';
import { Badge, Button, Facts } from '../../ui/controls.js';
import { Later, chunk } from '../../ui/chunks.js';
import { DraftText } from '../../ui/draft-text.js';
import { Empty } from '../../ui/states.js';
import { dateTimeText } from '../../ui/time.js';
import { AttemptDetails } from './attempt-details.js';
import { StepDeliberation } from './deliberation.js';
import { Critique } from './deliberation/critique.js';
import { EXECUTION_TONES } from './execution-tones.js';
import { StepPrompt } from './step-prompt.js';
import type { RunStore } from './store.js';

/** Loads with the first step of a council. */
const childRuns = chunk(() => import('./children.js'));

/** The selected step at the event shown. */
export function StepDetails({ store }: { readonly store: RunStore }) {
  const [selected, trace] = [store.selectedStep.value, store.trace.value];
  if (selected === null || trace === null) {
    return <Empty title="No step selected">Select a member in the graph.</Empty>;
  }
  const execution = trace.executions.find(({ step }) => step === selected);
  if (execution === undefined) return <NotYet store={store} step={selected} />;
  return <Details key={selected} store={store} execution={execution} trace={trace} />;
}

function NotYet({ store, step }: { readonly store: RunStore; readonly step: number }) {
  const found = store.fullTrace.value?.executions.find((each) => each.step === step);
  const started = (found?.attempts ?? found?.panel?.members[0]?.attempts)?.[0]?.started.seq;
  return (
    <Empty title={found === undefined ? 'Step not found' : `${found.label} has not started at this event`}>
      {started !== undefined && <Button onClick={() => store.goTo(started)}>Show its start</Button>}
    </Empty>
  );
}

interface DetailsProps {
  readonly store: RunStore;
  readonly execution: Execution;
  readonly trace: ExecutionTrace;
}

function Details({ store, execution, trace }: DetailsProps) {
  const { step, label, role, state, output, attempts, routes } = execution;
  const { inherited } = trace;
  return (
    <div class="step stack">
      <div class="row">
        <h2>{label}</h2>
        <Badge tone={EXECUTION_TONES[state]}>{executionText(state)}</Badge>
        <span class="muted small">
          {[roleName(role, execution.panel !== null), `step ${step}`].filter((each) => each !== null).join(', ')}
        </span>
      </div>
      {execution.isInherited && inherited !== null && (
        <p class="notice">
          Inherited from the parent run.
          {store.source.isLive && (
            <a href={pageUrl(['runs', inherited.runId], { step, tab: 'step' })}>Show it in the parent run</a>
          )}
        </p>
      )}
      <Facts facts={factsOf({ store, execution, trace }).filter(([, value]) => value !== null)} />
      {output !== null && <Output output={output.value} />}
      {(execution.panel !== null || role === 'panel' || role === 'judge') && (
        <StepDeliberation {...{ store, execution }} />
      )}
      {role === 'council' && <Later of={childRuns}>{({ ChildRuns }) => <ChildRuns store={store} step={step} />}</Later>}
      {routes.map((route) => (
        <Route key={route.seq} store={store} route={route} />
      ))}
      {attempts.map((attempt) => (
        <AttemptDetails key={attempt.attempt} store={store} attempt={attempt} isOnly={attempts.length === 1} />
      ))}
      {attempts.length > 0 && role !== 'council' && <StepPrompt store={store} work={execution} />}
    </div>
  );
}

/** Rows with null are hidden. */
function factsOf({ store, execution, trace }: DetailsProps): readonly Fact[] {
  const { step, model, startedAt, durationMs, backOffMs, pause, iteration } = execution;
  const decision = trace.pauses.find((each) => each.number === pause)?.decision ?? null;
  const from = trace.edges.filter((edge) => edge.to === step && edge.from > 0);
  const nameOf = (id: number): string => trace.executions.find((each) => each.step === id)?.label ?? '';
  return [
    ['Model', model],
    ['Members', membersOf(execution)],
    ['Answers read', answersRead(execution)],
    ['Started', startedAt === null ? null : dateTimeText(startedAt)],
    ['Duration', durationMs === null ? null : lengthText(durationMs)],
    ['Back-off', backOffMs > 0 ? lengthText(backOffMs) : null],
    ['Usage', stepUsageText(execution)],
    ['Drafts before', iteration],
    [
      'Previous step',
      from.length === 0
        ? null
        : from.map((edge) => (
            <Button key={edge.from} slim tone="plain" onClick={() => store.select(edge.from)}>
              {nameOf(edge.from)}, step {edge.from}
            </Button>
          )),
    ],
    [
      'Approved by',
      decision === null ? null : (decision.actor ?? (decision.by === 'deadline' ? 'its deadline' : 'a user')),
    ],
  ];
}

function membersOf({ panel }: Execution): string | null {
  return panel === null ? null : membersText(panel.members.map(({ state }) => state));
}

/** The members behind the letters in its prompt. */
function answersRead(execution: Execution): string | null {
  const labels = [...labelsByLetter(execution)];
  return labels.length === 0 ? null : labels.map(([letter, label]) => `${letter}: ${label}`).join(', ');
}

function Output({ output }: { readonly output: NonNullable<Execution['output']>['value'] }) {
  const isOpen = useSignal(false);
  if ('draft' in output) {
    return (
      <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>Wrote a draft of {countOf([...output.draft].length, 'character')}</summary>
        {isOpen.value && <DraftText text={output.draft} />}
      </details>
    );
  }
  return 'score' in output ? <Critique {...output} /> : null;
}

function Route({ store, route: { seq, next, reason, by } }: { readonly store: RunStore; readonly route: RouteTaken }) {
  return (
    <p>
      {next.length === 0 ? 'Ended its branch' : `Next: ${next.map((node) => store.labelOf(node)).join(', ')}`}
      {by === 'human' ? ', changed by an approver' : ''}
      {reason === '' ? '' : `: ${reason}`}{' '}
      <Button slim tone="plain" onClick={() => store.goTo(seq)}>
        event {seq}
      </Button>
    </p>
  );
}
