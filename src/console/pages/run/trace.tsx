/** The trace of a run: how it came about. Loads with the first of these views or of the selected steps. */
import type { ComponentType } from 'preact';
import { Events, RawEvent, State } from './snapshot.js';
import { StepDetails } from './step-details.js';
import { Steps } from './steps.js';
import type { RunStore } from './store.js';
import type { TraceTab } from './tabs.js';
import { TimelineView } from './timeline.js';

interface ViewProps {
  readonly store: RunStore;
}

/** By tab. */
export const VIEWS: Readonly<Record<Exclude<TraceTab, 'graph'>, ComponentType<ViewProps>>> = {
  timeline: TimelineWithStep,
  step: StepsWithStep,
  events: Recorded,
  state: State,
};

function TimelineWithStep({ store }: ViewProps) {
  return (
    <div class="stack">
      <TimelineView store={store} />
      <SelectedStep store={store} />
    </div>
  );
}

function StepsWithStep({ store }: ViewProps) {
  return (
    <div class={store.selectedStep.value === null ? undefined : 'beside'}>
      <Steps store={store} />
      <SelectedStep store={store} />
    </div>
  );
}

/** The details of the selected step, if there is one. */
export function SelectedStep({ store }: ViewProps) {
  if (store.selectedStep.value === null) return null;
  return (
    <div class="card">
      <StepDetails store={store} />
    </div>
  );
}

function Recorded({ store }: ViewProps) {
  return (
    <div class="beside">
      <Events store={store} />
      <RawEvent store={store} />
    </div>
  );
}
