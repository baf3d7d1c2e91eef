/** The fold of a run's events, with the states before and after each, into its history. Browsers load this file, too. */
import type { CallUsage, NodeOutput } from '../../generated/schemas.js';
import { callEndedBy } from '../effort.js';
import type { RunEvent } from '../events.js';
import type { Contribution, PanelAnswers } from '../panels/deliberation.js';
import { membersOf, openPanel, readsPanel } from '../panels/panels.js';
import type { FrontierNode, RunState } from '../state.js';
import type {
  Attempt,
  Decision,
  Ended,
  EventRef,
  Incoming,
  KeptAnswers,
  MemberStep,
  Ownership,
  PanelSteps,
  RouteTaken,
  RunEnd,
  RunHistory,
  Step,
  Work,
} from './history.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** The states before and after an event. */
export interface States {
  readonly before: RunState;
  readonly after: RunState;
}

/** Folds the events of a run into its history. A returned history does not change when events are added. */
export class HistoryFold {
  #known: Omit<RunHistory, 'steps'>;
  /** By step number, in the order of their first starts. What they have done is in the works. */
  readonly #steps = new Map<number, Step>();
  /** By the step of a node, or of a member. */
  readonly #works = new Map<number, Work>();
  /** The pause that a node passed, by node, until it starts. */
  readonly #letThrough = new Map<string, number>();
  readonly #keeps: (output: NodeOutput) => boolean;
  #lastAt: string;

  /**
   * @param after the state after the run's first event
   * @param keeps whether to keep an output, which may be a long text; default: each
   */
  constructor(first: Of<'RunRequested'>, after: RunState, keeps: (output: NodeOutput) => boolean = () => true) {
    this.#keeps = keeps;
    const requested = refOf(first);
    this.#known = {
      plan: after.plan,
      requested,
      started: null,
      parent: first.data.parent,
      stepsBefore: after.progress.steps,
      keptAnswers: answersKept(after),
      pauses: [],
      owners: [],
      end: null,
    };
    this.#lastAt = first.at;
    for (const step of stepsBefore(after, requested)) this.#begin(step);
  }

  get history(): RunHistory {
    const done = <T extends Work & { readonly step: number }>(each: T): T => ({
      ...each,
      ...this.#works.get(each.step),
    });
    const steps = [...this.#steps.values()].map((step): Step => {
      if (step.panel === null) return done(step);
      return { ...step, panel: { ...step.panel, members: step.panel.members.map(done) } };
    });
    return { ...this.#known, steps };
  }

  /** Adds the next event. */
  add(event: RunEvent, states: States): void {
    this.#take(event, refOf(event), states);
    this.#lastAt = event.at;
  }

  #take(event: RunEvent, ref: EventRef, states: States): void {
    switch (event.type) {
      case 'RunClaimed':
        // An owner that has not released the run was alive at the previous event.
        this.#left({ seq: ref.seq, at: this.#lastAt, how: 'lost' });
        return this.#know({ owners: [...this.#known.owners, { claimed: ref, left: null }] });
      case 'RunReleased':
        return this.#left({ ...ref, how: event.data.reason });
      case 'RunStarted':
        return this.#know({ started: ref });
      case 'RunResumed':
        return event.data.nextNodes.forEach((node) => this.#letThrough.set(node, event.data.gate));
      case 'NodeStarted':
        return this.#nodeStarted(event, states);
      case 'CallReserved':
        return this.#addToAttempt(event.data.step, { costs: [{ ...ref, ...costIn(event.data) }] });
      case 'ToolCalled':
        return this.#addToAttempt(event.data.step, { toolCalls: [{ ...event.data, called: ref }] });
      case 'NodeCompleted': {
        const { step, output, durationMs, route } = event.data;
        this.#endAttempt(event, { ...ref, how: 'completed', durationMs });
        if (this.#keeps(output))
          this.#change(step, ({ attempts }) => ({ attempts, output: { ...ref, value: output } }));
        return route === undefined ? undefined : this.#addRoute(step, { ...ref, ...route, by: 'node' });
      }
      case 'NodeFailed':
        return this.#endAttempt(event, { ...ref, how: 'failed', failure: event.data });
      case 'QuorumReached':
        return this.#changePanel(event.data.panelStep, { quorum: { ...ref, until: event.data.until } });
      case 'PanelClosed':
        return this.#panelClosed(event, ref);
      case 'RunPaused': {
        const { gate: number, nextNodes } = event.data;
        return this.#know({ pauses: [...this.#known.pauses, { number, paused: ref, nextNodes, decision: null }] });
      }
      case 'GateDecided':
        return this.#decided(event, ref, states.before);
      case 'RunCompleted':
        return this.#over({ ...ref, how: 'completed' });
      case 'RunFailed':
        return this.#over({ ...ref, how: 'failed', failure: event.data });
      default:
        // Other events change neither executions nor owners.
        return;
    }
  }

  #know(change: Partial<Omit<RunHistory, 'steps'>>): void {
    this.#known = { ...this.#known, ...change };
  }

  #left(left: NonNullable<Ownership['left']>): void {
    this.#know({ owners: changedLast(this.#known.owners, (owner) => ({ ...owner, left: owner.left ?? left })) });
  }

  #over(end: RunEnd): void {
    this.#know({ end });
    this.#left({ seq: end.seq, at: end.at, how: 'ended' });
  }

  #begin(step: Step): void {
    this.#steps.set(step.step, step);
    for (const { step: number, attempts, output } of step.panel?.members ?? [step]) {
      this.#works.set(number, { attempts, output });
    }
  }

  #nodeStarted(event: Of<'NodeStarted'>, { before, after }: States): void {
    const { step, panelStep = step, node, iteration, attempt, delayMs, model, tools, inputHash } = event.data;
    // 1. The first attempt of a step, or of the first member, begins it.
    if (!this.#steps.has(panelStep)) {
      const started = after.progress.frontier.find((each) => each.step === step);
      this.#begin({
        ...NEW_STEP,
        step,
        node,
        iteration,
        pause: this.#letThrough.get(node) ?? null,
        incoming: incomingOf(before, node),
        panel: panelOf(after, step, this.#known.requested),
        panelsRead: started === undefined ? [] : panelsReadBy(after, started),
      });
    }
    this.#letThrough.delete(node);
    // 2. An attempt that has not ended was lost with its instance.
    const started = refOf(event);
    const known = before.progress.frontier.find((each) => each.step === step);
    const next: Attempt = {
      attempt,
      started,
      delayMs,
      outageMs: known?.outage?.budgetMs ?? null,
      model,
      tools,
      inputHash,
      orderShown: event.data.order_shown ?? [],
      toolCalls: [],
      costs: [],
      ended: null,
    };
    this.#change(step, ({ attempts, output }) => ({
      attempts: [
        ...changedLast(attempts, (last) => ({ ...last, ended: last.ended ?? { ...started, how: 'lost' } })),
        next,
      ],
      output,
    }));
  }

  #endAttempt({ data, seq, at }: Of<'NodeCompleted' | 'NodeFailed'>, ended: Ended): void {
    this.#addToAttempt(data.step, { costs: [{ seq, at, ...costIn(callEndedBy(data)) }], ended });
  }

  #addToAttempt(step: number, { toolCalls = [], costs = [], ended }: Partial<Attempt>): void {
    this.#change(step, ({ attempts, output }) => ({
      attempts: changedLast(attempts, (last) => ({
        ...last,
        toolCalls: [...last.toolCalls, ...toolCalls],
        costs: [...last.costs, ...costs],
        ended: ended ?? last.ended,
      })),
      output,
    }));
  }

  /** Changes the work of a step, if the history has it. */
  #change(step: number, change: (work: Work) => Work): void {
    const known = this.#works.get(step);
    if (known !== undefined) this.#works.set(step, change(known));
  }

  #changePanel(panelStep: number, change: Partial<PanelSteps>): void {
    const known = this.#steps.get(panelStep);
    if (known?.panel) this.#steps.set(panelStep, { ...known, panel: { ...known.panel, ...change } });
  }

  /** Ends a panel. The calls of members that have not answered are aborted. */
  #panelClosed({ data: { panelStep, answered, failed, discarded, result, route } }: Of<'PanelClosed'>, ref: EventRef) {
    this.#changePanel(panelStep, { closed: { ...ref, answered, failed, discarded, result } });
    for (const { step } of this.#steps.get(panelStep)?.panel?.members ?? []) {
      this.#change(step, ({ attempts, output }) => ({
        attempts: attempts.map((each) => ({ ...each, ended: each.ended ?? { ...ref, how: 'discarded' } })),
        output,
      }));
    }
    this.#addRoute(panelStep, { ...ref, ...route, by: 'node' });
  }

  #addRoute(step: number, route: RouteTaken): void {
    const known = this.#steps.get(step);
    if (known !== undefined) this.#steps.set(step, { ...known, routes: [...known.routes, route] });
  }

  #decided({ data }: Of<'GateDecided'>, ref: EventRef, { progress }: RunState): void {
    const { gate, action, actor, by = 'human', route } = data;
    const decision: Decision = { ...ref, action, actor, by };
    this.#know({
      pauses: changedLast(this.#known.pauses, (pause) => (pause.number === gate ? { ...pause, decision } : pause)),
    });
    // An override sends the last step elsewhere.
    const [last] = progress.frontier;
    if (route !== null && last !== undefined) this.#addRoute(last.step, { ...ref, ...route, by: 'human' });
  }
}

function refOf({ seq, at }: RunEvent): EventRef {
  return { seq, at };
}

function changedLast<T>(items: readonly T[], change: (last: T) => T): readonly T[] {
  const last = items.at(-1);
  return last === undefined ? items : [...items.slice(0, -1), change(last)];
}

/** The cost of a call that an event settles. */
function costIn({ usage, costUsd }: Partial<CallUsage>): Partial<CallUsage> {
  return { ...(usage !== undefined && { usage }), ...(costUsd !== undefined && { costUsd }) };
}

/** A step without attempts. */
const NEW_STEP = {
  isInherited: false,
  pause: null,
  incoming: [],
  attempts: [],
  output: null,
  routes: [],
  panel: null,
  panelsRead: [],
};

function incomingOf({ plan, progress }: RunState, node: string): readonly Incoming[] {
  return progress.arrivals
    .filter((each) => each.node === node)
    .sort((a, b) => a.order - b.order)
    .map(({ from, order }) => ({ fromStep: from, edge: plan.graph.edges[order]?.id ?? null }));
}

/**
 * The members of a panel, rank or jury under way, none of which has an attempt in this run, or null if the step is that of a
 * node.
 *
 * @param first the run's first event: it holds the answers of a fork's parent
 */
function panelOf(run: RunState, panelStep: number, first: EventRef): PanelSteps | null {
  const panel = openPanel(run, panelStep);
  if (panel === null) return null;
  const labels = new Map(membersOf(run.plan, panel).map(({ id, label }) => [id, label]));
  const members = panel.steps.map(({ step, model, seat: { member, output, error }, orderShown }): MemberStep => ({
    step,
    member,
    label: labels.get(member) ?? member,
    attempts: [],
    output: output === null ? null : { ...first, value: output },
    inherited: output === null && error === null ? null : { model, error, orderShown },
  }));
  return { members, quorum: null, closed: null };
}

/** The panels whose answers a step's prompt shows. */
function panelsReadBy({ plan }: RunState, { node, branch }: FrontierNode): readonly PanelAnswers[] {
  const { panel = null, inDraft = [] } = branch.deliberation ?? {};
  if (!readsPanel(plan.node(node))) return inDraft;
  return panel === null ? [] : [panel];
}

/** The steps of a fork's parent that its first state names. The fork executes those that are still open. */
function stepsBefore(run: RunState, first: EventRef): readonly Step[] {
  const { frontier, arrivals, ended, iterationCount: iteration } = run.progress;
  const nodes = new Map<number, string>();
  for (const { from, order } of arrivals) {
    const source = run.plan.graph.edges[order]?.source;
    if (source !== undefined) nodes.set(from, source);
  }
  for (const { node, from } of ended) nodes.set(from, node);
  for (const { node, step, seat } of frontier) nodes.set(seat?.panelStep ?? step, node);
  const open = new Map(frontier.flatMap((each) => (each.active || each.seat !== null ? [[each.step, each]] : [])));
  return [...nodes]
    .sort(([a], [b]) => a - b)
    .map(([step, node]) => {
      const found = open.get(step);
      return {
        ...NEW_STEP,
        step,
        node,
        iteration,
        isInherited: found === undefined,
        ...(found !== undefined && { panel: panelOf(run, step, first), panelsRead: panelsReadBy(run, found) }),
      };
    });
}

/** The answers that the branches of a fork hold at its start, by panel. */
function answersKept(run: RunState): readonly KeptAnswers[] {
  const panels = new Map<number, KeptAnswers>();
  for (const { node, panelStep, answer } of inheritedAnswers(run)) {
    const { answers = [] } = panels.get(panelStep) ?? {};
    panels.set(panelStep, { node, panelStep, answers: [...answers, answer] });
  }
  return [...panels.values()];
}

/** The answer of a panel that closed before a fork. */
interface InheritedAnswer {
  /** Node of the panel. */
  readonly node: string;
  readonly panelStep: number;
  /** Step of the member. */
  readonly step: number;
  readonly answer: Contribution;
}

/** The answers that the branches of a fork hold at its start, in the order of their steps. */
export function inheritedAnswers({ plan, progress }: RunState): readonly InheritedAnswer[] {
  const { frontier, arrivals, ended } = progress;
  const panels = [...frontier, ...arrivals, ...ended].flatMap(({ branch: { deliberation } }) =>
    deliberation === null ? [] : [deliberation.panel, ...deliberation.inDraft],
  );
  const bySteps = new Map<number, InheritedAnswer>();
  for (const { node, panelStep, answers } of panels.filter((panel) => panel !== null)) {
    const ids = (plan.node(node).members ?? []).map(({ id }) => id);
    for (const answer of answers) {
      const step = panelStep + ids.indexOf(answer.member);
      bySteps.set(step, { node, panelStep, step, answer });
    }
  }
  return [...bySteps.values()].toSorted((a, b) => a.step - b.step);
}
