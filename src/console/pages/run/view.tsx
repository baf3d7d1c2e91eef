/** The view of a run, for its page and for a shared file. */
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { BUDGET_ENDS } from '../../../run/budget/end.js';
import { runFailureText } from '../../../run/failure-texts.js';
import { Later, chunk, useChunk } from '../../ui/chunks.js';
import { Button, Segments } from '../../ui/controls.js';
import { WhenLoaded } from '../../ui/states.js';
import { Tabs } from '../../ui/tabs.js';
import { Draft } from './draft.js';
import { DraftActions } from './draft-actions.js';
import { RunGraph } from './graph-views.js';
import { Scrubber } from './scrubber.js';
import { inPageWords } from '../../record/page-words.js';
import { budgetEndAt, errorAt } from '../../record/event-text.js';
import { CitedInRun, useSources } from './sources.js';
import type { RunStore } from './store.js';
import { Aside } from './aside.js';
import type { ResultTab, RunTab, TraceTab } from './tabs.js';
import { isResult, RANKS, rankOf } from './tabs.js';

const result = chunk(() => import('./result.js'));
const material = chunk(() => import('./material.js'));
const output = chunk(() => import('./output.js'));
/** Loads with the first run that runs other councils. */
const childRuns = chunk(() => import('./children.js'));
const trace = chunk(() => import('./trace.js'));

interface RunViewProps {
  readonly store: RunStore;
  /** More parts of the side, or of the notice. */
  readonly children?: ComponentChildren;
}

/** Why a run failed, and what the user can do; or that it stopped at its budget. @param children actions after an invalid output */
export function RunEnd({ store, children }: RunViewProps) {
  const { value: head } = store.head;
  const { events } = store.record;
  const last = events[head];
  if (budgetEndAt(events, head) === 'finished') return <p class="notice wait">{BUDGET_ENDS.finished}.</p>;
  if (last?.type !== 'RunFailed') return null;
  const text = runFailureText(last.data.kind);
  const error = errorAt(events, head, store.names.value);
  const isOutput = last.data.kind === 'output_invalid';
  return (
    <div class="notice bad">
      <div class="stack tight break">
        {isOutput && <strong>{text.what}</strong>}
        {isOutput ? <span class="small">{error}</span> : <strong>{error}</strong>}
        {store.source.isLive && <span class="small">{inPageWords(text.advice)}</span>}
      </div>
      <FailedStep store={store} />
      {isOutput && store.head.value === store.shown.value && children}
    </div>
  );
}

/** Shows the step whose failure ended the run, if one did. */
function FailedStep({ store }: { readonly store: RunStore }) {
  const { events } = store.record;
  const last = events.at(-1);
  const failed = events.findLast((event) => event.type === 'NodeFailed');
  const isOfStep = last?.type === 'RunFailed' && ['node_failed', 'output_invalid'].includes(last.data.kind);
  if (!isOfStep || failed === undefined) return null;
  return (
    <Button slim onClick={() => store.select(failed.data.step)}>
      Show the failed step
    </Button>
  );
}

/** Needs at least one event. */
export function RunView({ store, children }: RunViewProps) {
  const { value: tab } = store.tab;
  useSources(store);
  const rank = rankOf(tab);
  const lastTabs = useRef<Partial<Record<string, RunTab>>>({});
  lastTabs.current[rank.value] = tab;
  const counts = countsOf(store);
  const options = rank.tabs.map(({ value, text }: { readonly value: RunTab; readonly text: string }) => {
    return { value, text, count: counts[value] ?? 0 };
  });
  return (
    <CitedInRun store={store}>
      {store.material.value !== '' && (
        <Later of={material}>{({ Material }) => <Material text={store.material.value} />}</Later>
      )}
      <Scrubber store={store} />
      <div class={`run-views ${rank.value}`}>
        <Segments
          label="View"
          value={rank.value}
          options={RANKS}
          onChange={(next) => {
            const chosen = RANKS.find(({ value }) => value === next) ?? RANKS[0];
            store.setTab(lastTabs.current[next] ?? chosen.tabs[0].value);
          }}
        />
        {isResult(tab) && <DraftActions store={store} />}
        <Tabs label={rank.text} value={tab} options={options} onChange={(next) => store.setTab(next)}>
          <Chosen tab={tab} store={store} />
        </Tabs>
        <Aside store={store}>{children}</Aside>
      </div>
    </CitedInRun>
  );
}

function countsOf(store: RunStore): Partial<Record<RunTab, number>> {
  return { feedback: store.snapshot.value?.feedback.length ?? 0, sources: store.sources.value.length };
}

interface ChosenProps<T extends RunTab> {
  readonly tab: T;
  readonly store: RunStore;
}

function Chosen({ tab, store }: ChosenProps<RunTab>) {
  if (tab === 'draft') {
    return (
      <div class="draft-and-output">
        {store.snapshot.value?.finalOutput !== undefined && (
          <Later of={output}>{({ FinalOutput }) => <FinalOutput store={store} />}</Later>
        )}
        {store.hasCouncils.value && <Later of={childRuns}>{({ ChildRuns }) => <ChildRuns store={store} />}</Later>}
        <Draft store={store} />
      </div>
    );
  }
  if (tab === 'graph') return <GraphView store={store} />;
  return isResult(tab) ? <ResultView {...{ tab, store }} /> : <TraceView {...{ tab, store }} />;
}

function ResultView({ tab, store }: ChosenProps<Exclude<ResultTab, 'draft'>>) {
  const loaded = useChunk(result);
  return (
    <WhenLoaded of={loaded} what="the view">
      {({ VIEWS: { [tab]: View } }) => <View store={store} />}
    </WhenLoaded>
  );
}

/** Its drawing does not load later, so that a page with a graph, a step and a draft loads at most what it may. */
function GraphView({ store }: Pick<RunViewProps, 'store'>) {
  const loaded = useChunk(trace);
  const isStepShown = store.selectedStep.value !== null || store.selectedNode.value !== null;
  return (
    <div class={isStepShown ? 'beside' : undefined}>
      <RunGraph store={store} />
      {isStepShown && (
        <WhenLoaded of={loaded} what="the step">
          {({ SelectedStep }) => <SelectedStep store={store} />}
        </WhenLoaded>
      )}
    </div>
  );
}

function TraceView({ tab, store }: ChosenProps<Exclude<TraceTab, 'graph'>>) {
  const loaded = useChunk(trace);
  return (
    <WhenLoaded of={loaded} what="the view">
      {({ VIEWS: { [tab]: View } }) => <View store={store} />}
    </WhenLoaded>
  );
}
