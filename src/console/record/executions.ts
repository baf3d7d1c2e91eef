/** A run as it ran, at one of its moments: every execution of a node with its attempts, and what led from one to another. */
import type { NodeRole, NodeUsage, RunParent } from '../../generated/schemas.js';
import type { RunState } from '../../run/state.js';
import { isFinished, labelOf } from '../../run/state.js';
import type { Attempt, Course, Mark, PauseTaken, RouteTaken, RunEnd, Step } from './course.js';
import type { RunRecord } from './run-record.js';

/** `waiting`: for its back-off or for its model's server; `cancelled`: the run ended over it. */
export type ExecutionState = 'waiting' | 'active' | 'done' | 'failed' | 'cancelled';

/** One execution of a node, all its attempts. */
export interface Execution extends Step {
  readonly label: string;
  readonly role: NodeRole;
  readonly state: ExecutionState;
  readonly startedAt: string | null;
  /** Null: it is under way, or was when the run ended. */
  readonly endedAt: string | null;
  /** From its first start to its end, or until now. */
  readonly durationMs: number | null;
  /** Of that, time in which attempts waited before they called the model. */
  readonly backedOffMs: number;
  /** Model of its last attempt. */
  readonly model: string | null;
  /** Sums over the attempts that told them; null: none did. */
  readonly usage: NodeUsage | null;
}

/** That one execution led to another. */
export interface ExecutionEdge {
  /** 0: the run's start. */
  readonly from: number;
  readonly to: number;
  /** Edge of the graph; null: the run's start. */
  readonly edge: string | null;
  /** Null: a linear edge. */
  readonly condition: string | null;
  /** As it was recorded; null: before this run was forked, or at its start. */
  readonly reason: string | null;
  /** Who chose this way; null with the reason. */
  readonly by: 'node' | 'human' | null;
  /** The pause on the way; null: none. */
  readonly pause: number | null;
}

/** `room`: the run is pending; `pause`: a human; `others`: other branches; `owner`: an instance; `turn`: it starts next. */
export type Awaited = 'room' | 'pause' | 'others' | 'owner' | 'turn';

/** A node that a branch has reached and that has not started. */
export interface Upcoming {
  readonly node: string;
  readonly label: string;
  /** Steps that lead to it; 0: the run's start. */
  readonly from: readonly number[];
  readonly awaits: Awaited;
}

/** A pause, and how long it took. */
export interface PauseItem extends PauseTaken {
  /** When it ended: decided, or the run was cancelled; null: it is open. */
  readonly ended: Mark | null;
  /** Until its end, or until now. */
  readonly waitedMs: number;
}

/** A run as it ran. */
export interface AsItRan {
  readonly executions: readonly Execution[];
  readonly edges: readonly ExecutionEdge[];
  readonly upcoming: readonly Upcoming[];
  readonly pauses: readonly PauseItem[];
  /** The run it is a fork of, and the event there. */
  readonly inherited: RunParent | null;
  readonly end: RunEnd | null;
}

/**
 * A run as it ran up to and including an event; null before the first.
 *
 * @param now ISO 8601: until when what is under way has lasted, at the head of a live run; at other moments their own
 *   time counts
 */
export function asItRan(record: RunRecord, seq: number, now: string): AsItRan | null {
  const course = record.courseAt(seq);
  const state = record.stateAt(seq);
  if (course === null || state === null) return null;
  const until = untilOf(record, seq, now);
  const executions = course.steps.map((step) => executionAt(step, course, until));
  const steps = new Map(course.steps.map((each) => [each.step, each]));
  const conditions = new Map(course.plan.graph.edges.map(({ id, condition }) => [id, condition]));
  return {
    executions,
    edges: course.steps.flatMap((each) => edgesInto(each, conditions, steps)),
    upcoming: upcomingOf(state),
    pauses: course.pauses.map((pause) => pauseItemOf(pause, course, until)),
    inherited: course.parent,
    end: course.end,
  };
}

/** Until when what is under way at a moment has lasted: now at a live run's head, else the moment's own time. */
export function untilOf(record: RunRecord, seq: number, now: string): string {
  const at = record.events[Math.min(seq, record.head)]?.at ?? now;
  const isLive = seq >= record.head && record.courseAt(seq)?.end === null;
  return isLive && Date.parse(now) > Date.parse(at) ? now : at;
}

/** Cache of finished executions, so that going through a thousand events computes only what changes. */
const DONE = new WeakMap<Step, Execution>();

function executionAt(step: Step, course: Course, until: string): Execution {
  const execution = DONE.get(step) ?? executionOf(step, course, until);
  if (step.output !== null) DONE.set(step, execution);
  return execution;
}

function executionOf(step: Step, { plan, end }: Course, until: string): Execution {
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
    backedOffMs: attempts.reduce((sum, each) => sum + backOffOf(each, lastsUntil), 0),
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

/** Whether an attempt has not called its model yet, or waits for its server. */
function waitsAt({ started, delayMs, outageMs }: Attempt, until: string): boolean {
  return outageMs !== null || msBetween(started.at, until) < delayMs;
}

/** How long an attempt waited before it called the model. */
function backOffOf({ started, delayMs, ended }: Attempt, until: string): number {
  return Math.min(delayMs, msBetween(started.at, ended?.at ?? until));
}

function usageOf(attempts: readonly Attempt[]): NodeUsage | null {
  const usages = attempts.flatMap(({ ended }) => (ended === null || ended.how === 'lost' ? [] : (ended.usage ?? [])));
  // What a provider does not tell is recorded as 0, which no call costs.
  const costly = usages.filter((each) => each.inputTokens + each.outputTokens > 0);
  if (costly.length === 0) return null;
  return {
    inputTokens: costly.reduce((sum, each) => sum + each.inputTokens, 0),
    outputTokens: costly.reduce((sum, each) => sum + each.outputTokens, 0),
  };
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

/** The route that counted when a step began. */
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

function pauseItemOf(pause: PauseTaken, { end }: Course, until: string): PauseItem {
  const ended = pause.decision ?? end;
  const mark = ended === null ? null : { seq: ended.seq, at: ended.at };
  return { ...pause, ended: mark, waitedMs: msBetween(pause.paused.at, mark?.at ?? until) };
}

/** From one time to another, at least 0: clocks of instances differ. */
function msBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from));
}
