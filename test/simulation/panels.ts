/**
 * Checks the panels, ranks and juries of a run at each of its events, from the recorded data alone: the order in which
 * answers are shown, the quorum, the time after it, and the result of each.
 */
import type { Graph, GraphNode, NodeOutput, PanelClosedData, RunRequestedData } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import { isSameResult, juryResult, rankResult } from './panel-results.js';
import { Readers } from './readers.js';

interface Seat {
  readonly member: string;
  order: readonly string[];
  output: NodeOutput | null;
  error: boolean;
}

interface OpenPanel {
  readonly node: GraphNode;
  /** By step, in the order of members. */
  readonly seats: Map<number, Seat>;
  /** When later answers are discarded, or null before the quorum. */
  untilMs: number | null;
}

export interface PanelsDeps {
  readonly sha256: (text: string) => string;
  readonly must: (holds: boolean, invariant: string, detail: string) => void;
  readonly parentEvents: (parent: { readonly runId: string; readonly at: number }) => readonly RunEvent[];
}

const ONCE = 'each member is answered, failed or discarded once';
const IN_TIME = 'no answer is recorded after the time of its panel';

export class Panels {
  readonly #runId: string;
  readonly #deps: PanelsDeps;
  readonly #open = new Map<number, OpenPanel>();
  readonly #closed = new Set<number>();
  /** Steps of attempts in flight. */
  readonly #active = new Set<number>();
  #hasBudget = false;
  /** By jury, the scores of its executions by member. */
  readonly #rounds = new Map<string, ReadonlyMap<string, number>[]>();
  #readers: Readers | null = null;
  #nodes: ReadonlyMap<string, GraphNode> = new Map();

  constructor(runId: string, deps: PanelsDeps) {
    this.#runId = runId;
    this.#deps = deps;
  }

  get areThere(): boolean {
    return [...this.#nodes.values()].some(hasSeats);
  }

  /** Takes an event. Returns the steps that now certainly get no result: of members that have failed or are discarded. */
  take(event: RunEvent): readonly number[] {
    const { type, data } = event;
    const atMs = Date.parse(event.at);
    this.#follow(event);
    if (!this.areThere) return [];
    switch (type) {
      case 'NodeStarted':
        this.#started(data);
        break;
      case 'NodeCompleted':
        if (data.panelStep === undefined) this.#readers?.completed(data);
        else this.#answered(data, atMs);
        this.#must(hasSeats(this.#nodes.get(data.node)) === (data.panelStep !== undefined), ONCE, `step ${data.step}`);
        break;
      case 'NodeFailed':
        return data.final === true ? this.#failed(data, atMs) : [];
      case 'QuorumReached':
        this.#quorum(data, atMs);
        break;
      case 'PanelClosed':
        return this.#close(data, atMs);
      case 'GateDecided':
        if (data.action === 'modify') this.#readers?.modified();
        break;
      case 'RunPaused':
        this.#must(data.reason === 'budget' || this.#open.size === 0, ONCE, 'the run pauses with an open panel');
        break;
      case 'RunCompleted':
        this.#must(data.endedBy === 'budget' || this.#open.size === 0, ONCE, 'the run completes with an open panel');
        break;
      case 'RunFailed':
        if (data.kind === 'node_failed') this.#fails(data.node);
        break;
      default:
    }
    return [];
  }

  #follow({ type, data }: RunEvent): void {
    if (type === 'RunRequested') this.#begin(data);
    if (type === 'NodeStarted') this.#active.add(data.step);
    if (type === 'NodeCompleted' || type === 'NodeFailed') this.#active.delete(data.step);
  }

  #begin({ graph, parent, state, budget }: RunRequestedData): void {
    this.#hasBudget = budget !== undefined;
    if (parent !== null && state !== null) this.#forkOf(graph, parent, state.front);
    this.#nodes = new Map(graph.nodes.map((node) => [node.id, node]));
    this.#readers ??= new Readers(graph);
  }

  /** A fork keeps what was recorded, and starts the time after a quorum again. */
  #forkOf(
    graph: Graph,
    parent: { readonly runId: string; readonly at: number },
    front: NonNullable<RunRequestedData['state']>['front'],
  ): void {
    this.#readers = new Readers(graph);
    this.#nodes = new Map(graph.nodes.map((node) => [node.id, node]));
    const { must, ...deps } = this.#deps;
    const before = new Panels(parent.runId, { ...deps, must: () => undefined });
    for (const event of this.#deps.parentEvents(parent)) before.take(event);
    if (before.#readers !== null) this.#readers = before.#readers;
    for (const [node, rounds] of before.#rounds) this.#rounds.set(node, [...rounds]);
    for (const each of before.#closed) this.#closed.add(each);
    for (const [panelStep, panel] of before.#open) {
      this.#open.set(panelStep, { ...panel, untilMs: null });
      for (const [step, { member, output, error }] of panel.seats) {
        const kept = front.find((each) => each.step === step)?.seat;
        const isKept = kept?.member === member && isSameResult(kept.output, output) && (kept.error !== null) === error;
        must(isKept, 'a fork keeps the answers before it', `step ${step} of panel ${panelStep}`);
      }
    }
  }

  #started(data: Started): void {
    const { step, node, member, panelStep, order_shown: order = [] } = data;
    const wrong =
      this.#readers?.wrongOrder({ runId: this.#runId, step, node, member }, order, this.#deps.sha256) ?? null;
    this.#must(wrong === null, 'order shown as its hash says', `step ${step} is shown ${order.join(' ')}: ${wrong}`);
    const graphNode = this.#nodes.get(node);
    if (panelStep === undefined || member === undefined || graphNode === undefined) {
      return this.#must(!hasSeats(graphNode) && panelStep === undefined, ONCE, `"${node}" starts without its members`);
    }
    this.#must(!this.#closed.has(panelStep), ONCE, `step ${step} starts in a closed panel`);
    const panel = this.#open.get(panelStep) ?? { node: graphNode, seats: new Map<number, Seat>(), untilMs: null };
    this.#must(panel.node.id === node, ONCE, `step ${step} of "${node}" starts in the panel of "${panel.node.id}"`);
    this.#open.set(panelStep, panel);
    const seat = panel.seats.get(step) ?? { member, order, output: null, error: false };
    this.#must(seat.member === member && isOpen(seat), ONCE, `step ${step} of ${member} starts again`);
    seat.order = order;
    panel.seats.set(step, seat);
  }

  #seat({ step, panelStep, member }: Pick<Started, 'step' | 'panelStep' | 'member'>, atMs: number): Seat | null {
    const panel = this.#open.get(panelStep ?? 0);
    const seat = panel?.seats.get(step);
    const isOpen = seat !== undefined && seat.member === member && seat.output === null && !seat.error;
    this.#must(isOpen, ONCE, `step ${step} of ${member}`);
    const { untilMs = null } = panel ?? {};
    this.#must(untilMs === null || atMs < untilMs, IN_TIME, `step ${step} at ${atMs}, until ${untilMs}`);
    return seat ?? null;
  }

  #answered(data: Started & { readonly output: NodeOutput }, atMs: number): void {
    const seat = this.#seat(data, atMs);
    if (seat !== null) seat.output = data.output;
  }

  #failed(data: Started, atMs: number): readonly number[] {
    const seat = this.#seat(data, atMs);
    if (seat !== null) seat.error = true;
    return [data.step];
  }

  #quorum({ panelStep, until }: { readonly panelStep: number; readonly until: string }, atMs: number): void {
    const panel = this.#open.get(panelStep);
    if (panel === undefined) return this.#must(false, 'one close per panel', `quorum of ${panelStep}`);
    const { answered, open } = counted(panel);
    const { graceMs = 0 } = panel.node;
    const isDue = panel.untilMs === null && answered >= quorumOf(panel) && open > 0 && graceMs > 0;
    const isTimed = Date.parse(until) === atMs + graceMs;
    this.#must(
      isDue && isTimed,
      'the quorum starts the time',
      `panel ${panelStep}: ${answered} answered, until ${until}`,
    );
    panel.untilMs = Date.parse(until);
  }

  /** Whether the budget has stopped the members that have not answered. */
  #isStopped({ seats }: OpenPanel): boolean {
    return this.#hasBudget && [...seats].every(([step, seat]) => !isOpen(seat) || !this.#active.has(step));
  }

  #close(data: PanelClosedData, atMs: number): readonly number[] {
    const panel = this.#open.get(data.panelStep);
    const isOnce = panel?.node.id === data.node && !this.#closed.has(data.panelStep);
    this.#must(isOnce, 'one close per panel', `panel ${data.panelStep}`);
    if (panel === undefined) return [];
    const { answered, open } = counted(panel);
    const isOver = panel.untilMs !== null && atMs >= panel.untilMs;
    const isDue = open === 0 || panel.node.graceMs === 0 || isOver || this.#isStopped(panel);
    const how = `panel ${data.panelStep} closes at ${atMs}: ${answered} answered, ${open} open, until ${panel.untilMs}`;
    this.#must(answered >= quorumOf(panel) && isDue, 'a panel closes at its quorum', how);
    const seats = [...panel.seats.values()];
    const named = (fits: (seat: Seat) => boolean): string =>
      seats
        .filter(fits)
        .map(({ member }) => member)
        .join(' ');
    const ends = [named(isAnswered), named(({ error }) => error), named(isOpen)];
    const given = [data.answered, data.failed, data.discarded].map((members) => members.join(' '));
    this.#must(ends.join('; ') === given.join('; '), ONCE, `${given.join('; ')} is recorded for ${ends.join('; ')}`);
    const result = this.#resultOf(panel, data.result);
    const isSame = isSameResult(result, data.result);
    this.#must(isSame, 'results follow from answers', `${JSON.stringify(data.result)} for ${JSON.stringify(result)}`);
    this.#open.delete(data.panelStep);
    this.#closed.add(data.panelStep);
    this.#readers?.closed(panel.node, data);
    return [...panel.seats].flatMap(([step, seat]) => (isOpen(seat) ? [step] : []));
  }

  #resultOf({ node, seats }: OpenPanel, recorded: PanelClosedData['result']): PanelClosedData['result'] {
    const answered = [...seats.values()].filter(isAnswered);
    if (node.role === 'panel') return null;
    if (node.role === 'rank') {
      const reviews = answered.map(({ order, output }) => {
        return { shown: order, letters: output !== null && 'ranking' in output ? output.ranking : [] };
      });
      return rankResult(reviews, this.#readers?.reviewed ?? [], node);
    }
    const scores = answered.flatMap(({ member, output }) => {
      return output !== null && 'score' in output ? [[member, output] as const] : [];
    });
    const rounds = [
      ...(this.#rounds.get(node.id) ?? []),
      new Map(scores.map(([member, { score }]) => [member, score])),
    ];
    this.#rounds.set(node.id, rounds);
    const labels = new Map(node.members?.map(({ id, label }) => [id, label]));
    const feedback = scores.map(([member, output]) => `## ${labels.get(member)}\n${output.feedback}`).join('\n\n');
    this.#must(recorded !== null && 'score' in recorded, 'results follow from answers', `no score of ${node.id}`);
    return { ...juryResult(rounds, node), feedback };
  }

  /** A node with members fails only if too few of them can answer. */
  #fails(node: string | null): void {
    const panel = [...this.#open.values()].find((each) => each.node.id === node);
    if (panel === undefined) return this.#must(!hasSeats(this.#nodes.get(node ?? '')), ONCE, `"${node}" fails closed`);
    const { answered, open } = counted(panel);
    this.#must(answered + open < quorumOf(panel), 'a panel goes on while its quorum can be met', `"${node}"`);
  }

  #must(holds: boolean, invariant: string, detail: string): void {
    if (!holds) this.#deps.must(false, invariant, detail);
  }
}

interface Started {
  readonly step: number;
  readonly node: string;
  readonly member?: string;
  readonly panelStep?: number;
  readonly order_shown?: readonly string[];
}

function hasSeats(node: GraphNode | undefined): boolean {
  if (node === undefined) return false;
  return node.role === 'panel' || node.role === 'rank' || (node.role === 'critic' && node.members !== undefined);
}

function quorumOf({ node, seats }: OpenPanel): number {
  return node.role === 'rank' ? 1 : (node.quorum ?? seats.size);
}

function isAnswered({ output }: Seat): boolean {
  return output !== null;
}

function isOpen({ output, error }: Seat): boolean {
  return output === null && !error;
}

function counted({ seats }: OpenPanel): { readonly answered: number; readonly open: number } {
  const all = [...seats.values()];
  return { answered: all.filter(isAnswered).length, open: all.filter(isOpen).length };
}
