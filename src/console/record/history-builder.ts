/** Folds the events of a run into its history. */
import type { RunEvent } from '../../client/run-events.js';
import type { CallUsage, RunParent } from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';
import { callEndedBy } from '../../run/effort.js';
import type { RunState } from '../../run/state.js';
import type {
  Attempt,
  RunHistory,
  Decision,
  Incoming,
  EventRef,
  Ownership,
  RecordedPause,
  RunEnd,
  Step,
} from './run-history.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

export class HistoryBuilder {
  readonly #plan: Plan;
  readonly #requested: EventRef;
  readonly #parent: RunParent | null;
  readonly #stepsBefore: number;
  /** By step number, in the order of their first starts. */
  readonly #steps: Map<number, Step>;
  readonly #pauses: RecordedPause[] = [];
  readonly #owners: Ownership[] = [];
  #started: EventRef | null = null;
  #end: RunEnd | null = null;
  /** The pause that a node passed, by node, until it starts. */
  readonly #letThrough = new Map<string, number>();
  #last: EventRef;

  /** @param after the state after the run's first event */
  constructor(first: Of<'RunRequested'>, after: RunState) {
    this.#plan = after.plan;
    this.#requested = eventRefOf(first);
    this.#last = this.#requested;
    this.#parent = first.data.parent;
    this.#stepsBefore = after.progress.steps;
    this.#steps = new Map(stepsBefore(after).map((step) => [step.step, step]));
  }

  get history(): RunHistory {
    return {
      ...{ plan: this.#plan, requested: this.#requested, started: this.#started, parent: this.#parent },
      stepsBefore: this.#stepsBefore,
      ...{ steps: [...this.#steps.values()], pauses: [...this.#pauses], owners: [...this.#owners], end: this.#end },
    };
  }

  /** Adds the next event. @param before the state before the event */
  add(event: RunEvent, before: RunState): void {
    this.#take(event, before);
    this.#last = eventRefOf(event);
  }

  #take(event: RunEvent, before: RunState): void {
    const mark = eventRefOf(event);
    switch (event.type) {
      case 'RunClaimed':
        return this.#claimed(event);
      case 'RunReleased':
        return this.#left({ ...mark, how: event.data.reason });
      case 'RunStarted':
        this.#started = mark;
        return;
      case 'RunResumed':
        for (const node of event.data.nextNodes) this.#letThrough.set(node, event.data.gate);
        return;
      case 'NodeStarted':
        return this.#nodeStarted(event, before);
      case 'CallReserved':
        return this.#callReserved(event);
      case 'ToolCalled':
        return this.#toolCalled(event);
      case 'NodeCompleted':
        return this.#nodeCompleted(event);
      case 'NodeFailed':
        return this.#nodeFailed(event);
      case 'RunPaused':
        return this.#paused(event);
      case 'GateDecided':
        return this.#decided(event, before);
      case 'RunCompleted':
        return this.#over({ ...mark, how: 'completed' });
      case 'RunFailed':
        return this.#over({ ...mark, how: 'failed', failure: event.data });
      default:
        // Other events change neither executions nor owners.
        return;
    }
  }

  #claimed(event: Of<'RunClaimed'>): void {
    // An owner that has not released the run was alive at the previous event.
    this.#left({ seq: event.seq, at: this.#last.at, how: 'lost' });
    this.#owners.push({ claimed: eventRefOf(event), left: null });
  }

  #left(left: Ownership['left']): void {
    changeLast(this.#owners, (owner) => (owner.left === null ? { ...owner, left } : owner));
  }

  #over(end: RunEnd): void {
    this.#end = end;
    this.#left({ seq: end.seq, at: end.at, how: 'ended' });
  }

  #nodeStarted(event: Of<'NodeStarted'>, before: RunState): void {
    const { step: number, node, attempt, delayMs, model, tools, inputHash } = event.data;
    const started = eventRefOf(event);
    const step = this.#steps.get(number) ?? this.#firstOf(event, before);
    const outageMs = before.progress.frontier.find((each) => each.step === number)?.outage?.budgetMs ?? null;
    const next = {
      attempt,
      started,
      delayMs,
      outageMs,
      model,
      tools,
      inputHash,
      toolCalls: [],
      costs: [],
      ended: null,
    };
    const attempts = changedLast(step.attempts, (last) => ({
      ...last,
      ended: last.ended ?? { ...started, how: 'lost' },
    }));
    this.#letThrough.delete(node);
    this.#steps.set(number, { ...step, attempts: [...attempts, next] });
  }

  #firstOf({ data: { step, node, iteration } }: Of<'NodeStarted'>, before: RunState): Step {
    const pause = this.#letThrough.get(node) ?? null;
    return { ...NEW_STEP, step, node, iteration, pause, incoming: incomingOf(before, node) };
  }

  #changeAttempt(step: number, change: (attempt: Attempt) => Attempt): Step | null {
    const known = this.#steps.get(step);
    if (known === undefined) return null;
    const changed = { ...known, attempts: changedLast(known.attempts, change) };
    this.#steps.set(step, changed);
    return changed;
  }

  #callReserved(event: Of<'CallReserved'>): void {
    const cost = costIn(event, event.data);
    this.#changeAttempt(event.data.step, (each) => ({ ...each, costs: [...each.costs, cost] }));
  }

  #toolCalled(event: Of<'ToolCalled'>): void {
    const call = { ...event.data, called: eventRefOf(event) };
    this.#changeAttempt(call.step, (each) => ({ ...each, toolCalls: [...each.toolCalls, call] }));
  }

  #nodeCompleted(event: Of<'NodeCompleted'>): void {
    const { step: number, output, durationMs, route } = event.data;
    const mark = eventRefOf(event);
    const step = this.#attemptEnded(event, { ...mark, how: 'completed', durationMs });
    if (step === null) return;
    const routes = [...step.routes, { ...mark, ...route, by: 'node' as const }];
    this.#steps.set(number, { ...step, output: { ...mark, value: output }, routes });
  }

  #nodeFailed(event: Of<'NodeFailed'>): void {
    this.#attemptEnded(event, { ...eventRefOf(event), how: 'failed', failure: event.data });
  }

  #attemptEnded(event: Of<'NodeCompleted' | 'NodeFailed'>, ended: Attempt['ended']): Step | null {
    const cost = costIn(event, callEndedBy(event.data));
    return this.#changeAttempt(event.data.step, (each) => ({ ...each, costs: [...each.costs, cost], ended }));
  }

  #paused(event: Of<'RunPaused'>): void {
    const { gate, nextNodes } = event.data;
    this.#pauses.push({ number: gate, paused: eventRefOf(event), nextNodes, decision: null });
  }

  #decided(event: Of<'GateDecided'>, before: RunState): void {
    const { gate, action, actor, by = 'human' } = event.data;
    const decision: Decision = { ...eventRefOf(event), action, actor, by };
    changeLast(this.#pauses, (pause) => (pause.number === gate ? { ...pause, decision } : pause));
    this.#rerouted(event, before);
  }

  /** Adds the route of an override to the last step. */
  #rerouted(event: Of<'GateDecided'>, before: RunState): void {
    const { route } = event.data;
    const last = this.#steps.get(before.progress.frontier[0]?.step ?? -1);
    if (route === null || last === undefined) return;
    const taken = { ...eventRefOf(event), ...route, by: 'human' as const };
    this.#steps.set(last.step, { ...last, routes: [...last.routes, taken] });
  }
}

const NEW_STEP = { isInherited: false, pause: null, incoming: [], attempts: [], output: null, routes: [] };

function changedLast<T>(items: readonly T[], change: (last: T) => T): readonly T[] {
  const last = items.at(-1);
  return last === undefined ? items : [...items.slice(0, -1), change(last)];
}

function changeLast<T>(items: T[], change: (last: T) => T): void {
  const last = items.pop();
  if (last !== undefined) items.push(change(last));
}

function eventRefOf({ seq, at }: RunEvent): EventRef {
  return { seq, at };
}

/** The cost of a call that an event settles. */
function costIn(event: RunEvent, { usage, costUsd }: Partial<CallUsage>): EventRef & Partial<CallUsage> {
  return { ...eventRefOf(event), ...(usage !== undefined && { usage }), ...(costUsd !== undefined && { costUsd }) };
}

function incomingOf({ plan, progress }: RunState, node: string): readonly Incoming[] {
  return progress.arrivals
    .filter((each) => each.node === node)
    .sort((a, b) => a.order - b.order)
    .map(({ from, order }) => ({ fromStep: from, edge: plan.graph.edges[order]?.id ?? null }));
}

/** The steps of a fork's parent that its first state names. The fork executes those that are still active. */
function stepsBefore({ plan, progress }: RunState): readonly Step[] {
  const { frontier, arrivals, ended, iterationCount: iteration } = progress;
  const nodes = new Map<number, string>();
  for (const { from, order } of arrivals) {
    const source = plan.graph.edges[order]?.source;
    if (source !== undefined) nodes.set(from, source);
  }
  for (const { node, from } of ended) nodes.set(from, node);
  for (const { node, step } of frontier) nodes.set(step, node);
  const outstanding = new Set(frontier.flatMap(({ active, step }) => (active ? [step] : [])));
  return [...nodes]
    .sort(([a], [b]) => a - b)
    .map(([step, node]) => ({ ...NEW_STEP, step, node, iteration, isInherited: !outstanding.has(step) }));
}
