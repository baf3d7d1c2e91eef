/** The graph of a run up to an event, with the state of each node and the use of each edge. */
import type { GraphEdge, GraphNode } from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';
import type { RunHistory, Step } from '../../run/history/history.js';
import type { ExecutionTrace, Execution, MemberState } from './executions.js';
import { scoreOf } from './executions.js';
import type { RunRecord } from './run-record.js';

/** The state of a node; the first that applies. */
export type NodeState = 'failed' | 'active' | 'waiting' | 'next' | 'done' | 'idle';

export interface NodeView {
  readonly id: string;
  readonly label: string;
  readonly role: GraphNode['role'];
  /** The name of the council that it runs, or null. */
  readonly council: string | null;
  readonly state: NodeState;
  /** Number of finished executions, known ones of a fork's parent included. */
  readonly doneTimes: number;
  /** Number of failed attempts. */
  readonly failedTimes: number;
  /** Its latest execution. */
  readonly lastStep: number | null;
  /** The latest score of a critic or jury. */
  readonly lastScore: number | null;
  /** The members of its latest execution by state, or null if it has none. */
  readonly members: readonly MemberState[] | null;
}

export interface EdgeView {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** Or null for a linear edge. */
  readonly condition: string | null;
  /** Whether it closes a loop. */
  readonly isBack: boolean;
  readonly takenTimes: number;
  /** Whether the latest route uses it. */
  readonly isLastTaken: boolean;
}

export interface GraphView {
  readonly nodes: readonly NodeView[];
  readonly edges: readonly EdgeView[];
}

/** The graph of a run after an event, or null before the first. @param trace the trace up to that event */
export function graphViewAt(record: RunRecord, seq: number, trace: ExecutionTrace | null): GraphView | null {
  const history = record.historyAt(seq);
  const snapshot = record.snapshotAt(seq);
  if (history === null || trace === null || snapshot === null) return null;
  const { plan } = history;
  const failed = history.end?.how === 'failed' ? history.end.failure.node : null;
  const marks = { failed, next: snapshot.nextNodes };
  const ways = taken(history);
  const executions = new Map<string, Execution[]>(plan.graph.nodes.map(({ id }) => [id, []]));
  for (const each of trace.executions) executions.get(each.node)?.push(each);
  return {
    nodes: plan.graph.nodes.map((node) => nodeView(node, { own: executions.get(node.id) ?? [], ...marks })),
    edges: plan.graph.edges.map((edge) => ({
      ...edge,
      isBack: plan.isBack(edge),
      takenTimes: ways.times.get(edge) ?? 0,
      isLastTaken: ways.last.has(edge),
    })),
  };
}

interface NodeMarks {
  readonly own: readonly Execution[];
  readonly failed: string | null;
  readonly next: readonly string[];
}

function nodeView({ id, label, role, council }: GraphNode, marks: NodeMarks): NodeView {
  const { own } = marks;
  const attempts = own.flatMap(({ attempts: its, panel }) => panel?.members.flatMap((each) => each.attempts) ?? its);
  return {
    id,
    label,
    role,
    council: council?.name ?? null,
    state: stateOf(id, marks),
    doneTimes: own.filter((each) => each.state === 'done').length,
    failedTimes: attempts.filter(({ ended }) => ended?.how === 'failed').length,
    lastStep: own.at(-1)?.step ?? null,
    lastScore: own.map(scoreOf).findLast((score) => score !== null) ?? null,
    members: own.at(-1)?.panel?.members.map((each) => each.state) ?? null,
  };
}

function stateOf(id: string, { own, failed, next }: NodeMarks): NodeState {
  if (failed === id || own.at(-1)?.state === 'failed') return 'failed';
  const underWay = own.find((each) => each.state === 'active' || each.state === 'waiting');
  if (underWay !== undefined) return underWay.state === 'active' ? 'active' : 'waiting';
  if (next.includes(id)) return 'next';
  return own.some((each) => each.state === 'done') ? 'done' : 'idle';
}

/** How often each edge was used, and the edges of the latest route. */
interface Taken {
  readonly times: ReadonlyMap<GraphEdge, number>;
  readonly last: ReadonlySet<GraphEdge>;
}

/** Counts the latest route of each step: a human's override replaces the earlier one. */
function taken({ plan, steps }: RunHistory): Taken {
  const routes = steps.flatMap((step) => {
    const route = step.routes.at(-1);
    return route === undefined ? [] : [{ seq: route.seq, edges: edgesOf(step, plan) }];
  });
  const times = new Map<GraphEdge, number>();
  for (const edge of routes.flatMap(({ edges }) => edges)) times.set(edge, (times.get(edge) ?? 0) + 1);
  const latest = routes.reduce((one, other) => (other.seq > one.seq ? other : one), { seq: -1, edges: NO_EDGES });
  return { times, last: new Set(latest.edges) };
}

const NO_EDGES: readonly GraphEdge[] = [];

/** The edges of a step's route: the edge whose condition the reason names, else the linear edges. */
function edgesOf({ node, routes }: Step, plan: Plan): readonly GraphEdge[] {
  const { next, reason } = routes.at(-1) ?? { next: [], reason: '' };
  return next.flatMap((target) => {
    const edges = plan.edgesFrom(node).filter((edge) => edge.target === target);
    const chosen = edges.find(({ condition }) => condition !== null && reason === `condition ${condition}`);
    return chosen ?? edges.find(({ condition }) => condition === null) ?? edges[0] ?? [];
  });
}
