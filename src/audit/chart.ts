/**
 * The statechart of a council's runs in the form of XState's tools: the configuration of the machine that drives its
 * runs, with nodes named and the run's current state marked.
 */
import type { StateValue } from 'xstate';
import type { ChartConfig, ChartState, ChartSubject, Graph } from '../generated/schemas.js';
import type { Chart } from '../run/chart/machine.js';
import { compileChart, stateKeyOf } from '../run/chart/machine.js';
import type { FrontierNode, RunState } from '../run/state.js';

/** A state in the machine's configuration, without functions and names of actions. */
interface StateConfig {
  readonly initial?: string;
  readonly type?: 'parallel' | 'final';
  readonly states?: Readonly<Record<string, StateConfig>>;
  readonly on?: Readonly<Record<string, { readonly target?: string; readonly guard?: string }>>;
}

/** The chart of a run, with its current state marked. */
export function runChart(run: RunState): ChartConfig {
  const chart = compileChart(run.plan.graph);
  const value = stateValueOf(run, chart);
  const subject = { run_id: run.runId, seq: run.head.seq, value: typeof value === 'string' ? value : { ...value } };
  return chartOf(run.plan.graph, chart, { subject, value });
}

/** The chart that a run of a council would have. */
export function councilChart(graph: Graph, subject: ChartSubject): ChartConfig {
  return chartOf(graph, compileChart(graph), { subject, value: undefined });
}

function chartOf(
  graph: Graph,
  { machine }: Pick<Chart, 'machine'>,
  { subject: meta, value }: { readonly subject: ChartSubject; readonly value: StateValue | undefined },
): ChartConfig {
  // As JSON the configuration is without its functions.
  const { initial = '', states = {} } = JSON.parse(JSON.stringify(machine.config)) as StateConfig;
  const nodes = new Map(graph.nodes.map((node, index) => [stateKeyOf(index), node]));
  return { id: machine.id, initial, states: statesOf(states, { nodes, value }), meta };
}

/** The context of a state in the chart. */
interface ChartPosition {
  readonly nodes: ReadonlyMap<string, Graph['nodes'][number]>;
  /** The value of the enclosing state, or undefined if the run is not in it. */
  readonly value: StateValue | undefined;
}

function statesOf(parts: Readonly<Record<string, StateConfig>>, place: ChartPosition): Record<string, ChartState> {
  return Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, stateOf(key, part, place)]));
}

function stateOf(key: string, { initial, type, states, on }: StateConfig, { nodes, value }: ChartPosition): ChartState {
  const node = nodes.get(key);
  const inside = typeof value === 'object' ? value[key] : undefined;
  return {
    ...(node !== undefined && { description: node.label, meta: metaOf(node) }),
    ...(isMarked(key, inside, value) && { tags: ['active' as const] }),
    ...(type !== undefined && { type }),
    ...(initial !== undefined && { initial }),
    ...(states !== undefined && { states: statesOf(states, { nodes, value: inside }) }),
    ...(on !== undefined && { on: transitionsOf(on) }),
  };
}

function metaOf({ id, role, members, council }: Graph['nodes'][number]): NonNullable<ChartState['meta']> {
  const held = { ...(members !== undefined && { members: members.length }), ...(council && { council: council.id }) };
  return { node: id, role, ...held };
}

/** `idle` has no node: neither it nor a region in it is marked. */
function isMarked(key: string, inside: StateValue | undefined, value: StateValue | undefined): boolean {
  const isActive = value === key || inside !== undefined;
  const isAtRest = key === 'idle' || (inside === 'idle' && key !== 'running');
  return isActive && !isAtRest;
}

function transitionsOf(on: NonNullable<StateConfig['on']>): NonNullable<ChartState['on']> {
  return Object.fromEntries(
    Object.entries(on).map(([fact, { target, guard }]) => [
      fact,
      { ...(target !== undefined && { target }), ...(guard !== undefined && { description: `Guarded by ${guard}` }) },
    ]),
  );
}

/** The state value of a run in its chart: equal to the result of replaying its facts through the chart. */
export function stateValueOf(run: RunState, { machine }: Pick<Chart, 'machine'>): StateValue {
  const { phase } = run;
  if (phase.status === 'paused') return { paused: phase.pause.decision === null ? 'waiting' : 'decided' };
  if (phase.status !== 'running') return phase.status;
  const active = run.progress.frontier
    .filter((each) => isInFlight(run, each))
    .map(({ node }) => stateKeyOf(run.plan.nodeOrder(node)));
  const { running } = machine.states;
  if (running?.type !== 'parallel') return { running: active[0] ?? 'idle' };
  const regions = Object.keys(running.states).map((key) => [key, active.includes(key) ? 'active' : 'idle'] as const);
  return { running: Object.fromEntries(regions) };
}

/**
 * An outstanding node of a fork counts as in flight only after its start. A node with members stays active until its panel
 * closes; after a pause it is active again once a member has started.
 */
function isInFlight({ progress }: RunState, { active, attempt, seat }: FrontierNode): boolean {
  if (attempt === 0) return false;
  return active || (seat !== null && !progress.isApproved);
}
