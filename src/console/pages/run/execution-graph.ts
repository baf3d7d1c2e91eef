/** The executed steps of a run as a graph, with pauses, waiting nodes and the end. */
import type { ExecutionTrace, Execution, ExecutionEdge, PauseItem, Upcoming } from '../../record/executions.js';
import { answeredText } from '../../record/event-text.js';
import { scoreOf } from '../../record/executions.js';
import type { GraphEdgeShown, GraphNodeShown } from '../../ui/graph-shown.js';

/** Steps per page, and how many of them belong to the previous page too. */
const [PAGE, BEFORE] = [60, 10];

/** What a click on a node selects. */
export type Target = { readonly step: number } | { readonly seq: number } | { readonly page: number };

export interface ExecutionGraph {
  readonly nodes: readonly GraphNodeShown[];
  readonly edges: readonly GraphEdgeShown[];
  readonly targets: ReadonlyMap<string, Target>;
}

/** The last page of a number of steps. */
export function pageOf(steps: number): number {
  return Math.floor(Math.max(0, steps - 1) / PAGE);
}

/**
 * One page of the graph. The layout uses the `full` trace, so that nodes do not move between events; nodes that do not
 * exist `now` are absent.
 */
export function executionGraph(now: ExecutionTrace, full: ExecutionTrace, page: number): ExecutionGraph {
  return new GraphBuilder(now, full, page).executionGraph();
}

class GraphBuilder {
  readonly #now: ExecutionTrace;
  readonly #full: ExecutionTrace;
  readonly #page: number;
  readonly #from: number;
  readonly #until: number;
  readonly #nodes: GraphNodeShown[] = [];
  readonly #edges = new Map<string, GraphEdgeShown>();
  readonly #targets = new Map<string, Target>();

  constructor(now: ExecutionTrace, full: ExecutionTrace, page: number) {
    this.#now = now;
    this.#full = full;
    this.#page = page;
    this.#from = Math.max(0, page * PAGE - (page > 0 ? BEFORE : 0));
    this.#until = (page + 1) * PAGE;
  }

  executionGraph(): ExecutionGraph {
    const before = this.#putBefore();
    const then = new Map(this.#now.executions.map((each) => [each.step, each]));
    const waiting = waitingSteps(this.#now, this.#full);
    for (const execution of this.#full.executions.slice(this.#from, this.#until)) {
      const { step } = execution;
      this.#put(executionShown(execution, then.get(step), waiting.get(step)), { step });
      this.#drawInto(execution, before);
    }
    if (this.#until < this.#full.executions.length) this.#putAfter();
    else this.#putHead();
    return { nodes: this.#nodes, edges: this.#marked(), targets: this.#targets };
  }

  /** The node before the first step, or null at the run's start. */
  #putBefore(): string | null {
    const { inherited } = this.#now;
    if (this.#from > 0) this.#put(mark('before', `${this.#from} earlier steps`), { page: this.#page - 1 });
    else if (inherited !== null) this.#put(mark('before', `Forked at event ${inherited.at}`, 'done'), { seq: 0 });
    else return null;
    return 'before';
  }

  #putAfter(): void {
    const leaves = this.#leaves();
    this.#put(mark('after', `${this.#full.executions.length - this.#until} later steps`), { page: this.#page + 1 });
    for (const leaf of leaves) this.#draw(leaf, 'after');
  }

  #drawInto({ step, pause: number }: Execution, before: string | null): void {
    const pause = number === null ? undefined : this.#full.pauses.find((each) => each.number === number);
    if (pause !== undefined) {
      this.#putPause(pause);
      this.#draw(pauseId(pause.number), stepId(step));
    }
    const target = pause === undefined ? stepId(step) : pauseId(pause.number);
    const into = this.#full.edges.filter((each) => each.to === step);
    if (into.length === 0 && before !== null) this.#draw(before, target);
    for (const edge of into) {
      const source = this.#targets.has(stepId(edge.from)) ? stepId(edge.from) : before;
      if (source !== null) this.#draw(source, target, edgeLabel(edge));
    }
  }

  /** Waiting nodes at the head, and the end of the run. */
  #putHead(): void {
    const { pauses, upcoming, end } = this.#full;
    const last = pauses.at(-1);
    if (last !== undefined && !this.#targets.has(pauseId(last.number))) {
      const leaves = this.#leaves();
      this.#putPause(last);
      for (const leaf of leaves) this.#draw(leaf, pauseId(last.number));
    }
    for (const next of upcoming) this.#putUpcoming(next);
    if (end === null) return;
    const leaves = this.#leaves();
    const isFailed = end.how === 'failed';
    const shown = mark('end', isFailed ? 'Failed' : 'Completed', isFailed ? 'failed' : 'done');
    this.#put({ ...shown, isAbsent: this.#now.end === null }, { seq: end.seq });
    for (const leaf of leaves) this.#draw(leaf, 'end');
  }

  #putUpcoming(next: Upcoming): void {
    const id = `next ${next.node}`;
    const { executions, upcoming } = this.#now;
    const isThen =
      executions.length === this.#full.executions.length && upcoming.some(({ node }) => node === next.node);
    const pause = this.#full.pauses.find((each) => each.ended === null && each.nextNodes.includes(next.node));
    this.#nodes.push(upcomingShown({ id, kind: 'agent' }, next, !isThen));
    if (pause !== undefined) this.#draw(pauseId(pause.number), id);
    else for (const from of next.from) if (this.#targets.has(stepId(from))) this.#draw(stepId(from), id);
  }

  #putPause(pause: PauseItem): void {
    if (this.#targets.has(pauseId(pause.number))) return;
    const then = this.#now.pauses.find(({ number }) => number === pause.number);
    const { seq } = then?.decision ?? pause.paused;
    this.#put({ ...pauseShown(then ?? pause), isAbsent: then === undefined }, { seq });
  }

  #put(node: GraphNodeShown, target: Target): void {
    this.#nodes.push(node);
    this.#targets.set(node.id, target);
  }

  #draw(source: string, target: string, label: string | null = null): void {
    const id = `${source} ${target}`;
    if (!this.#edges.has(id)) this.#edges.set(id, { id, source, target, label });
  }

  /** Nodes without a successor. */
  #leaves(): readonly string[] {
    const sources = new Set([...this.#edges.values()].map(({ source }) => source));
    return this.#nodes.flatMap(({ id }) => (sources.has(id) ? [] : [id]));
  }

  /** The edges, marked if their target exists now, and highlighted if it is active or next. */
  #marked(): readonly GraphEdgeShown[] {
    const states = new Map(this.#nodes.map(({ id, state, isAbsent }) => [id, isAbsent === true ? null : state]));
    return [...this.#edges.values()].map((edge) => {
      const state = states.get(edge.target) ?? null;
      const isLastTaken = state === 'active' || state === 'next';
      return { ...edge, takenTimes: state === null ? 0 : 1, isLastTaken };
    });
  }
}

/** Steps that have not started, of nodes that branches have reached. */
function waitingSteps(now: ExecutionTrace, whole: ExecutionTrace): ReadonlyMap<number, Upcoming> {
  const known = new Set(now.executions.map(({ step }) => step));
  return new Map(
    now.upcoming.flatMap((next) => {
      const found = whole.executions.find(({ step, node }) => node === next.node && !known.has(step));
      return found === undefined ? [] : [[found.step, next] as const];
    }),
  );
}

function edgeLabel({ condition, by }: ExecutionEdge): string | null {
  return by === 'human' ? `${condition ?? 'override'} (by an approver)` : condition;
}

function executionShown(whole: Execution, then: Execution | undefined, waits: Upcoming | undefined): GraphNodeShown {
  const { step, label, role } = whole;
  const node = { id: stepId(step), kind: role };
  if (then === undefined) {
    return waits === undefined ? { ...node, label, isAbsent: true } : upcomingShown(node, waits, false);
  }
  const { attempts, isInherited, state, panel } = then;
  const score = scoreOf(then);
  const words = [
    `step ${step}`,
    panel !== null && score === null && answeredText(panel.members.map((each) => each.state)),
    score !== null && `score ${score}`,
    attempts.length > 1 && `${attempts.length} attempts`,
    isInherited && 'inherited',
    state === 'cancelled' && 'cancelled',
  ];
  const shown = state === 'cancelled' ? 'idle' : state;
  return { ...node, label, state: shown, about: words.filter(Boolean).join(' · ') };
}

const AWAITS: Readonly<Record<Upcoming['awaits'], string>> = {
  room: 'waits in the queue',
  pause: 'waits for a decision',
  others: 'waits for other branches',
  owner: 'waits for an instance',
  turn: 'starts next',
};

function upcomingShown(
  node: Pick<GraphNodeShown, 'id' | 'kind'>,
  { label, awaits }: Upcoming,
  isAbsent: boolean,
): GraphNodeShown {
  return { ...node, label, state: awaits === 'pause' ? 'next' : 'waiting', about: AWAITS[awaits], isAbsent };
}

const DECIDED = { approve: 'Approved', modify: 'Modified', reject: 'Rejected' } as const;

function pauseShown({ number, decision, ended }: PauseItem): GraphNodeShown {
  const id = pauseId(number);
  if (decision === null) return ended === null ? mark(id, 'Paused', 'next') : mark(id, 'Pause ended');
  const by = decision.actor ?? (decision.by === 'deadline' ? 'deadline' : null);
  const decided = DECIDED[decision.action];
  return mark(id, by === null ? decided : `${decided} by ${by}`, decision.action === 'reject' ? 'failed' : 'done');
}

function mark(id: string, label: string, state: GraphNodeShown['state'] = 'idle'): GraphNodeShown {
  return { id, label, kind: 'mark', state };
}

/** The node id of a step. */
export function stepId(step: number): string {
  return `step ${step}`;
}

function pauseId(number: number): string {
  return `pause ${number}`;
}
