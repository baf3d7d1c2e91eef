/** Folds the events of a run into its history. */
import type { RunEvent } from '../../client/run-events.js';
import type { CallUsage, RunParent } from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';
import { callEndedBy } from '../../run/effort.js';
import type { RunState } from '../../run/state.js';
import { attemptOf, newStep, stepsBefore } from './new-step.js';
import { answersKept, closedPanel } from './panel-steps.js';
import type {
  Attempt,
  RunHistory,
  Decision,
  EventRef,
  Ownership,
  PanelSteps,
  RecordedPause,
  RouteTaken,
  RunEnd,
  Step,
  Work,
} from './run-history.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** The states before and after an event. */
interface States {
  readonly before: RunState;
  readonly after: RunState;
}

export class HistoryBuilder {
  readonly #plan: Plan;
  readonly #requested: EventRef;
  readonly #parent: RunParent | null;
  readonly #stepsBefore: number;
  readonly #keptAnswers: RunHistory['keptAnswers'];
  /** By step number, in the order of their first starts. */
  readonly #steps: Map<number, Step>;
  /** The number of the panel, rank or jury, by the step of each member. */
  readonly #panelOf = new Map<number, number>();
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
    this.#keptAnswers = answersKept(after);
    this.#steps = new Map(stepsBefore(after, this.#requested).map((step) => [step.step, step]));
    for (const step of this.#steps.values()) this.#noteMembers(step);
  }

  get history(): RunHistory {
    return {
      ...{ plan: this.#plan, requested: this.#requested, started: this.#started, parent: this.#parent },
      ...{ stepsBefore: this.#stepsBefore, keptAnswers: this.#keptAnswers },
      ...{ steps: [...this.#steps.values()], pauses: [...this.#pauses], owners: [...this.#owners], end: this.#end },
    };
  }

  /** Adds the next event. */
  add(event: RunEvent, states: States): void {
    this.#take(event, states);
    this.#last = eventRefOf(event);
  }

  #take(event: RunEvent, states: States): void {
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
        return this.#nodeStarted(event, states);
      case 'CallReserved':
        return this.#callReserved(event);
      case 'ToolCalled':
        return this.#toolCalled(event);
      case 'NodeCompleted':
        return this.#nodeCompleted(event);
      case 'NodeFailed':
        return this.#nodeFailed(event);
      case 'QuorumReached':
        return this.#changePanel(event.data, (panel) => ({
          ...panel,
          quorum: { ...mark, until: event.data.until },
        }));
      case 'PanelClosed':
        return this.#panelClosed(event);
      case 'RunPaused':
        return this.#paused(event);
      case 'GateDecided':
        return this.#decided(event, states.before);
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

  #nodeStarted(event: Of<'NodeStarted'>, { before, after }: States): void {
    const { step, panelStep = step, node } = event.data;
    if (!this.#steps.has(panelStep)) {
      const pause = this.#letThrough.get(node) ?? null;
      const begun = { ...newStep(event, { before, after, first: this.#requested }), pause };
      this.#steps.set(panelStep, begun);
      this.#noteMembers(begun);
    }
    this.#letThrough.delete(node);
    const next = attemptOf(event, before);
    this.#change(step, ({ attempts, output }) => ({
      attempts: [
        ...changedLast(attempts, (last) => ({ ...last, ended: last.ended ?? { ...next.started, how: 'lost' } })),
        next,
      ],
      output,
    }));
  }

  #noteMembers({ step, panel }: Step): void {
    for (const member of panel?.members ?? []) this.#panelOf.set(member.step, step);
  }

  /** Changes the work of a step of a node or member, if the history has it. */
  #change(step: number, change: (work: Work) => Work): void {
    const panelStep = this.#panelOf.get(step);
    const known = this.#steps.get(panelStep ?? step);
    if (known === undefined) return;
    if (known.panel === null) {
      this.#steps.set(step, { ...known, ...change(known) });
      return;
    }
    const members = known.panel.members.map((each) => (each.step === step ? { ...each, ...change(each) } : each));
    this.#steps.set(known.step, { ...known, panel: { ...known.panel, members } });
  }

  #changeAttempt(step: number, change: (attempt: Attempt) => Attempt): void {
    this.#change(step, ({ attempts, output }) => ({ attempts: changedLast(attempts, change), output }));
  }

  #changePanel({ panelStep }: { readonly panelStep: number }, change: (panel: PanelSteps) => PanelSteps): void {
    const known = this.#steps.get(panelStep);
    if (known?.panel) this.#steps.set(panelStep, { ...known, panel: change(known.panel) });
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
    const { step, output, durationMs, route } = event.data;
    const mark = eventRefOf(event);
    this.#attemptEnded(event, { ...mark, how: 'completed', durationMs });
    this.#change(step, ({ attempts }) => ({ attempts, output: { ...mark, value: output } }));
    if (route !== undefined) this.#routed(step, { ...mark, ...route, by: 'node' });
  }

  #nodeFailed(event: Of<'NodeFailed'>): void {
    this.#attemptEnded(event, { ...eventRefOf(event), how: 'failed', failure: event.data });
  }

  #attemptEnded(event: Of<'NodeCompleted' | 'NodeFailed'>, ended: Attempt['ended']): void {
    const cost = costIn(event, callEndedBy(event.data));
    this.#changeAttempt(event.data.step, (each) => ({ ...each, costs: [...each.costs, cost], ended }));
  }

  #panelClosed(event: Of<'PanelClosed'>): void {
    const { panelStep, answered, failed, discarded, result, route } = event.data;
    const mark = eventRefOf(event);
    const closed = { ...mark, answered, failed, discarded, result };
    this.#changePanel(event.data, (panel) => closedPanel(panel, closed));
    this.#routed(panelStep, { ...mark, ...route, by: 'node' });
  }

  #routed(step: number, route: RouteTaken): void {
    const known = this.#steps.get(step);
    if (known !== undefined) this.#steps.set(step, { ...known, routes: [...known.routes, route] });
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
    if (route !== null && last !== undefined) this.#routed(last.step, { ...eventRefOf(event), ...route, by: 'human' });
  }
}

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
