/**
 * The statechart of a run, compiled from its graph: pending, running, paused, completed, failed. It moves on recorded
 * facts only; what it does not allow never happened. While running, each node of a graph that forks has a region of
 * its own, so that a front of branches is simply the active regions. A graph that never forks has at most one node
 * active, and its chart says so with one state per node: a third less a transition at three nodes.
 */
import type { SnapshotFrom, StateValue } from 'xstate';
import { assign, createActor, setup } from 'xstate';
import { planOf } from '../graph/plan.js';
import type { Graph, NodeStartedData, RunCompletedData } from '../generated/schemas.js';
import type { RunEvent } from './events.js';
import { evolve, firstState } from './evolve.js';
import type { RunState } from './state.js';
import { isFrontierDone } from './state.js';
import { branchAtEnd } from './frontier.js';
import { isOutstanding } from './fork-snapshot.js';

/** A recorded fact as the chart takes it: facts of a node carry the node's region in their name. */
interface ChartEvent {
  readonly type: string;
  readonly fact: RunEvent;
}

type RunMachine = ReturnType<typeof compileMachine>;
export type RunSnapshot = SnapshotFrom<RunMachine>;
type RunContext = RunSnapshot['context'];

/** A compiled chart with its one shared scope for pure transitions. Costs about 0.6 ms to make: cache it by graph hash. */
export interface Chart {
  readonly machine: RunMachine;
  /** The snapshot after a run's first event. */
  first(requested: RunEvent | undefined): RunSnapshot;
  /**
   * The snapshot after one more fact, without effects.
   *
   * @throws {TransitionRefused} when the chart does not allow it
   */
  next(snapshot: RunSnapshot, fact: RunEvent): RunSnapshot;
  /** The fact as `machine` takes it. */
  eventOf(fact: RunEvent): ChartEvent;
}

/** A recorded fact that the chart does not allow where it stands. */
export class TransitionRefused extends Error {
  readonly fact: RunEvent;
  constructor(fact: RunEvent, state: RunState) {
    super(`Run "${state.runId}" is ${state.status}: ${fact.type} (seq ${fact.seq}) cannot follow seq ${state.seq}`);
    this.fact = fact;
  }
}

export function compileChart(graph: Graph): Chart {
  const machine = compileMachine(graph);
  const keys = new Map(graph.nodes.map((node, index) => [node.id, stateKeyOf(index)]));
  const scope = inertScope(machine);
  const plan = planOf(graph);
  const moves = new TransitionCache<RunSnapshot>();
  const eventOf = (fact: RunEvent): ChartEvent => ({ type: eventType(fact, keys), fact });
  return {
    machine,
    eventOf,
    first(requested) {
      if (requested?.type !== 'RunRequested' || requested.seq !== 0) {
        throw new Error(
          `A run begins with RunRequested at seq 0, not with ${requested?.type} at seq ${requested?.seq}`,
        );
      }
      return machine.resolveState({ value: 'pending', context: { run: firstState(requested, plan) } });
    },
    next(snapshot, fact) {
      const { value, context } = snapshot;
      const { run } = context;
      if (fact.seq !== run.seq + 1 || !mayFollow(run, fact)) throw new TransitionRefused(fact, run);
      const event = eventOf(fact);
      const known = moves.find(value, event.type);
      if (known !== undefined) return standing(known, { run: evolve(run, fact) });
      const next = machine.transition(snapshot, event, scope);
      if (next.context.run === run) throw new TransitionRefused(fact, run);
      return standing(moves.keep(value, event.type, standing(next, NOBODY)), next.context);
    },
  };
}

/** Of a snapshot that is kept for where it stands: it holds no run. */
const NOBODY = {} as RunContext;

function standing(snapshot: RunSnapshot, context: RunContext): RunSnapshot {
  return { ...snapshot, context };
}

function compileMachine(graph: Graph) {
  const keys = graph.nodes.map((_, index) => stateKeyOf(index));
  return setup({
    types: {
      context: {} as { readonly run: RunState },
      events: {} as ChartEvent,
    },
    actions: {
      adopt: assign(({ context, event }) => ({ run: evolve(context.run, event.fact) })),
    },
    guards: {
      mayFollow: ({ context, event }) => mayFollow(context.run, event.fact),
    },
  }).createMachine({
    id: 'run',
    initial: 'pending',
    options: { maxIterations: 100 },
    context: () => {
      throw new Error('A run starts from its recorded facts');
    },
    states: {
      pending: {
        on: {
          RunClaimed: { actions: 'adopt' },
          RunReleased: { actions: 'adopt' },
          ...goes('RunStarted', 'running'),
          ...fails(),
        },
      },
      running: {
        ...(canFork(graph) ? regions(keys) : turns(keys)),
        on: {
          RunClaimed: { actions: 'adopt' },
          RunReleased: { actions: 'adopt' },
          ...goes('RunPaused', 'paused', GUARDED),
          ...goes('RunCompleted', 'completed', GUARDED),
          ...fails(),
        },
      },
      paused: {
        initial: 'waiting',
        states: {
          waiting: { on: { GateDecided: { target: 'decided', actions: 'adopt' } } },
          decided: { on: { RunClaimed: { actions: 'adopt' }, ...goes('RunResumed', 'running') } },
        },
        on: { RunReleased: { actions: 'adopt' }, ...fails() },
      },
      completed: { type: 'final' },
      failed: { type: 'final' },
    },
  });
}

const GUARDED = { guard: 'mayFollow' } as const;
const goes = (fact: string, state: string, when: { readonly guard?: 'mayFollow' } = {}) => ({
  [fact]: { target: `#run.${state}`, actions: 'adopt' as const, ...when },
});
const fails = () => goes('RunFailed', 'failed');

/** Whether two branches can live at once: only several linear edges lead to several nodes. */
function canFork(graph: Graph): boolean {
  return graph.nodes.some(({ id }) => {
    const linear = graph.edges.filter((edge) => edge.source === id && edge.condition === null);
    return new Set(linear.map((edge) => edge.target)).size > 1;
  });
}

/** Every node idle or active, side by side; a further attempt starts it again. */
function regions(keys: readonly string[]) {
  const region = (key: string) => ({
    initial: 'idle',
    states: {
      idle: { on: starts(key, 'active') },
      active: { on: { ...starts(key, 'active'), ...proceeds(key, 'idle') } },
    },
  });
  return { type: 'parallel' as const, states: Object.fromEntries(keys.map((key) => [key, region(key)])) };
}

/** One node active, or none. */
function turns(keys: readonly string[]) {
  const node = (key: string) => ({ on: { ...starts(key, key), ...proceeds(key, 'idle') } });
  return {
    initial: 'idle',
    states: {
      idle: { on: Object.fromEntries(keys.flatMap((key) => Object.entries(starts(key, key)))) },
      ...Object.fromEntries(keys.map((key) => [key, node(key)])),
    },
  };
}

const starts = (key: string, target: string) => ({
  [`NodeStarted.${key}`]: { target, actions: 'adopt' as const, ...GUARDED },
});
/** What an active node does, up to its end. */
const proceeds = (key: string, target: string) => ({
  [`ToolCalled.${key}`]: { actions: 'adopt' as const },
  [`NodeCompleted.${key}`]: { target, actions: 'adopt' as const },
  [`NodeFailed.${key}`]: { target, actions: 'adopt' as const },
});

/** Key of a node's state by its place in the graph: its id may hold dots, and integer-like keys would be reordered. */
export function stateKeyOf(index: number): string {
  return `n${index}`;
}

function eventType(fact: RunEvent, keys: ReadonlyMap<string, string>): string {
  switch (fact.type) {
    case 'NodeStarted':
    case 'ToolCalled':
    case 'NodeCompleted':
    case 'NodeFailed':
      return `${fact.type}.${keys.get(fact.data.node) ?? 'unknown'}`;
    default:
      return fact.type;
  }
}

/** `machine.transition` needs an actor scope; the exported `transition` would build one for every call. */
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

// The one guard of every chart.

/** What the chart asks of a run beyond the state that it is in, before it takes a fact. */
function mayFollow(run: RunState, fact: RunEvent): boolean {
  switch (fact.type) {
    case 'NodeStarted':
      return isAwaited(run, fact.data);
    case 'RunPaused':
      return isFrontierDone(run);
    case 'RunCompleted':
      return isTheEnd(run, fact.data);
    default:
      return true;
  }
}

/** Whether a node starts to which a branch was sent, or is started again. */
function isAwaited(run: RunState, { node, step }: NodeStartedData): boolean {
  const begun = run.frontier.find((each) => each.step === step);
  if (begun !== undefined) return begun.node === node && isOutstanding(run, begun);
  return step === run.steps + 1 && run.arrivals.some((each) => each.node === node);
}

/** Whether all branches have ended, and this is what they have come to. */
function isTheEnd(run: RunState, { finalDraft, criticScore }: RunCompletedData): boolean {
  if (!isFrontierDone(run) || run.arrivals.length > 0) return false;
  const { draft, score } = branchAtEnd(run);
  return finalDraft === draft && criticScore === score;
}

// * Where a chart goes, once it has been asked. From one state by one kind of event a run's chart always comes to
// the same state, for whether the event is allowed there is one guard's business; so XState works each move out
// once, and later ones take the state from here, in a fraction of the time.

/**
 * Most that is kept of a chart, in characters of its states as JSON, and what a move counts for; a character stands for
 * six bytes. A graph that forks has more states than can be kept: moves beyond are worked out each time.
 */
const MAX_CHARS = 100_000;
const MOVE_CHARS = 50;

/** Of the snapshots kept only the state counts. States are told apart by the identity of their values, which are shared. */
export class TransitionCache<State extends { readonly value: StateValue }> {
  readonly #from = new Map<StateValue, Map<string, State>>();
  readonly #byValue = new Map<string, State>();
  #chars = 0;

  /** The state that an event leads to; undefined when it has not been worked out. */
  find(from: StateValue, event: string): State | undefined {
    return this.#from.get(from)?.get(event);
  }

  /** Keeps where an event has led; returns the state that goes for it from now on. */
  keep(from: StateValue, event: string, to: State): State {
    const text = JSON.stringify(to.value);
    const known = this.#byValue.get(text) ?? to;
    if (this.#chars >= MAX_CHARS) return known;
    this.#chars += MOVE_CHARS + (known === to ? text.length : 0);
    this.#byValue.set(text, known);
    const moves = this.#from.get(from) ?? new Map<string, State>();
    this.#from.set(from, moves.set(event, known));
    return known;
  }
}

// Compiled charts by graph hash: a council that runs often is compiled once.

export interface MachineCache {
  of(frozen: { readonly graph: Graph; readonly graphHash: string }): Chart;
}

/** @param limit charts kept, the longest unused go first; a chart of 20 nodes takes about 113 KB, its moves up to 1 MB */
export function machineCache(limit = 100): MachineCache {
  const cache = new Map<string, Chart>();
  return {
    of({ graph, graphHash }) {
      const chart = cache.get(graphHash) ?? compileChart(graph);
      cache.delete(graphHash);
      cache.set(graphHash, chart);
      const [oldest] = cache.keys();
      if (cache.size > limit && oldest !== undefined) cache.delete(oldest);
      return chart;
    },
  };
}
