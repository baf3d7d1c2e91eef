/**
 * The statechart of a run, compiled from its graph: pending, running with one region per node, paused, completed,
 * failed. It moves on recorded facts only; what it does not allow never happened. Nodes start and stop by what it emits.
 */
import type { AnyActorScope, SnapshotFrom } from 'xstate';
import { assign, createActor, emit, setup } from 'xstate';
import type { Graph } from '../generated/schemas.js';
import type { RunEvent } from './events.js';
import { evolve, firstState } from './evolve.js';
import type { FrontNode, RunState } from './state.js';

/** A recorded fact as the chart takes it: facts of a node carry the node's region in their name. */
interface ChartEvent {
  readonly type: string;
  readonly fact: RunEvent;
}

/** What the chart asks its surroundings to do: run an attempt of a node, or give a running one up. */
export type Effect =
  { readonly type: 'execute'; readonly at: FrontNode } | { readonly type: 'abandon'; readonly node: string };

type RunMachine = ReturnType<typeof compileMachine>;
export type RunSnapshot = SnapshotFrom<RunMachine>;

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
  /** The fact as the chart's live actors take it. */
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
  const regions = regionsOf(graph);
  const scope = inertScope(machine);
  const eventOf = (fact: RunEvent): ChartEvent => ({ type: eventType(fact, regions), fact });
  return {
    machine,
    eventOf,
    first(requested) {
      if (requested?.type !== 'RunRequested' || requested.seq !== 0) {
        throw new Error(
          `A run begins with RunRequested at seq 0, not with ${requested?.type} at seq ${requested?.seq}`,
        );
      }
      return machine.resolveState({ value: 'pending', context: { run: firstState(requested) } });
    },
    next(snapshot, fact) {
      const { run } = snapshot.context;
      const next = fact.seq === run.seq + 1 ? machine.transition(snapshot, eventOf(fact), scope) : snapshot;
      if (next.context.run === run) throw new TransitionRefused(fact, run);
      return next;
    },
  };
}

function compileMachine(graph: Graph) {
  return setup({
    types: {
      context: {} as { readonly run: RunState },
      events: {} as ChartEvent,
      emitted: {} as Effect,
    },
    actions: {
      adopt: assign(({ context, event }) => ({ run: evolve(context.run, event.fact) })),
      execute: emit(({ context, event }) => ({ type: 'execute' as const, at: startedNode(context.run, event.fact) })),
      abandon: emit((_, params: { readonly node: string }) => ({ type: 'abandon' as const, node: params.node })),
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
        type: 'parallel',
        states: Object.fromEntries(graph.nodes.map((node, index) => [`n${index}`, region(node.id, `n${index}`)])),
        on: {
          RunClaimed: { actions: 'adopt' },
          RunReleased: { actions: 'adopt' },
          ...goes('RunPaused', 'paused'),
          ...goes('RunCompleted', 'completed'),
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

const goes = (fact: string, state: string) => ({ [fact]: { target: `#run.${state}`, actions: 'adopt' as const } });
const fails = () => goes('RunFailed', 'failed');

/** One node: idle until started; a further attempt starts it again. */
function region(node: string, key: string) {
  const start = { target: 'active', actions: 'adopt' as const, reenter: true };
  return {
    initial: 'idle',
    states: {
      idle: { on: { [`NodeStarted.${key}`]: start } },
      active: {
        entry: 'execute' as const,
        exit: { type: 'abandon' as const, params: { node } },
        on: {
          [`NodeStarted.${key}`]: start,
          [`NodeCompleted.${key}`]: { target: 'idle', actions: 'adopt' as const },
          [`NodeFailed.${key}`]: { target: 'idle', actions: 'adopt' as const },
        },
      },
    },
  };
}

function startedNode(run: RunState, fact: RunEvent): FrontNode {
  const started = fact.type === 'NodeStarted' ? run.front.find((each) => each.step === fact.data.step) : undefined;
  if (started === undefined) throw new Error(`${fact.type} started no node of run "${run.runId}"`);
  return started;
}

/** State keys are generated: a node's id may hold dots, and integer-like keys would be reordered. */
function regionsOf(graph: Graph): ReadonlyMap<string, string> {
  return new Map(graph.nodes.map((node, index) => [node.id, `n${index}`]));
}

function eventType(fact: RunEvent, regions: ReadonlyMap<string, string>): string {
  switch (fact.type) {
    case 'NodeStarted':
    case 'NodeCompleted':
    case 'NodeFailed':
      return `${fact.type}.${regions.get(fact.data.node) ?? 'unknown'}`;
    default:
      return fact.type;
  }
}

/** `machine.transition` needs an actor scope; the exported `transition` would build one for every call. */
function inertScope(machine: RunMachine): AnyActorScope {
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
