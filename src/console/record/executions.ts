/** The execution trace of a run up to an event: each execution of a node with its members, and the edges between them. */
import type { NodeOutput, NodeRole, RunParent } from '../../generated/schemas.js';
import { letterAt } from '../../council/deliberation/anonymity.js';
import type { PanelAnswers } from '../../run/panels/deliberation.js';
import { answersInOrder } from '../../run/panels/deliberation.js';
import { membersBehind } from '../../run/panels/panels.js';
import type { RunState } from '../../run/state.js';
import { isFinished, labelOf } from '../../run/state.js';
import type { StepUsage } from './attempt-figures.js';
import { backOffOf, msBetween, usageOf, usageOfRuns, waitsAt } from './attempt-figures.js';
import type {
  Attempt,
  EventRef,
  MemberStep,
  PanelEnd,
  PanelSteps,
  RecordedPause,
  RouteTaken,
  RunEnd,
  RunHistory,
  Step,
} from '../../run/history/history.js';
import { allAttempts } from '../../run/history/history.js';
import type { RunRecord } from './run-record.js';

/** `waiting`: for its back-off or the model's server; `cancelled`: the run ended first. */
export type ExecutionState = 'waiting' | 'active' | 'done' | 'failed' | 'cancelled';

/** One execution of a node, with all its attempts. */
export interface Execution extends Omit<Step, 'panel'> {
  readonly label: string;
  readonly role: NodeRole;
  readonly state: ExecutionState;
  readonly startedAt: string | null;
  /** Or null if it is active, or was when the run ended. */
  readonly endedAt: string | null;
  /** From its first start to its end or to now. */
  readonly durationMs: number | null;
  /** The part of it in which attempts waited before their call. */
  readonly backOffMs: number;
  /** Model of its last attempt, or null if it has none or has members. */
  readonly model: string | null;
  /** Sum over the attempts, or null if nothing is known of them. */
  readonly usage: StepUsage | null;
  /** Its members, or null if the node has none that answer in steps of their own. */
  readonly panel: PanelExecution | null;
  /** The members whose answers its last prompt showed, as shown: the first was Response A. */
  readonly orderShown: readonly string[];
}

/** `discarded`: the panel closed before it answered; `cancelled`: the run ended first. */
export type MemberState = 'waiting' | 'active' | 'answered' | 'failed' | 'discarded' | 'cancelled';

/** A member's part in one execution of a panel, rank or jury. */
export interface MemberExecution extends MemberStep {
  readonly state: MemberState;
  /** Model of its last attempt, or of its answer in the parent of a fork. */
  readonly model: string | null;
  readonly startedAt: string | null;
  /** From its first start to its end or to now, or null before it starts. */
  readonly durationMs: number | null;
  /** Why all its attempts failed, or null. */
  readonly error: string | null;
  readonly usage: StepUsage | null;
  /** The members whose answers it read, as shown to it: the first was Response A. */
  readonly orderShown: readonly string[];
}

export interface PanelExecution {
  /** In the order of the node. */
  readonly members: readonly MemberExecution[];
  readonly quorum: PanelSteps['quorum'];
  readonly closed: PanelEnd | null;
}

/** An edge from one execution to the next. */
export interface ExecutionEdge {
  /** 0: the run's start. */
  readonly from: number;
  readonly to: number;
  /** Id of the graph's edge, or null at the run's start. */
  readonly edge: string | null;
  /** Or null for a linear edge. */
  readonly condition: string | null;
  /** As recorded, or null before the fork or at the run's start. */
  readonly reason: string | null;
  /** Who chose the route, or null without a reason. */
  readonly by: 'node' | 'human' | null;
  /** Number of the pause on the edge, or null if there was none. */
  readonly pause: number | null;
}

/** `room`: a place in the queue; `pause`: a decision; `others`: other branches; `owner`: an instance; `turn`: it starts next. */
export type Awaited = 'room' | 'pause' | 'others' | 'owner' | 'turn';

/** A node that a branch has reached but that has not started. */
export interface Upcoming {
  readonly node: string;
  readonly label: string;
  /** Steps before it; 0 is the run's start. */
  readonly from: readonly number[];
  readonly awaits: Awaited;
}

/** A pause with its duration. */
export interface PauseItem extends RecordedPause {
  /** The decision or the end of the run, or null while it is open. */
  readonly ended: EventRef | null;
  /** To its end or to now. */
  readonly waitedMs: number;
}

export interface ExecutionTrace {
  readonly executions: readonly Execution[];
  readonly edges: readonly ExecutionEdge[];
  readonly upcoming: readonly Upcoming[];
  readonly pauses: readonly PauseItem[];
  /** The parent of a fork and the event there, or null. */
  readonly inherited: RunParent | null;
  /** The answers of the parent's panels that this fork keeps. */
  readonly keptAnswers: RunHistory['keptAnswers'];
  readonly end: RunEnd | null;
}

/**
 * The trace of a run up to and including an event, or null before the first event.
 *
 * @param now ISO 8601; the end of open executions at the head of a live run
 */
export function traceAt(record: RunRecord, seq: number, now: string): ExecutionTrace | null {
  const history = record.historyAt(seq);
  const state = record.stateAt(seq);
  if (history === null || state === null) return null;
  const until = clockAt(record, seq, now);
  const executions = history.steps.map((step) => withRuns(executionOf(step, history, until), record, seq));
  const steps = new Map(history.steps.map((each) => [each.step, each]));
  const conditions = new Map(history.plan.graph.edges.map(({ id, condition }) => [id, condition]));
  return {
    executions,
    edges: history.steps.flatMap((each) => edgesInto(each, conditions, steps)),
    upcoming: upcomingOf(state),
    pauses: history.pauses.map((pause) => pauseItemOf(pause, history, until)),
    inherited: history.parent,
    keptAnswers: history.keptAnswers,
    end: history.end,
  };
}

/** The end of open executions at an event: now at the head of a live run, else the time of the event. */
export function clockAt(record: RunRecord, seq: number, now: string): string {
  const at = record.events[Math.min(seq, record.head)]?.at ?? now;
  const isLive = seq >= record.head && record.historyAt(seq)?.end === null;
  return isLive && Date.parse(now) > Date.parse(at) ? now : at;
}

/** A council's execution has no model of its own; its runs have used what it has. */
function withRuns(execution: Execution, { events }: RunRecord, seq: number): Execution {
  if (execution.role !== 'council') return execution;
  const ended = events.flatMap((each) =>
    each.type === 'ChildEnded' && each.data.step === execution.step && each.seq <= seq ? [each.data] : [],
  );
  return { ...execution, model: null, usage: usageOfRuns(ended) };
}

function executionOf({ panel: recorded, ...step }: Step, { plan, end }: RunHistory, until: string): Execution {
  const { label, role } = plan.node(step.node);
  const { attempts } = step;
  const last = attempts.at(-1);
  const all = allAttempts({ attempts, panel: recorded });
  const panel = recorded === null ? null : panelExecutionOf(recorded, { end, until });
  const state = panel === null ? stateOf(step, end, until) : panelStateOf(step, panel, end);
  const startedAt = earliest(all.map(({ started }) => started.at));
  const endedAt = panel === null ? endOf(step, state) : endOfPanel(panel, state, end);
  const lastsUntil = endedAt ?? end?.at ?? until;
  return {
    ...step,
    label,
    role,
    state,
    startedAt,
    endedAt,
    panel,
    model: last?.model ?? null,
    orderShown: last?.orderShown ?? [],
    usage: usageOf(all),
    durationMs: startedAt === null ? null : msBetween(startedAt, lastsUntil),
    backOffMs: attempts.reduce((sum, each) => sum + backOffOf(each, lastsUntil), 0),
  };
}

function earliest(times: readonly string[]): string | null {
  return times.reduce<string | null>((one, other) => {
    return one === null || Date.parse(other) < Date.parse(one) ? other : one;
  }, null);
}

function endOf({ output, attempts }: Pick<Step, 'output' | 'attempts'>, state: ExecutionState): string | null {
  if (output !== null) return output.at;
  return state === 'failed' ? (attempts.at(-1)?.ended?.at ?? null) : null;
}

function endOfPanel({ closed }: PanelExecution, state: ExecutionState, end: RunEnd | null): string | null {
  return closed?.at ?? (state === 'failed' && end !== null ? end.at : null);
}

function stateOf(
  { isInherited, output, attempts }: Omit<Step, 'panel'>,
  end: RunEnd | null,
  until: string,
): ExecutionState {
  if (isInherited || output !== null) return 'done';
  const last = attempts.at(-1);
  if (last?.ended?.how === 'failed') return end === null ? 'waiting' : 'failed';
  if (end !== null) return 'cancelled';
  return last === undefined || last.ended !== null || waitsAt(last, until) ? 'waiting' : 'active';
}

function panelStateOf(
  { isInherited, node }: Omit<Step, 'panel'>,
  { members, closed }: PanelExecution,
  end: RunEnd | null,
): ExecutionState {
  if (isInherited || closed !== null) return 'done';
  if (end !== null) return end.how === 'failed' && end.failure.node === node ? 'failed' : 'cancelled';
  const isWaiting =
    members.every(({ state }) => state !== 'active') && members.some(({ state }) => state === 'waiting');
  return isWaiting ? 'waiting' : 'active';
}

/** The event of an execution's result, or else of its last start, or null if the parent of a fork has both. */
export function lastSeqOf({
  output,
  attempts,
  panel,
}: Pick<Execution, 'output' | 'attempts' | 'panel'>): number | null {
  const started = panel === null ? attempts : panel.members.flatMap((member) => member.attempts);
  return (output ?? panel?.closed ?? started.at(-1)?.started)?.seq ?? null;
}

/** The score that an execution gave, or null if it gave none. */
export function scoreOf({ output, panel }: Pick<Execution, 'output' | 'panel'>): number | null {
  if (output !== null && 'score' in output.value) return output.value.score;
  const result = panel?.closed?.result ?? null;
  return result !== null && 'score' in result ? result.score : null;
}

/** The panel's part of what decides its members' states. */
interface Scope {
  readonly end: RunEnd | null;
  /** The end of open attempts. */
  readonly until: string;
  readonly closed: PanelEnd | null;
}

/** @param until the end of open attempts */
export function panelExecutionOf(
  { members, quorum, closed }: PanelSteps,
  { end, until }: Pick<Scope, 'end' | 'until'>,
): PanelExecution {
  return { members: members.map((member) => memberExecutionOf(member, { end, until, closed })), quorum, closed };
}

function memberExecutionOf(member: MemberStep, scope: Scope): MemberExecution {
  const { attempts, inherited } = member;
  const { model, error, orderShown } = inherited ?? NOT_INHERITED;
  const [first, last] = [attempts[0], attempts.at(-1)];
  const state = memberStateOf(member, scope);
  return {
    ...member,
    state,
    usage: usageOf(attempts),
    startedAt: first?.started.at ?? null,
    durationMs: first === undefined ? null : msBetween(first.started.at, endOfMember(last, state, scope)),
    model: last?.model ?? model,
    orderShown: last?.orderShown ?? orderShown,
    error: state === 'failed' ? (errorOf(last) ?? error) : null,
  };
}

const NOT_INHERITED = { model: null, error: null, orderShown: [] };

function endOfMember(last: Attempt | undefined, state: MemberState, { end, until }: Scope): string {
  if (state === 'waiting' || state === 'active') return until;
  return last?.ended?.at ?? end?.at ?? until;
}

function memberStateOf(
  { member, output, attempts, inherited }: MemberStep,
  { end, until, closed }: Scope,
): MemberState {
  if (output !== null) return 'answered';
  const last = attempts.at(-1);
  if (inherited !== null || hasFailed(last)) return 'failed';
  if (closed?.discarded.includes(member) === true) return 'discarded';
  if (end !== null) return 'cancelled';
  return last === undefined || last.ended !== null || waitsAt(last, until) ? 'waiting' : 'active';
}

/** Whether the panel, rank or jury continues without the member. */
function hasFailed(last: Attempt | undefined): boolean {
  return last?.ended?.how === 'failed' && last.ended.failure.final === true;
}

function errorOf(last: Attempt | undefined): string | null {
  return last?.ended?.how === 'failed' ? last.ended.failure.message : null;
}

/** A member as a reviewer: its order of the answers by member, best first, or null if it has given none. */
export function rankingOf({ output, orderShown }: MemberExecution): readonly string[] | null {
  const value: NodeOutput | null = output?.value ?? null;
  return value !== null && 'ranking' in value ? membersBehind(value.ranking, orderShown) : null;
}

/** The labels behind the letters of a prompt, by letter. */
export function labelsByLetter({
  orderShown: order,
  panelsRead: panels,
}: {
  readonly orderShown: readonly string[];
  readonly panelsRead: readonly PanelAnswers[];
}): ReadonlyMap<string, string> {
  return new Map(answersInOrder(panels, order).map(({ label }, index) => [letterAt(index), label]));
}

function edgesInto(
  { step, node, incoming, pause, attempts, panel }: Step,
  conditions: ReadonlyMap<string, string | null>,
  steps: ReadonlyMap<number, Step>,
): readonly ExecutionEdge[] {
  const started = allAttempts({ attempts, panel })[0]?.started.seq ?? -1;
  return incoming.map(({ fromStep, edge }) => {
    const route = routeTo(node, steps.get(fromStep)?.routes ?? [], started);
    const condition = (edge === null ? null : conditions.get(edge)) ?? null;
    return { from: fromStep, to: step, edge, condition, reason: route?.reason ?? null, by: route?.by ?? null, pause };
  });
}

/** The route in force when a step began. */
function routeTo(node: string, routes: readonly RouteTaken[], started: number): RouteTaken | null {
  return routes.findLast(({ seq, next }) => seq < started && next.includes(node)) ?? null;
}

function upcomingOf(state: RunState): readonly Upcoming[] {
  if (isFinished(state)) return [];
  const { progress, plan } = state;
  return [...new Set(progress.arrivals.map(({ node }) => node))].map((node) => ({
    node,
    label: labelOf(plan.graph, node),
    awaits: awaitedBy(node, state),
    from: progress.arrivals.filter((each) => each.node === node).map((each) => each.from),
  }));
}

function awaitedBy(node: string, { phase, progress, ownership }: RunState): Awaited {
  if (phase.status === 'pending') return 'room';
  if (phase.status === 'paused') return phase.pause.nextNodes.includes(node) ? 'pause' : 'others';
  if (progress.frontier.some(({ active, seat }) => active || seat !== null)) return 'others';
  return ownership.owner === null ? 'owner' : 'turn';
}

function pauseItemOf(pause: RecordedPause, { end }: RunHistory, until: string): PauseItem {
  const ended = pause.decision ?? end;
  const mark = ended === null ? null : { seq: ended.seq, at: ended.at };
  return { ...pause, ended: mark, waitedMs: msBetween(pause.paused.at, mark?.at ?? until) };
}
