/** One execution of a node: its input, tool calls, output, route and usage. */
import type { Attempt, RouteTaken } from '../../record/run-history.js';
import { lengthText } from '../../record/durations.js';
import type { ExecutionTrace, Execution, ExecutionState } from '../../record/executions.js';
import { countOf } from '../../record/counts.js';
import { attemptFailureText, nextActionText } from '../../../run/failure-texts.js';
import { argumentsText, executionText, stepUsageText } from '../../record/event-text.js';
import { pageUrl } from '../../shell/router.js';
import type { Fact, Tone } from '../../ui/controls.js';
import { Badge, Button, Facts } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import { Empty } from '../../ui/states.js';
import { dateTimeText } from '../../ui/time.js';
import { StepPrompt } from './step-prompt.js';
import type { RunStore } from './store.js';

const TONES = {
  active: 'busy',
  waiting: 'wait',
  done: 'good',
  failed: 'bad',
  cancelled: 'plain',
} as const satisfies Record<ExecutionState, Tone>;

/** The selected step at the event shown. */
export function StepDetails({ store }: { readonly store: RunStore }) {
  const [selected, trace] = [store.selectedStep.value, store.trace.value];
  if (selected === null || trace === null) {
    return <Empty title="No step selected">Select a node in the graph.</Empty>;
  }
  const execution = trace.executions.find(({ step }) => step === selected);
  if (execution === undefined) return <NotYet store={store} step={selected} />;
  return <Details key={selected} store={store} execution={execution} trace={trace} />;
}

function NotYet({ store, step }: { readonly store: RunStore; readonly step: number }) {
  const found = store.fullTrace.value?.executions.find((each) => each.step === step);
  const started = found?.attempts[0]?.started.seq;
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
        <h3>{label}</h3>
        <Badge tone={TONES[state]}>{executionText(state)}</Badge>
        <span class="muted small">
          {role}, step {step}
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
      {routes.map((route) => (
        <Route key={route.seq} store={store} route={route} />
      ))}
      {attempts.map((attempt) => (
        <AttemptDetails key={attempt.attempt} store={store} attempt={attempt} isOnly={attempts.length === 1} />
      ))}
      {attempts.length > 0 && <StepPrompt {...{ store, execution }} />}
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
    ['Started', startedAt === null ? null : dateTimeText(startedAt)],
    ['Duration', durationMs === null ? null : lengthText(durationMs)],
    ['Back-off', backOffMs > 0 ? lengthText(backOffMs) : null],
    ['Usage', stepUsageText(execution)],
    ['Drafts before it', iteration],
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

function Output({ output }: { readonly output: NonNullable<Execution['output']>['value'] }) {
  if ('draft' in output) {
    return (
      <details>
        <summary>Wrote a draft of {countOf([...output.draft].length, 'character')}</summary>
        <Prose text={output.draft} />
      </details>
    );
  }
  return (
    <>
      <p>
        Scored <strong>{output.score}</strong> of 10
      </p>
      {output.feedback.trim() !== '' && (
        <blockquote>
          <Prose text={output.feedback} />
        </blockquote>
      )}
    </>
  );
}

function Route({ store, route: { seq, next, reason, by } }: { readonly store: RunStore; readonly route: RouteTaken }) {
  return (
    <p>
      {next.length === 0 ? 'Ended its branch' : `Next: ${next.join(', ')}`}
      {by === 'human' ? ', changed by an approver' : ''}
      {reason === '' ? '' : `: ${reason}`}{' '}
      <Button slim tone="plain" onClick={() => store.goTo(seq)}>
        event {seq}
      </Button>
    </p>
  );
}

interface AttemptProps {
  readonly store: RunStore;
  readonly attempt: Attempt;
  readonly isOnly: boolean;
}

function AttemptDetails({ store, attempt, isOnly }: AttemptProps) {
  const { attempt: number, started, delayMs, model, tools, toolCalls } = attempt;
  return (
    <section class="attempt stack" aria-label={`Attempt ${number}`}>
      {!isOnly && (
        <p class="row">
          <strong>Attempt {number}</strong>
          <span class="muted small">
            {model}
            {delayMs > 0 && `, after a wait of ${lengthText(delayMs)}`}
          </span>
          <Button slim tone="plain" onClick={() => store.goTo(started.seq)}>
            event {started.seq}
          </Button>
        </p>
      )}
      <AttemptEnd attempt={attempt} isOnly={isOnly} />
      {tools.length > 0 && <p class="small muted">Tools: {tools.join(', ')}</p>}
      {toolCalls.map((call) => (
        <ToolCall key={call.called.seq} store={store} call={call} />
      ))}
    </section>
  );
}

function AttemptEnd({ attempt: { ended }, isOnly }: Pick<AttemptProps, 'attempt' | 'isOnly'>) {
  switch (ended?.how) {
    case undefined:
      return null;
    case 'completed':
      return isOnly ? null : <p>Completed in {lengthText(ended.durationMs)}.</p>;
    case 'lost':
      return <p class="notice wait">Lost, because its instance stopped. The next attempt replaced it.</p>;
    case 'failed': {
      const { kind, message } = ended.failure;
      const text = attemptFailureText(kind);
      return (
        <div class="notice bad">
          <div class="stack grow break">
            <strong>{text?.what ?? message}</strong>
            {text !== null && <span class="small">{message}</span>}
            <span class="small">
              {nextActionText(ended.failure)} {text?.advice}
            </span>
          </div>
        </div>
      );
    }
    default:
      return ended satisfies never;
  }
}

type Call = Attempt['toolCalls'][number];

function ToolCall({ store, call }: { readonly store: RunStore; readonly call: Call }) {
  const { tool, arguments: given, hits, error, durationMs } = call;
  return (
    <div class="tool-call stack">
      <p class="break">
        <strong>{tool}</strong> {argumentsText(given)}
        <span class="muted small"> in {lengthText(durationMs)}</span>
      </p>
      {error !== null && <p class="notice bad break">{error}</p>}
      {hits.length > 0 && (
        <ol class="stack tight">
          {hits.map((hit, index) => (
            <li key={index} class="break">
              <Hit {...{ store, hit }} />
              {hit.score !== null && <span class="muted small"> {hit.score.toFixed(2)}</span>}
            </li>
          ))}
        </ol>
      )}
      {hits.length === 0 && error === null && <p class="muted small">No results.</p>}
    </div>
  );
}

/** A chunk links to its page, a web result to its URL. */
function Hit({ store, hit }: { readonly store: RunStore; readonly hit: Call['hits'][number] }) {
  if ('url' in hit) {
    return /^https?:\/\//.test(hit.url) ? (
      <a href={hit.url} target="_blank" rel="noopener noreferrer">
        {hit.title}
      </a>
    ) : (
      <>{hit.title}</>
    );
  }
  const text = `page ${hit.page}, chunk ${hit.chunk + 1} of document ${hit.document.slice(0, 8)}`;
  if (!store.source.isLive) return <>{text}</>;
  return <a href={pageUrl(['documents', hit.document], { page: hit.page, chunk: hit.chunk })}>{text}</a>;
}
