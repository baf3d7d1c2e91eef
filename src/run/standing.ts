/** Where a run stands in its chart. */
import type { StateValue } from 'xstate';
import type { Chart } from './machine.js';
import { stateKeyOf } from './machine.js';
import type { RunState } from './state.js';

/** The value of the chart's state that a run is in: what replaying its facts through the chart comes to. */
export function standingOf(run: RunState, { machine }: Pick<Chart, 'machine'>): StateValue {
  if (run.status === 'paused') return { paused: run.gate?.decision === null ? 'waiting' : 'decided' };
  if (run.status !== 'running') return run.status;
  const active = run.front.filter(isUnderWay).map(({ node }) => stateKeyOf(run.plan.nodeOrder(node)));
  const { running } = machine.states;
  if (running?.type !== 'parallel') return { running: active[0] ?? 'idle' };
  const regions = Object.keys(running.states).map((key) => [key, active.includes(key) ? 'active' : 'idle']);
  return { running: Object.fromEntries(regions) as Record<string, string> };
}

/** What a fork is still to do counts as under way from its start on. */
function isUnderWay({ active, attempt }: RunState['front'][number]): boolean {
  return active && attempt > 0;
}
