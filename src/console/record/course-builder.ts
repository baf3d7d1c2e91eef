/** Gathers what happens in a run, event by event. */
import type { RunEvent } from '../../client/run-events.js';
import type { RunParent } from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';
import type { RunState } from '../../run/state.js';
import type { Attempt, Course, Decision, Incoming, Mark, Ownership, PauseTaken, RunEnd, Step } from './course.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** Gathers a course from events as the record folds them. */
export class CourseBuilder {
  readonly #plan: Plan;
  readonly #requested: Mark;
  readonly #parent: RunParent | null;
  readonly #stepsBefore: number;
  /** By number, in the order of their first starts. */
  readonly #steps: Map<number, Step>;
  readonly #pauses: PauseTaken[] = [];
  readonly #owners: Ownership[] = [];
  #begun: Mark | null = null;
  #end: RunEnd | null = null;
  /** The pause that has let these nodes through, until they start. */
  readonly #letThrough = new Map<string, number>();
  #last: Mark;

  /** @param after the state after the run's first event */
  constructor(first: Of<'RunRequested'>, after: RunState) {
    this.#plan = after.plan;
    this.#requested = markOf(first);
    this.#last = this.#requested;
    this.#parent = first.data.parent;
    this.#stepsBefore = after.progress.steps;
    this.#steps = new Map(stepsBefore(after).map((step) => [step.step, step]));
  }

  /** All so far. */
  get course(): Course {
    return {
      ...{ plan: this.#plan, requested: this.#requested, begun: this.#begun, parent: this.#parent },
      stepsBefore: this.#stepsBefore,
      ...{ steps: [...this.#steps.values()], pauses: [...this.#pauses], owners: [...this.#owners], end: this.#end },
    };
  }

  /** Takes the next event. @param before the state it is folded into */
  add(event: RunEvent, before: RunState): void {
    this.#take(event, before);
    this.#last = markOf(event);
  }

  #take(event: RunEvent, before: RunState): void {
    const mark = markOf(event);
    switch (event.type) {
      case 'RunClaimed':
        return this.#claimed(event);
      case 'RunReleased':
        return this.#left({ ...mark, how: event.data.reason });
      case 'RunStarted':
        this.#begun = mark;
        return;
      case 'RunResumed':
        for (const node of event.data.nextNodes) this.#letThrough.set(node, event.data.gate);
        return;
      case 'NodeStarted':
        return this.#nodeStarted(event, before);
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
      case 'RunRequested':
      case 'VoteCast':
      case 'PauseEscalated':
        return;
      default:
        event satisfies never;
    }
  }

  #claimed(event: Of<'RunClaimed'>): void {
    // Whoever has not let go of it was last heard of in the event before.
    this.#left({ seq: event.seq, at: this.#last.at, how: 'lost' });
    this.#owners.push({ claimed: markOf(event), left: null });
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
    const started = markOf(event);
    const step = this.#steps.get(number) ?? this.#firstOf(event, before);
    const outageMs = before.progress.frontier.find((each) => each.step === number)?.outage?.budgetMs ?? null;
    const next = { attempt, started, delayMs, outageMs, model, tools, inputHash, toolCalls: [], ended: null };
    const attempts = changedLast(step.attempts, (last) => ({
      ...last,
      ended: last.ended ?? { ...started, how: 'lost' },
    }));
    this.#letThrough.delete(node);
    this.#steps.set(number, { ...step, attempts: [...attempts, next] });
  }

  #firstOf({ data: { step, node, iteration } }: Of<'NodeStarted'>, before: RunState): Step {
    const pause = this.#letThrough.get(node) ?? null;
    return { ...NOTHING, step, node, iteration, pause, incoming: incomingOf(before, node) };
  }

  #changeAttempt(step: number, change: (attempt: Attempt) => Attempt): Step | null {
    const known = this.#steps.get(step);
    if (known === undefined) return null;
    const changed = { ...known, attempts: changedLast(known.attempts, change) };
    this.#steps.set(step, changed);
    return changed;
  }

  #toolCalled(event: Of<'ToolCalled'>): void {
    const call = { ...event.data, called: markOf(event) };
    this.#changeAttempt(call.step, (each) => ({ ...each, toolCalls: [...each.toolCalls, call] }));
  }

  #nodeCompleted(event: Of<'NodeCompleted'>): void {
    const { step: number, output, usage, durationMs, route } = event.data;
    const mark = markOf(event);
    const ended = { ...mark, how: 'completed', usage, durationMs } as const;
    const step = this.#changeAttempt(number, (each) => ({ ...each, ended }));
    if (step === null) return;
    const routes = [...step.routes, { ...mark, ...route, by: 'node' as const }];
    this.#steps.set(number, { ...step, output: { ...mark, value: output }, routes });
  }

  #nodeFailed(event: Of<'NodeFailed'>): void {
    const { step, kind, message, retryable, usage = null } = event.data;
    const ended = { ...markOf(event), how: 'failed', failure: { kind, message, retryable }, usage } as const;
    this.#changeAttempt(step, (each) => ({ ...each, ended }));
  }

  #paused(event: Of<'RunPaused'>): void {
    const { gate, nextNodes } = event.data;
    this.#pauses.push({ number: gate, paused: markOf(event), nextNodes, decision: null });
  }

  #decided(event: Of<'GateDecided'>, before: RunState): void {
    const { gate, action, actor, by = 'human' } = event.data;
    const decision: Decision = { ...markOf(event), action, actor, by };
    changeLast(this.#pauses, (pause) => (pause.number === gate ? { ...pause, decision } : pause));
    this.#rerouted(event, before);
  }

  /** An override that routes the last node again. */
  #rerouted(event: Of<'GateDecided'>, before: RunState): void {
    const { route } = event.data;
    const last = this.#steps.get(before.progress.frontier[0]?.step ?? -1);
    if (route === null || last === undefined) return;
    const taken = { ...markOf(event), ...route, by: 'human' as const };
    this.#steps.set(last.step, { ...last, routes: [...last.routes, taken] });
  }
}

/** What is not known of a step before its first attempt. */
const NOTHING = { isInherited: false, pause: null, incoming: [], attempts: [], output: null, routes: [] };

function changedLast<T>(items: readonly T[], change: (last: T) => T): readonly T[] {
  const last = items.at(-1);
  return last === undefined ? items : [...items.slice(0, -1), change(last)];
}

function changeLast<T>(items: T[], change: (last: T) => T): void {
  const last = items.pop();
  if (last !== undefined) items.push(change(last));
}

function markOf({ seq, at }: RunEvent): Mark {
  return { seq, at };
}

function incomingOf({ plan, progress }: RunState, node: string): readonly Incoming[] {
  return progress.arrivals
    .filter((each) => each.node === node)
    .sort((a, b) => a.order - b.order)
    .map(({ from, order }) => ({ fromStep: from, edge: plan.graph.edges[order]?.id ?? null }));
}

/** The steps of a fork's parent that its state still tells of; an outstanding one is executed anew. */
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
    .map(([step, node]) => ({ ...NOTHING, step, node, iteration, isInherited: !outstanding.has(step) }));
}
