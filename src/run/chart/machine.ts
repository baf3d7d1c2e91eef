/**
 * The statechart of a run, compiled from its graph: pending, running, paused, completed, failed. It changes state on
 * recorded events only, and refuses an event that may not follow. In a graph that forks, each node has a parallel
 * region, and the active regions are the frontier. In a graph that never forks, at most one node is active, so each
 * node is one state.
 */
import type { SnapshotFrom, StateValue } from 'xstate';
import { assign, createActor, setup } from 'xstate';
import { planOf } from '../../graph/plan.js';
import type { Graph } from '../../generated/schemas.js';
import type { Next, ChartPlace } from './event-rules.js';
import { EVENTS, GUARDED, MEMBER_EVENTS, mayFollow } from './event-rules.js';
import type { RunEvent } from '../events.js';
import { evolve, firstState } from '../evolve.js';
import type { RunState } from '../state.js';
import { BoundedMap } from '../../system/bounded-map.js';

/** A run event as an XState event: the type of a node's event ends in the key of the node's state. */
interface ChartEvent {
  readonly type: string;
  readonly runEvent: RunEvent;
}

type RunMachine = ReturnType<typeof compileMachine>;
export type RunSnapshot = SnapshotFrom<RunMachine>;
type RunContext = RunSnapshot['context'];

/** A compiled chart with pure transitions. Compiling takes about 0.6 ms: see `chartCache`. */
export interface Chart {
  readonly machine: RunMachine;
  /** The snapshot before the first event, without a run. */
  readonly pending: RunSnapshot;
  /** The snapshot after a run's first event. */
  first(requested: RunEvent | undefined): RunSnapshot;
  /**
   * The snapshot after one more event, without effects.
   *
   * @throws {TransitionRefused} when the chart does not allow it
   */
  next(snapshot: RunSnapshot, event: RunEvent): RunSnapshot;
  /** A run event as an event of `machine`. */
  eventOf(event: RunEvent): ChartEvent;
}

/** The chart does not allow an event in its current state. */
export class TransitionRefused extends Error {
  constructor({ type, seq }: RunEvent, { runId, phase, head }: RunState) {
    super(`Run "${runId}" is ${phase.status}: ${type} (seq ${seq}) cannot follow seq ${head.seq}`);
  }
}

export function compileChart(graph: Graph): Chart {
  const machine = compileMachine(graph);
  const keys = new Map(graph.nodes.map((node, index) => [node.id, stateKeyOf(index)]));
  const scope = inertScope(machine);
  const plan = planOf(graph);
  const transitions = new TransitionCache<RunSnapshot>();
  const pending = machine.resolveState({ value: 'pending', context: NO_CONTEXT });
  const eventOf = (event: RunEvent): ChartEvent => ({ type: eventType(event, keys), runEvent: event });
  return {
    machine,
    pending,
    eventOf,
    first(requested) {
      if (requested?.type !== 'RunRequested' || requested.seq !== 0) {
        throw new Error(
          `A run begins with RunRequested at seq 0, not with ${requested?.type} at seq ${requested?.seq}`,
        );
      }
      return withContext(pending, { run: firstState(requested, plan) });
    },
    next(snapshot, event) {
      const { value, context } = snapshot;
      const { run } = context;
      if (event.seq !== run.head.seq + 1 || !mayFollow(run, event)) throw new TransitionRefused(event, run);
      const chartEvent = eventOf(event);
      const cached = transitions.find(value, chartEvent.type);
      if (cached !== undefined) return withContext(cached, { run: evolve(run, event) });
      const next = machine.transition(snapshot, chartEvent, scope);
      if (next.context.run === run) throw new TransitionRefused(event, run);
      return withContext(transitions.keep(value, chartEvent.type, withContext(next, NO_CONTEXT)), next.context);
    },
  };
}

/** Placeholder for the context of a cached snapshot, of which only the state value is used. */
const NO_CONTEXT = {} as RunContext;

function withContext(snapshot: RunSnapshot, context: RunContext): RunSnapshot {
  return { ...snapshot, context };
}

/** For the type checker only. */
const TYPES = {} as { context: { readonly run: RunState }; events: ChartEvent };

function compileMachine(graph: Graph) {
  const keys = graph.nodes.map((_, index) => stateKeyOf(index));
  return setup({
    types: TYPES,
    actions: {
      adopt: assign(({ context, event }) => ({ run: evolve(context.run, event.runEvent) })),
    },
    guards: {
      mayFollow: ({ context, event }) => mayFollow(context.run, event.runEvent),
    },
  }).createMachine({
    id: 'run',
    initial: 'pending',
    options: { maxIterations: 100 },
    context: () => {
      throw new Error('A run starts from its recorded events');
    },
    states: {
      pending: { on: transitionsAt('pending') },
      running: {
        ...(canFork(graph) ? parallelNodes(keys) : sequentialNodes(keys)),
        on: transitionsAt('running'),
      },
      paused: {
        initial: 'waiting',
        states: { waiting: { on: transitionsAt('waiting') }, decided: { on: transitionsAt('decided') } },
        on: transitionsAt('paused'),
      },
      completed: { type: 'final' },
      failed: { type: 'final' },
    },
  });
}

interface Transition {
  readonly target?: string;
  readonly actions: 'adopt';
  readonly guard?: 'mayFollow';
}

/** The transitions of a place. @param node state key, for a place in a node @param targets names of states */
function transitionsAt(
  place: ChartPlace,
  node?: string,
  targets: Partial<Record<NonNullable<Next>, string>> = STATES,
): Readonly<Record<string, Transition>> {
  const transitions: Record<string, Transition> = {};
  const add = (rules: typeof MEMBER_EVENTS, suffix: string): void => {
    for (const [event, nextAt] of Object.entries(rules)) {
      const next = nextAt[place];
      if (next === undefined) continue;
      const target = next === null ? undefined : targets[next];
      transitions[`${event}${suffix}`] = {
        ...(target !== undefined && { target }),
        actions: 'adopt',
        ...(GUARDED.has(event) && { guard: 'mayFollow' }),
      };
    }
  };
  add(EVENTS, node === undefined ? '' : `.${node}`);
  if (node !== undefined) add(MEMBER_EVENTS, `.member.${node}`);
  return transitions;
}

/** The run's states as targets. */
const STATES = {
  running: '#run.running',
  paused: '#run.paused',
  decided: 'decided',
  completed: '#run.completed',
  failed: '#run.failed',
};

/** Whether two branches can be live at once: only linear edges to different nodes fork a run. */
function canFork(graph: Graph): boolean {
  return graph.nodes.some(({ id }) => {
    const linear = graph.edges.filter((edge) => edge.source === id && edge.condition === null);
    return new Set(linear.map((edge) => edge.target)).size > 1;
  });
}

/** A region per node, idle or active. A further attempt starts an active node again. */
function parallelNodes(keys: readonly string[]) {
  const region = (key: string) => ({
    initial: 'idle',
    states: {
      idle: { on: transitionsAt('idle', key, { active: 'active' }) },
      active: { on: transitionsAt('active', key, { active: 'active', idle: 'idle' }) },
    },
  });
  return { type: 'parallel' as const, states: Object.fromEntries(keys.map((key) => [key, region(key)])) };
}

/** A state per node: at most one is active. */
function sequentialNodes(keys: readonly string[]) {
  const node = (key: string) => ({ on: transitionsAt('active', key, { active: key, idle: 'idle' }) });
  return {
    initial: 'idle',
    states: {
      idle: {
        on: Object.fromEntries(keys.flatMap((key) => Object.entries(transitionsAt('idle', key, { active: key })))),
      },
      ...Object.fromEntries(keys.map((key) => [key, node(key)])),
    },
  };
}

/** Key of a node's state, by its index in the graph: an id may hold dots, and JavaScript reorders integer-like keys. */
export function stateKeyOf(index: number): string {
  return `n${index}`;
}

/** An event of a node gets an XState type of its own. */
function eventType({ type, data }: RunEvent, keys: ReadonlyMap<string, string>): string {
  if (!('step' in data) && !('panelStep' in data)) return type;
  const key = keys.get(data.node) ?? UNKNOWN_NODE;
  const isMembers = 'member' in data && Object.hasOwn(MEMBER_EVENTS, type);
  return isMembers ? `${type}.member.${key}` : `${type}.${key}`;
}

/** Not a key of any state, so that the chart refuses events of nodes that the graph does not have. */
const UNKNOWN_NODE = 'unknown';

/** `machine.transition` needs an actor scope. XState's exported `transition` would build one for every call. */
function inertScope(machine: RunMachine): Parameters<RunMachine['transition']>[2] {
  const self = createActor(machine);
  const nothing = (): void => undefined;
  return {
    self,
    system: self.system,
    id: '',
    sessionId: '',
    logger: nothing,
    defer: nothing,
    emit: nothing,
    stopChild: nothing,
    actionExecutor: nothing,
  };
}

/** Compiled charts by graph hash: a council that runs often is compiled once. */
export interface ChartCache {
  of(frozen: { readonly graph: Graph; readonly graphHash: string }): Chart;
}

/** @param limit most charts kept, least recently used dropped first; 20 nodes take about 113 KB, and transitions up to 1 MB */
export function chartCache(limit = 100): ChartCache {
  const cache = new BoundedMap<string, Chart>(limit);
  return {
    of({ graph, graphHash }) {
      const chart = cache.get(graphHash) ?? compileChart(graph);
      cache.set(graphHash, chart);
      return chart;
    },
  };
}

/**
 * Size limit of the cache, in characters of its state values as JSON, and the share of one transition; a character takes
 * about 6 bytes. A graph that forks may have more states than fit: XState computes the others each time.
 */
const MAX_CHARS = 100_000;
const TRANSITION_CHARS = 50;

/**
 * Target states by state value and event type: saves a tenth of a run's processor time. This is sound because only the
 * guard reads the context, and the chart checks it first. `keep` shares equal state values, so they compare by identity.
 */
export class TransitionCache<State extends { readonly value: StateValue }> {
  readonly #from = new Map<StateValue, Map<string, State>>();
  readonly #byValue = new Map<string, State>();
  #chars = 0;

  /** The state after an event, or undefined if it is not cached. */
  find(from: StateValue, event: string): State | undefined {
    return this.#from.get(from)?.get(event);
  }

  /** Caches the state after an event. Returns the shared instance of that state. */
  keep(from: StateValue, event: string, to: State): State {
    const text = JSON.stringify(to.value);
    const shared = this.#byValue.get(text) ?? to;
    if (this.#chars >= MAX_CHARS) return shared;
    this.#chars += TRANSITION_CHARS + (shared === to ? text.length : 0);
    this.#byValue.set(text, shared);
    const transitions = this.#from.get(from) ?? new Map<string, State>();
    this.#from.set(from, transitions.set(event, shared));
    return shared;
  }
}
