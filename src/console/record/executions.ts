/** The execution trace of a run up to an event: each execution of a node, and the edges between them. */
import type { NodeRole, RunParent } from '../../generated/schemas.js';
import { reportedTokens } from '../../run/effort.js';
import type { RunState } from '../../run/state.js';
import { isFinished, labelOf } from '../../run/state.js';
import type { Attempt, RunHistory, EventRef, RecordedPause, RouteTaken, RunEnd, Step } from './run-history.js';
import type { RunRecord } from './run-record.js';

/** `waiting`: for its back-off or the model's server; `cancelled`: the run ended first. */
export type ExecutionState = 'waiting' | 'active' | 'done' | 'failed' | 'cancelled';

/** One execution of a node, with all its attempts. */
export interface Execution extends Step {
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
  /** Model of its last attempt. */
  readonly model: string | null;
  /** Sum over the attempts, or null if nothing is known of them. */
  readonly usage: StepUsage | null;
}

/** Each null if it is unknown for all attempts. */
export interface StepUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** US dollars. */
  readonly costUsd: number | null;
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
  const executions = history.steps.map((step) => executionOf(step, history, until));
  const steps = new Map(history.steps.map((each) => [each.step, each]));
  const conditions = new Map(history.plan.graph.edges.map(({ id, condition }) => [id, condition]));
  return {
    executions,
    edges: history.steps.flatMap((each) => edgesInto(each, conditions, steps)),
    upcoming: upcomingOf(state),
    pauses: history.pauses.map((pause) => pauseItemOf(pause, history, until)),
    inherited: history.parent,
    end: history.end,
  };
}

/** The end of open executions at an event: now at the head of a live run, else the time of the event. */
export function clockAt(record: RunRecord, seq: number, now: string): string {
  const at = record.events[Math.min(seq, record.head)]?.at ?? now;
  const isLive = seq >= record.head && record.historyAt(seq)?.end === null;
  return isLive && Date.parse(now) > Date.parse(at) ? now : at;
}

function executionOf(step: Step, { plan, end }: RunHistory, until: string): Execution {
  const { label, role } = plan.node(step.node);
  const { attempts } = step;
  const state = stateOf(step, end, until);
  const startedAt = attempts[0]?.started.at ?? null;
  const endedAt = endOf(step, state);
  const lastsUntil = endedAt ?? end?.at ?? until;
  return {
    ...step,
    ...{ label, role, state, startedAt, endedAt, model: attempts.at(-1)?.model ?? null },
    durationMs: startedAt === null ? null : msBetween(startedAt, lastsUntil),
    backOffMs: attempts.reduce((sum, each) => sum + backOffOf(each, lastsUntil), 0),
    usage: usageOf(attempts),
  };
}

function endOf({ output, attempts }: Step, state: ExecutionState): string | null {
  if (output !== null) return output.at;
  return state === 'failed' ? (attempts.at(-1)?.ended?.at ?? null) : null;
}

function stateOf({ isInherited, output, attempts }: Step, end: RunEnd | null, until: string): ExecutionState {
  if (isInherited || output !== null) return 'done';
  const last = attempts.at(-1);
  if (last?.ended?.how === 'failed') return end === null ? 'waiting' : 'failed';
  if (end !== null) return 'cancelled';
  return last === undefined || last.ended !== null || waitsAt(last, until) ? 'waiting' : 'active';
}

/** Whether an attempt waits for its back-off or for the model's server. */
function waitsAt({ started, delayMs, outageMs }: Attempt, until: string): boolean {
  return outageMs !== null || msBetween(started.at, until) < delayMs;
}

function backOffOf({ started, delayMs, ended }: Attempt, until: string): number {
  return Math.min(delayMs, msBetween(started.at, ended?.at ?? until));
}

function usageOf(attempts: readonly Attempt[]): StepUsage | null {
  const costs = attempts.flatMap((each) => each.costs);
  const tokens = costs.map(({ usage }) => reportedTokens(usage));
  const inputTokens = sumOf(tokens.map((each) => each.inputTokens));
  const outputTokens = sumOf(tokens.map((each) => each.outputTokens));
  const costUsd = sumOf(costs.map((each) => each.costUsd ?? null));
  const isUnknown = inputTokens === null && outputTokens === null && costUsd === null;
  return isUnknown ? null : { inputTokens, outputTokens, costUsd };
}

/** The sum of what is known, or null if nothing is. */
function sumOf(amounts: readonly (number | null)[]): number | null {
  return amounts.reduce((sum, each) => (each === null ? sum : (sum ?? 0) + each), null);
}

function edgesInto(
  { step, node, incoming, pause, attempts }: Step,
  conditions: ReadonlyMap<string, string | null>,
  steps: ReadonlyMap<number, Step>,
): readonly ExecutionEdge[] {
  const started = attempts[0]?.started.seq ?? -1;
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
    ...{ node, label: labelOf(plan.graph, node), awaits: awaitedBy(node, state) },
    from: progress.arrivals.filter((each) => each.node === node).map((each) => each.from),
  }));
}

function awaitedBy(node: string, { phase, progress, ownership }: RunState): Awaited {
  if (phase.status === 'pending') return 'room';
  if (phase.status === 'paused') return phase.pause.nextNodes.includes(node) ? 'pause' : 'others';
  if (progress.frontier.some(({ active }) => active)) return 'others';
  return ownership.owner === null ? 'owner' : 'turn';
}

function pauseItemOf(pause: RecordedPause, { end }: RunHistory, until: string): PauseItem {
  const ended = pause.decision ?? end;
  const mark = ended === null ? null : { seq: ended.seq, at: ended.at };
  return { ...pause, ended: mark, waitedMs: msBetween(pause.paused.at, mark?.at ?? until) };
}

/** At least 0, because the clocks of instances differ. */
function msBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from));
}
