import { itemsOf } from '../../src/draft/items.js';
/**
 * given(graph).recorded(facts).when(command).then(...facts): the domain under test without a log. It seals facts as for
 * an append and applies them to the chart. It freezes every state and compares it with the plain fold.
 */
import { expect } from 'chai';
import { isDeepStrictEqual } from 'node:util';
import type {
  GateChoice,
  Graph,
  GraphNode,
  NodeOutput,
  RunBudget,
  RunLimits,
  RunRequestedData,
  StateOverride,
  ToolCalledData,
} from '../../src/generated/schemas.js';
import type { Caller } from '../../src/keys/caller.js';
import type { ModelPrice } from '../../src/models/prices.js';
import { ANYONE } from '../../src/keys/caller.js';
import type { RunCommand } from '../../src/run/decide.js';
import { decide } from '../../src/run/decide.js';
import type { RunEvent, RunFact } from '../../src/run/events.js';
import type { DecisionRequest } from '../../src/run/pauses/human-decision.js';
import { decisionOn, applyDeadline } from '../../src/run/pauses/human-decision.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import { callOf } from '../../src/run/pending-events.js';
import { assignmentOf } from '../../src/run/frontier/node-start.js';
import type { Chart, RunSnapshot } from '../../src/run/chart/machine.js';
import { compileChart } from '../../src/run/chart/machine.js';
import type { DecisionContext } from '../../src/run/pending-events.js';
import type { FrontierNode, RunState } from '../../src/run/state.js';
import { openPauseOf } from '../../src/run/state.js';
import { present } from '../../src/system/element.js';
import { startRun } from '../../src/run/request.js';
import { sealAppend } from '../../src/eventsourcing/aggregate.js';
import { factsAfter } from '../../src/run/stream.js';
import { deepFreeze } from './deep-freeze.js';
import { manualSystem } from './manual-system.js';
import { plainName, runRequest } from './open-engine.js';

/** Properties of a run; missing ones have default values. */
export interface Given {
  readonly godMode?: boolean;
  readonly topic?: string;
  readonly limits?: Partial<RunLimits>;
  readonly budget?: RunBudget;
  /** Requested, but not yet claimed. */
  readonly pending?: boolean;
}

/** A command, or a function that derives it from the run. */
export type When = RunCommand | ((run: RunState) => RunCommand);

export const RUN_ID = '00000000-0000-4000-8000-000000000001';

/** A new run that, unless `pending`, instance `one` has claimed. */
export function given(graph: Graph, { limits = {}, pending = false, budget, ...options }: Given = {}): Story {
  const plain = runRequest(RUN_ID, { ...options, graph });
  return begun(
    { ...plain, limits: { ...plain.limits, ...limits }, ...(budget !== undefined && { budget }) },
    { pending },
  );
}

/** A run with this request and, unless `pending`, a claim of instance `one`. */
export function begun(requested: RunRequestedData, { pending = false }: Pick<Given, 'pending'> = {}): Story {
  const chart = compileChart(requested.graph);
  const deps = { system: manualSystem(), instanceId: 'one' };
  const { facts } = startRun(chart, requested, { hasSlot: !pending, context: contextOf('one') });
  const { recorded } = sealAppend(deps, factsAfter(null, requested.runId, facts));
  return storyOf(chart, recorded, { latest: facts, deps });
}

function storyOf(
  chart: Chart,
  [first, ...rest]: readonly RunEvent[],
  state: Pick<StoryState, 'latest' | 'deps'>,
): Story {
  if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  const start = { snapshot: chart.first(deepFreeze(first)), fold: deepFreeze(firstState(first)) };
  return new Story(chart, { events: [first], ...state, ...start }).followedBy(rest);
}

interface StoryState {
  readonly events: readonly RunEvent[];
  readonly snapshot: RunSnapshot;
  /** The state as the plain fold has it, without the chart. */
  readonly fold: RunState;
  /** The facts of the last append. */
  readonly latest: readonly RunFact[];
  readonly deps: { readonly system: ReturnType<typeof manualSystem>; readonly instanceId: string };
}

/** A run's story. Each step returns a new story, so that one beginning can have many ends. */
export class Story {
  readonly chart: Chart;
  readonly #state: StoryState;

  constructor(chart: Chart, state: StoryState) {
    this.chart = chart;
    this.#state = state;
  }

  get run(): RunState {
    return this.#state.snapshot.context.run;
  }

  get snapshot(): RunSnapshot {
    return this.#state.snapshot;
  }

  get events(): readonly RunEvent[] {
    return this.#state.events;
  }

  get facts(): readonly RunFact[] {
    return this.#state.latest;
  }

  /** Decides a command at the named instance and time, and records its facts. */
  when(command: When, instanceId = 'one', at = START): Story {
    const pending = decide(this.chart, this.snapshot, {
      command: typeof command === 'function' ? command(this.run) : command,
      context: { ...contextOf(instanceId), at },
    });
    const { facts, assignments } = pending;
    this.#state.deps.system.setNow(pending.context.at);
    const story = this.recorded(...facts);
    const decided = facts.length === 0 ? pending.snapshot : pending.snapshotAt(story.events.at(-1));
    expect(decided.value).to.deep.equal(story.snapshot.value);
    expectSame(decided.context.run, story.run);
    // A council asks no model.
    const started = facts.flatMap((fact) =>
      fact.type === 'NodeStarted' && fact.data.model !== '' ? [callOf(fact.data)] : [],
    );
    expect([...assignments.keys()]).to.deep.equal(started);
    for (const each of story.run.progress.frontier) {
      const assigned = assignments.get(callOf(each));
      if (assigned !== undefined) expect(assigned).to.deep.equal(assignmentOf(story.run, each));
    }
    return story;
  }

  /** A human decides on the open pause, at the named instance. */
  whenDecided(
    choice: GateChoice & Pick<DecisionRequest, 'budget'>,
    instanceId = 'one',
    caller: Caller = ANYONE,
  ): Story {
    const pause = present(openPauseOf(this.run), 'the open pause');
    const { budget, ...sent } = choice;
    const request = { choice: sent, budget, caller, comment: null, keyHash: null, bodyHash: 'b', expectedSeq: null };
    return this.recorded(...decisionOn(this, pause, { request, context: contextOf(instanceId) }).pending.facts);
  }

  /** Checks the deadline of the open pause at a time. */
  whenDue(at: string): Story {
    const context = { ...contextOf('one'), at };
    return this.at(at).recorded(...applyDeadline(this.chart, this.snapshot, context).facts);
  }

  /** The same story at a later time. */
  at(time: string): this {
    this.#state.deps.system.setNow(time);
    return this;
  }

  /** A human approves the open pause. */
  whenApproved(): Story {
    return this.whenDecided(APPROVAL);
  }

  /** A human modifies the state at the open pause. */
  whenModified(modifiedState: StateOverride): Story {
    return this.whenDecided({ action: 'modify', modifiedState });
  }

  /** Commands one after the other. */
  whenAll(...commands: readonly When[]): Story {
    return commands.reduce((story: Story, command) => story.when(command), this);
  }

  /** Records facts in one append. */
  recorded(...facts: readonly RunFact[]): Story {
    const { deps } = this.#state;
    const { recorded } = sealAppend(deps, factsAfter(this.run.head, this.run.runId, facts));
    return new Story(this.chart, { ...this.#state, latest: facts }).followedBy(recorded);
  }

  /** Expects the facts of the last append, each in short (see {@link shortText}). */
  then(...facts: readonly string[]): this {
    expect(this.facts.map(shortText)).to.deep.equal(facts);
    return this;
  }

  followedBy(events: readonly RunEvent[]): Story {
    let { snapshot, fold } = this.#state;
    for (const event of events) {
      deepFreeze(event);
      snapshot = this.chart.next(snapshot, event);
      fold = deepFreeze(evolve(fold, event));
      deepFreeze(snapshot.context.run);
      expectSame(snapshot.context.run, fold);
    }
    return new Story(this.chart, { ...this.#state, snapshot, fold, events: [...this.#state.events, ...events] });
  }
}

/**
 * Expects two folds of the same events to be equal. Compares most parts by identity, because both come from the same
 * events.
 */
function expectSame(run: RunState, other: RunState): void {
  // Plans differ in identity; only their graphs can be compared.
  const withoutPlan = ({ plan, ...rest }: RunState) => ({ ...rest, graph: plan.graph });
  const isSame = isDeepStrictEqual(withoutPlan(run), withoutPlan(other));
  if (!isSame) expect(stateText(run)).to.equal(stateText(other));
}

/** A state as JSON text. */
export function stateText(run: RunState): string {
  return JSON.stringify(run);
}

const START = '2026-01-01T00:00:00.000Z';

/** A hundredth of a dollar a token; models whose names begin with `unpriced` have no price. */
function priceInTests(model: string): ModelPrice | null {
  return model.startsWith('unpriced') ? null : { input: 0.01, output: 0.01, cacheRead: null, cacheWrite: null };
}

/** Its hashes are short and contain their input, so that a test can check it. */
export function contextOf(instanceId: string): DecisionContext {
  return {
    at: START,
    instanceId,
    fullName: plainName,
    pricesHash: 'prices',
    priceOf: priceInTests,
    isToolAvailable: (tool) => tool === 'pdfReader',
    itemsOf,
    childId: (parent, name) => `${parent}/${name}`,
    sha256: (text) => `sha256 of ${text.length} characters`,
  };
}

/** A fact in a few words: what happened, to whom, and where it leads. Steps are written `step.attempt`. */
export function shortText(fact: RunFact): string {
  switch (fact.type) {
    case 'RunClaimed':
    case 'RunReleased':
      return `${fact.type} ${fact.data.reason} ${fact.data.epoch} by ${fact.data.instanceId}`;
    case 'RunStarted':
      return `${fact.type} ${fact.data.epoch}`;
    case 'RunResumed':
      return `${fact.type} ${fact.data.gate}`;
    case 'NodeStarted':
      return `${fact.type} ${at(fact.data)}${fact.data.delayMs > 0 ? ` after ${fact.data.delayMs} ms` : ''}`;
    case 'ToolCalled':
      return `${fact.type} ${at(fact.data)} ${fact.data.tool}`;
    case 'NodeCompleted':
      return [fact.type, at(fact.data), '->', ...(fact.data.route?.next ?? [])].join(' ');
    case 'NodeFailed':
      return `${fact.type} ${at(fact.data)}: ${fact.data.message}`;
    case 'RunPaused':
      return `${fact.type} ${fact.data.gate} before ${fact.data.nextNodes.join(' ')}${fact.data.reason === 'budget' ? ' for the budget' : ''}`;
    case 'VoteCast':
      return `${fact.type} ${fact.data.gate} ${fact.data.action} by ${fact.data.actor}`;
    case 'PauseEscalated':
      return `${fact.type} ${fact.data.gate} to ${fact.data.to.join(' ')}`;
    case 'GateDecided':
      return `${fact.type} ${fact.data.gate} ${fact.data.action}`;
    case 'RunCompleted':
      return `${fact.type}: ${fact.data.finalDraft} (${fact.data.criticScore}, ${fact.data.iterationCount})`;
    case 'RunFailed':
      return `${fact.type} ${fact.data.kind}: ${fact.data.error}`;
    default:
      return fact.type;
  }
}

function at({ node, step, attempt }: Pick<FrontierNode, 'node' | 'step' | 'attempt'>): string {
  return `${node} ${step}.${attempt}`;
}

// Graphs

/**
 * A graph from lines such as `plan -> left, right` (linear edges) and `judge? -approve-> writer` (a conditional edge).
 * A name with `?` is a critic. Nodes are in the order of their first mention, and the first is the entry. A line
 * without an arrow only adds nodes. Labels are the capitalized names.
 */
export function graphOf(text: string, fields: Partial<GraphNode> = {}): Graph {
  const lines = text.split(/[\n;]/).map((line) => line.trim());
  const critics = new Set([...text.matchAll(/(\w+)\?/g)].map(([, name]) => name));
  const edges: Graph['edges'] = [];
  const ids = new Set<string>();
  for (const line of lines.filter((each) => each !== '')) {
    const [, from = '', condition = null, to = ''] = /^([^-]*)(?:-(?:(\w+)-)?>(.*))?$/.exec(line) ?? [];
    const [sources, targets] = [namesIn(from), namesIn(to)];
    for (const id of [...sources, ...targets]) ids.add(id);
    for (const source of sources) {
      for (const target of targets) {
        edges.push({
          id: `${source}->${target}`,
          source,
          target,
          condition,
        });
      }
    }
  }
  return graphWith(
    [...ids].map((id) => ({ id, role: critics.has(id) ? 'critic' : 'agent', ...fields })),
    edges,
  );
}

/** A graph of nodes with default values for missing fields; the first is the entry. */
export function graphWith(
  nodes: readonly (Partial<GraphNode> & { readonly id: string })[],
  edges: Graph['edges'],
): Graph {
  return { entry: nodes[0]?.id ?? '', nodes: nodes.map(plainNode), edges };
}

function plainNode(fields: Partial<GraphNode> & { readonly id: string }): GraphNode {
  return {
    label: fields.id.charAt(0).toUpperCase() + fields.id.slice(1),
    role: 'agent',
    systemPrompt: '',
    tools: { webSearch: false, pdfReader: false },
    countsIteration: fields.role !== 'critic',
    timeoutMs: 1_000,
    maxAttempts: 4,
    ...fields,
  };
}

function namesIn(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim().replace(/\?$/, ''))
    .filter((name) => name !== '');
}

// Commands

const USAGE = { inputTokens: 10, outputTokens: 5 };

/** The node's active attempt ends with a draft, by default one that names the node. */
export function wrote(node: string, draft = `by ${node}`): When {
  return (run) => completed(attemptOf(run, node), { draft });
}

/** The critic's active attempt ends with a score. */
export function scored(node: string, score: number, feedback = `from ${node}`): When {
  return (run) => completed(attemptOf(run, node), { score, feedback });
}

/** The node's active attempt fails. Null means without a retry. */
export function broke(node: string, retryInMs: number | null = null): When {
  return (run) => failed(attemptOf(run, node), retryInMs);
}

/** The step of a panel's member. */
export function memberStep(run: RunState, member: string): FrontierNode {
  const found = run.progress.frontier.find(({ seat }) => seat?.member === member);
  if (found === undefined) throw new Error(`No member "${member}" is at work`);
  return found;
}

/** A member's attempt ends with an output. */
export function memberGave(member: string, output: NodeOutput): When {
  return (run) => completed(memberStep(run, member), output);
}

/** A panel's member answers. */
export function answered(member: string, answer = `answer of ${member}`): When {
  return memberGave(member, { answer });
}

/** A member's attempt fails. Null means without a retry. */
export function memberBroke(member: string, retryInMs: number | null = null): When {
  return (run) => failed(memberStep(run, member), retryInMs);
}

/** Ends the first active node again and again, as `next` says, until none is active or `isOver`. */
export function playOut(
  story: Story,
  next: (node: string, run: RunState) => When,
  isOver: (run: RunState) => boolean = () => false,
): Story {
  let played = story;
  for (let node = activeNodes(story.run)[0]; node !== undefined && played.run.phase.status === 'running';) {
    if (isOver(played.run)) break;
    played = played.when(next(node, played.run));
    node = activeNodes(played.run)[0];
  }
  return played;
}

/** A report on an attempt, active or not. */
export function completed({ step, attempt }: Pick<FrontierNode, 'step' | 'attempt'>, output: NodeOutput): RunCommand {
  return { type: 'CompleteNode', result: { step, attempt, output, usage: USAGE, durationMs: 7 } };
}

export function failed(
  { step, attempt }: Pick<FrontierNode, 'step' | 'attempt'>,
  retryInMs: number | null,
): RunCommand {
  const failure = { step, attempt, kind: 'model_error', message: 'The model is ill', retryable: retryInMs !== null };
  return { type: 'FailNode', failure, retryInMs };
}

export function attemptOf(run: RunState, node: string): FrontierNode {
  const found = run.progress.frontier.find((each) => each.active && each.node === node);
  if (found === undefined) throw new Error(`Node "${node}" is not active: ${activeNodes(run).join(', ') || 'none is'}`);
  return found;
}

/** Active nodes, in the order of the frontier. */
export function activeNodes(run: RunState): readonly string[] {
  return run.progress.frontier.filter((each) => each.active).map((each) => each.node);
}

/** A tool answers the node's active attempt. */
export function usedTool(node: string, hits: ToolCalledData['hits'] = []): When {
  return (run) => {
    const { step, attempt } = attemptOf(run, node);
    return { type: 'RecordToolCall', call: { step, attempt, ...TOOL_CALL, hits } };
  };
}

/** Default fields of a tool's answer. */
const TOOL_CALL = {
  round: 1,
  tool: 'pdf_reader',
  arguments: { query: 'trees', top_k: 5 },
  resultHash: 'h',
  resultBytes: 7,
  error: null,
  durationMs: 3,
};

/** A recorded answer of a tool. */
export function toolCalled(
  { node, step, attempt }: Pick<FrontierNode, 'node' | 'step' | 'attempt'>,
  hits: ToolCalledData['hits'] = [],
): RunFact {
  return { type: 'ToolCalled', data: { step, node, attempt, ...TOOL_CALL, hits } };
}

// God Mode

const APPROVAL: GateChoice = { action: 'approve', modifiedState: null };

/** The fact of a human's decision on the open pause, without what follows from it. */
export function decisionFact(story: Story, choice = APPROVAL): Extract<RunFact, { type: 'GateDecided' }> {
  const [fact] = story.whenDecided(choice).facts;
  if (fact?.type !== 'GateDecided')
    throw new Error(`Run "${story.run.runId}" is ${story.run.phase.status}, not paused`);
  return fact;
}

/** A recorded start of a node, with an arbitrary prompt hash. */
export function nodeStarted({
  node,
  step,
  attempt,
}: Pick<FrontierNode, 'node' | 'step' | 'attempt'>): Extract<RunFact, { type: 'NodeStarted' }> {
  const data = { step, node, attempt, iteration: 0, inputHash: 'h', model: 'model-1', tools: [], delayMs: 0 };
  return { type: 'NodeStarted', data };
}
