/** A run as it is, at one of its moments: the graph frozen into it, with marks of what has happened at each node and edge. */
import type { GraphEdge, GraphNode } from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';
import type { Course, Step } from './course.js';
import type { AsItRan, Execution } from './executions.js';
import type { RunRecord } from './run-record.js';

/** How a node stands; of several the first that holds. */
export type NodeStanding = 'failed' | 'active' | 'waiting' | 'next' | 'done' | 'idle';

/** A node of the graph, and what has happened at it. */
export interface NodeView {
  readonly id: string;
  readonly label: string;
  readonly role: GraphNode['role'];
  readonly standing: NodeStanding;
  /** Executions that are done, those of a fork's parent too as far as they are known. */
  readonly doneTimes: number;
  /** Attempts that failed. */
  readonly failedTimes: number;
  /** Its latest execution. */
  readonly lastStep: number | null;
  /** The score that a critic gave last. */
  readonly lastScore: number | null;
}

/** An edge of the graph, and how often the run has gone along it. */
export interface EdgeView {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** Null: a linear edge. */
  readonly condition: string | null;
  /** Whether it closes a loop. */
  readonly isBack: boolean;
  readonly takenTimes: number;
  /** Whether the run went along it when it last went on. */
  readonly isLastTaken: boolean;
}

export interface GraphView {
  readonly nodes: readonly NodeView[];
  readonly edges: readonly EdgeView[];
}

/** The graph of a run after an event; null before the first. @param ran the run as it ran until then */
export function graphViewAt(record: RunRecord, seq: number, ran: AsItRan | null): GraphView | null {
  const course = record.courseAt(seq);
  const moment = record.momentAt(seq);
  if (course === null || ran === null || moment === null) return null;
  const { plan } = course;
  const failed = course.end?.how === 'failed' ? course.end.failure.node : null;
  const marks = { failed, next: moment.nextNodes };
  const ways = taken(course);
  const executions = new Map<string, Execution[]>(plan.graph.nodes.map(({ id }) => [id, []]));
  for (const each of ran.executions) executions.get(each.node)?.push(each);
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

function nodeView({ id, label, role }: GraphNode, marks: NodeMarks): NodeView {
  const { own } = marks;
  const attempts = own.flatMap((each) => each.attempts);
  return {
    ...{ id, label, role },
    standing: standingOf(id, marks),
    doneTimes: own.filter((each) => each.state === 'done').length,
    failedTimes: attempts.filter(({ ended }) => ended?.how === 'failed').length,
    lastStep: own.at(-1)?.step ?? null,
    lastScore: lastScoreOf(own),
  };
}

function standingOf(id: string, { own, failed, next }: NodeMarks): NodeStanding {
  if (failed === id || own.at(-1)?.state === 'failed') return 'failed';
  const underWay = own.find((each) => each.state === 'active' || each.state === 'waiting');
  if (underWay !== undefined) return underWay.state === 'active' ? 'active' : 'waiting';
  if (next.includes(id)) return 'next';
  return own.some((each) => each.state === 'done') ? 'done' : 'idle';
}

function lastScoreOf(own: readonly Execution[]): number | null {
  const scores = own.flatMap(({ output }) => (output !== null && 'score' in output.value ? [output.value.score] : []));
  return scores.at(-1) ?? null;
}

/** How often each edge was taken, and those of the latest route. */
interface Taken {
  readonly times: ReadonlyMap<GraphEdge, number>;
  readonly last: ReadonlySet<GraphEdge>;
}

/** A route that a human has corrected was not taken. */
function taken({ plan, steps }: Course): Taken {
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

/** The edges that a step's route went along: the one whose condition it names, or else the linear ones. */
function edgesOf({ node, routes }: Step, plan: Plan): readonly GraphEdge[] {
  const { next, reason } = routes.at(-1) ?? { next: [], reason: '' };
  return next.flatMap((target) => {
    const edges = plan.edgesFrom(node).filter((edge) => edge.target === target);
    const chosen = edges.find(({ condition }) => condition !== null && reason === `condition ${condition}`);
    return chosen ?? edges.find(({ condition }) => condition === null) ?? edges[0] ?? [];
  });
}
