/**
 * The statechart of a run, compiled from its graph: pending, running, paused, completed, failed. It moves on recorded
 * facts only and refuses those that may not follow. While running, each node of a graph that forks has a parallel region
 * of its own, so that the frontier is the set of active regions. A graph that never forks has at most one node active,
 * so its chart has one state per node: a transition takes a third less time at three nodes.
 */
import type { SnapshotFrom, StateValue } from 'xstate';
import { assign, createActor, setup } from 'xstate';
import { planOf } from '../graph/plan.js';
import type { Graph, NodeStartedData, RunCompletedData } from '../generated/schemas.js';
import { isDecisionAllowed, isEscalationAllowed, isVoteAllowed } from './approvals.js';
import type { RunEvent } from './events.js';
import { evolve, firstState } from './evolve.js';
import type { RunState } from './state.js';
import { isFrontierDone } from './state.js';
import { branchAtEnd } from './frontier.js';
import { isOutstanding } from './fork-snapshot.js';
import { BoundedMap } from '../system/bounded-map.js';

/** A recorded fact as an XState event: the type of a node's fact ends in the key of the node's state. */
interface ChartEvent {
  readonly type: string;
  readonly fact: RunEvent;
}

type RunMachine = ReturnType<typeof compileMachine>;
export type RunSnapshot = SnapshotFrom<RunMachine>;
type RunContext = RunSnapshot['context'];

/** A compiled chart with pure transitions. Compiling takes about 0.6 ms: cache it by graph hash. */
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
  /** The fact as an event of `machine`. */
  eventOf(fact: RunEvent): ChartEvent;
}

/** A fact that the chart does not allow in its current state. */
export class TransitionRefused extends Error {
  readonly fact: RunEvent;
  constructor(fact: RunEvent, state: RunState) {
    super(
      `Run "${state.runId}" is ${state.phase.status}: ${fact.type} (seq ${fact.seq}) cannot follow seq ${state.head.seq}`,
    );
    this.fact = fact;
  }
}

export function compileChart(graph: Graph): Chart {
  const machine = compileMachine(graph);
  const keys = new Map(graph.nodes.map((node, index) => [node.id, stateKeyOf(index)]));
  const scope = inertScope(machine);
  const plan = planOf(graph);
  const transitions = new TransitionCache<RunSnapshot>();
  const pending = machine.resolveState({ value: 'pending', context: NO_CONTEXT });
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
      return withContext(pending, { run: firstState(requested, plan) });
    },
    next(snapshot, fact) {
      const { value, context } = snapshot;
      const { run } = context;
      if (fact.seq !== run.head.seq + 1 || !mayFollow(run, fact)) throw new TransitionRefused(fact, run);
      const event = eventOf(fact);
      const known = transitions.find(value, event.type);
      if (known !== undefined) return withContext(known, { run: evolve(run, fact) });
      const next = machine.transition(snapshot, event, scope);
      if (next.context.run === run) throw new TransitionRefused(fact, run);
      return withContext(transitions.keep(value, event.type, withContext(next, NO_CONTEXT)), next.context);
    },
  };
}

/** Context of a snapshot that is kept, of which only the state value counts. */
const NO_CONTEXT = {} as RunContext;

function withContext(snapshot: RunSnapshot, context: RunContext): RunSnapshot {
  return { ...snapshot, context };
}

/** Read by the compiler alone. */
const TYPES = {} as { context: { readonly run: RunState }; events: ChartEvent };

function compileMachine(graph: Graph) {
  const keys = graph.nodes.map((_, index) => stateKeyOf(index));
  return setup({
    types: TYPES,
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

/** States of the chart in which facts may come. A paused run waits or is decided; each node is idle or active. */
type Position = 'pending' | 'running' | 'paused' | 'waiting' | 'decided' | 'idle' | 'active';

/** The state after a fact; null: the same. */
type Next = 'running' | 'paused' | 'decided' | 'completed' | 'failed' | 'idle' | 'active' | null;

/** Where each fact may come, and the state after it: the whole chart but for its nodes. A step's facts are at its node. */
const EVENTS: Readonly<Record<RunEvent['type'], Readonly<Partial<Record<Position, Next>>>>> = {
  RunRequested: {},
  RunClaimed: { pending: null, running: null, decided: null },
  RunReleased: { pending: null, running: null, paused: null },
  RunStarted: { pending: 'running' },
  RunPaused: { running: 'paused' },
  VoteCast: { waiting: null },
  PauseEscalated: { waiting: null },
  GateDecided: { waiting: 'decided' },
  RunResumed: { decided: 'running' },
  RunCompleted: { running: 'completed' },
  RunFailed: { pending: 'failed', running: 'failed', paused: 'failed' },
  NodeStarted: { idle: 'active', active: 'active' },
  ToolCalled: { active: null },
  NodeCompleted: { active: 'idle' },
  NodeFailed: { active: 'idle' },
};

interface Transition {
  readonly target?: string;
  readonly actions: 'adopt';
  readonly guard?: 'mayFollow';
}

/** Events that require more of the run than the chart's state; a drawn chart marks them. */
const GUARDED: ReadonlySet<string> = new Set<RunEvent['type']>([
  'NodeStarted',
  'RunPaused',
  'VoteCast',
  'PauseEscalated',
  'GateDecided',
  'RunCompleted',
]);

/** The transitions of a place. @param node state key of the node it belongs to @param targets names of states there */
function transitionsAt(
  place: Position,
  node?: string,
  targets: Partial<Record<NonNullable<Next>, string>> = STATES,
): Readonly<Record<string, Transition>> {
  const transitions: Record<string, Transition> = {};
  for (const [fact, nextAt] of Object.entries(EVENTS)) {
    const next = nextAt[place];
    if (next === undefined) continue;
    const target = next === null ? undefined : targets[next];
    transitions[node === undefined ? fact : `${fact}.${node}`] = {
      ...(target !== undefined && { target }),
      actions: 'adopt',
      ...(GUARDED.has(fact) && { guard: 'mayFollow' }),
    };
  }
  return transitions;
}

/** Names of the run's states, from any place; `decided` from beside it. */
const STATES = {
  running: '#run.running',
  paused: '#run.paused',
  decided: 'decided',
  completed: '#run.completed',
  failed: '#run.failed',
};

/** Whether two branches can be live at once: a run parts only where several linear edges lead to several nodes. */
function canFork(graph: Graph): boolean {
  return graph.nodes.some(({ id }) => {
    const linear = graph.edges.filter((edge) => edge.source === id && edge.condition === null);
    return new Set(linear.map((edge) => edge.target)).size > 1;
  });
}

/** A region per node, idle or active; a further attempt starts an active node again. */
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

/** Key of a node's state by its place in the graph: its id may hold dots, and integer-like keys would be reordered. */
export function stateKeyOf(index: number): string {
  return `n${index}`;
}

/** The facts of a step have an event type of their own for each node. */
function eventType({ type, data }: RunEvent, keys: ReadonlyMap<string, string>): string {
  return 'step' in data ? `${type}.${keys.get(data.node) ?? UNKNOWN_NODE}` : type;
}

/** No key of a state: a fact of a node that the graph does not have may follow nowhere. */
const UNKNOWN_NODE = 'unknown';

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

/** The one guard of every chart: what a fact requires of the run beyond the chart's state. */
function mayFollow(run: RunState, fact: RunEvent): boolean {
  switch (fact.type) {
    case 'NodeStarted':
      return isAwaited(run, fact.data);
    case 'RunPaused':
      return isFrontierDone(run);
    case 'VoteCast':
      return isVoteAllowed(run, fact.data);
    case 'PauseEscalated':
      return isEscalationAllowed(run, fact.at, fact.data);
    case 'GateDecided':
      return isDecisionAllowed(run, fact.at, fact.data);
    case 'RunCompleted':
      return isResult(run, fact.data);
    case 'RunRequested':
    case 'RunClaimed':
    case 'RunReleased':
    case 'RunStarted':
    case 'RunResumed':
    case 'ToolCalled':
    case 'NodeCompleted':
    case 'NodeFailed':
    case 'RunFailed':
      return true;
  }
}

/** Whether a start is expected: of a node with an arrival, or a further attempt of an outstanding step. */
function isAwaited(run: RunState, { node, step }: NodeStartedData): boolean {
  const begun = run.progress.frontier.find((each) => each.step === step);
  if (begun !== undefined) return begun.node === node && isOutstanding(run, begun);
  return step === run.progress.steps + 1 && run.progress.arrivals.some((each) => each.node === node);
}

/** Whether all branches have ended and their join is the recorded result. */
function isResult(run: RunState, { finalDraft, criticScore }: RunCompletedData): boolean {
  if (!isFrontierDone(run) || run.progress.arrivals.length > 0) return false;
  const { draft, score } = branchAtEnd(run);
  return finalDraft === draft && criticScore === score;
}

/**
 * Most that is cached of a chart, in characters of its state values as JSON, and what a transition counts for; a character
 * stands for about six bytes. A graph that forks has more states than can be cached: others are computed each time.
 */
const MAX_CHARS = 100_000;
const TRANSITION_CHARS = 50;

/**
 * Target states by state value and event type, so that XState computes each transition once. That is sound because only
 * the guard depends on the context, and it is checked before. State values are compared by identity: `keep` shares them.
 */
export class TransitionCache<State extends { readonly value: StateValue }> {
  readonly #from = new Map<StateValue, Map<string, State>>();
  readonly #byValue = new Map<string, State>();
  #chars = 0;

  /** The state that an event leads to; undefined when it is not cached. */
  find(from: StateValue, event: string): State | undefined {
    return this.#from.get(from)?.get(event);
  }

  /** Caches where an event has led; returns the shared instance of that state. */
  keep(from: StateValue, event: string, to: State): State {
    const text = JSON.stringify(to.value);
    const known = this.#byValue.get(text) ?? to;
    if (this.#chars >= MAX_CHARS) return known;
    this.#chars += TRANSITION_CHARS + (known === to ? text.length : 0);
    this.#byValue.set(text, known);
    const transitions = this.#from.get(from) ?? new Map<string, State>();
    this.#from.set(from, transitions.set(event, known));
    return known;
  }
}

/** Compiled charts by graph hash: a council that runs often is compiled once. */
export interface MachineCache {
  of(frozen: { readonly graph: Graph; readonly graphHash: string }): Chart;
}

/** @param limit most charts kept, the least recently used is dropped first; a chart of 20 nodes takes about 113 KB, its transitions up to 1 MB */
export function machineCache(limit = 100): MachineCache {
  const cache = new BoundedMap<string, Chart>(limit);
  return {
    of({ graph, graphHash }) {
      const chart = cache.get(graphHash) ?? compileChart(graph);
      cache.set(graphHash, chart);
      return chart;
    },
  };
}
