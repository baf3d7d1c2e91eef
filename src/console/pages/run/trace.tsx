/** The trace of a run: how it came about. Loads with the first of these views or of the selected steps. */
import type { ComponentType } from 'preact';
import { Events, RawEvent, State } from './snapshot.js';
import { MemberSetup } from '../../ui/member-setup.js';
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

/** The details of the selected step, and the set-up of its member; the set-up alone for a member that has not run. */
export function SelectedStep({ store }: ViewProps) {
  const [step, node] = [store.selectedStep.value, store.selectedNode.value];
  if (step === null && node === null) return null;
  return (
    <div class="card">
      {step !== null && <StepDetails store={store} />}
      {node !== null && (
        <details key={node.id} class="set-up" open={step === null}>
          <summary>Set-up of {node.label}</summary>
          <MemberSetup node={node} />
        </details>
      )}
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
