/** The view of a run, for its page and for a shared file. */
import type { ComponentType } from 'preact';
import { BUDGET_ENDS } from '../../../run/budget/end.js';
import { runFailureText } from '../../../run/failure-texts.js';
import { Tabs } from '../../ui/tabs.js';
import { Deliberation } from './deliberation.js';
import { Changes, Draft } from './draft.js';
import { RunGraph } from './graph-views.js';
import { Events, Feedback, RawEvent, State } from './snapshot.js';
import { Scores } from './scores.js';
import { Scrubber } from './scrubber.js';
import { HashChain } from './hash-chain.js';
import { StepDetails } from './step-details.js';
import { budgetEndAt, errorAt } from '../../record/run-end.js';
import type { RunStore } from './store.js';
import { TimelineView } from './timeline.js';

interface View {
  readonly value: string;
  readonly text: string;
  readonly Shown: ComponentType<{ readonly store: RunStore }>;
}

const VIEWS: readonly [View, ...View[]] = [
  { value: 'draft', text: 'Draft', Shown: Draft },
  { value: 'changes', text: 'Changes', Shown: Changes },
  { value: 'feedback', text: 'Feedback', Shown: Feedback },
  { value: 'step', text: 'Step', Shown: StepDetails },
  { value: 'events', text: 'Events', Shown: Recorded },
  { value: 'state', text: 'State', Shown: State },
];

/** Why a run failed, and what the user can do; or that it stopped at its budget. */
export function RunEnd({ store }: { readonly store: RunStore }) {
  const { value: head } = store.head;
  const { events } = store.record;
  const last = events[head];
  if (budgetEndAt(events, head) === 'finished') return <p class="notice wait">{BUDGET_ENDS.finished}.</p>;
  if (last?.type !== 'RunFailed') return null;
  return (
    <div class="notice bad">
      <div class="stack break">
        <strong>{errorAt(events, head)}</strong>
        <span class="small">{runFailureText(last.data.kind).advice}</span>
      </div>
    </div>
  );
}

/** Needs at least one event. */
export function RunView({ store }: { readonly store: RunStore }) {
  const chosen = VIEWS.find(({ value }) => value === store.tab.value) ?? VIEWS[0];
  const feedback = store.snapshot.value?.feedback.length ?? 0;
  const options = VIEWS.map(({ value, text }) => ({ value, text, count: value === 'feedback' ? feedback : 0 }));
  return (
    <>
      <Scrubber store={store} />
      <div class="run-body">
        <div class="stack">
          <RunGraph store={store} />
          <Scores store={store} />
        </div>
        <div class="card run-side">
          <Tabs
            label="At this event"
            value={chosen.value}
            options={options}
            onChange={(tab) => store.setTab(tab === VIEWS[0].value ? null : tab)}
          >
            <chosen.Shown store={store} />
          </Tabs>
        </div>
      </div>
      <Deliberation store={store} />
      <TimelineView store={store} />
      <HashChain store={store} />
    </>
  );
}

function Recorded({ store }: { readonly store: RunStore }) {
  return (
    <>
      <Events store={store} />
      <RawEvent store={store} />
    </>
  );
}
