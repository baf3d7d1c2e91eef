/** A fork: a new run that continues from an event of another run, with changes made at that point. */
import { planOf } from '../graph/plan.js';
import type {
  Graph,
  GraphNode,
  NodeChange,
  RunChanges,
  RunFold,
  RunRequestedData,
  StateOverride,
} from '../generated/schemas.js';
import type { RunFact } from './events.js';
import { frozenGraph } from './request.js';
import { humanSource } from './branch.js';
import { branchShown, nextFrontier, nodesAhead } from './frontier.js';
import { effectiveOverride, overrideState } from './override.js';
import { routeUnderOverride } from './override.js';
import { forkSnapshot, isOutstanding } from './fork-snapshot.js';
import type { RunRequest } from './request.js';
import type { RunState } from './state.js';
import { pauseOf, withProgress } from './state.js';

/** What a fork changes against its parent. */
export interface ForkChanges {
  /** The new run's topic; null: the parent's. */
  readonly inputTopic: string | null;
  /** A human's override of the state at the fork point. */
  readonly override: StateOverride | null;
  /** Changes of nodes, known by their ids; each id is one of the parent's graph. */
  readonly nodes: readonly NodeChange[];
  /** Node executions after which the new run fails, those of its parent among them; null: the parent's bound. */
  readonly maxNodeExecutions: number | null;
}

/** A preview of a fork. */
export interface ForkPlan {
  readonly reusedResults: number;
  /** Nodes it starts with, or pauses before; empty: it ends at once. */
  readonly nextNodes: readonly string[];
}

/** Source id of what a human gives at a fork: pause 0, since pauses count from 1. */
export function forkSource({ progress }: RunState): string {
  return humanSource(0, progress.steps);
}

/**
 * The first event of a fork.
 *
 * @param parent its state at the fork point, not yet finished
 * @throws {OverrideRefused} when the override is not allowed, or leaves the last node without a route
 */
export function forkedRun(
  parent: RunState,
  requested: ForkChanges,
  fork: Pick<RunRequest, 'runId' | 'bodyHash' | 'actor'> & { readonly sha256: (text: string) => string },
): RunRequestedData {
  const changes = { ...requested, override: effectiveAt(parent, requested.override) };
  const { inputTopic, override, nodes, maxNodeExecutions } = changes;
  const graph = changedGraph(parent.plan.graph, nodes);
  const named = changedNames(changes);
  const decided = withDecision(parent, changesAnything(named));
  const topic = inputTopic === null ? {} : { inputTopic };
  const run = withProgress({ ...decided, plan: planOf(graph) }, topic);
  return {
    ...parent.request,
    runId: fork.runId,
    inputTopic: inputTopic ?? parent.request.inputTopic,
    ...frozenGraph(graph, fork.sha256),
    limits: { ...parent.request.limits, ...(maxNodeExecutions !== null && { maxNodeExecutions }) },
    parent: { runId: parent.runId, at: parent.head.seq, hash: parent.head.hash },
    state: forkSnapshot(override === null ? run : overridden(run, override)),
    changes: named,
    keyHash: null,
    bodyHash: fork.bodyHash,
    actor: fork.actor,
  };
}

/** The effective part of an override at a fork point; null when it changes nothing. */
function effectiveAt(parent: RunState, override: StateOverride | null): StateOverride | null {
  if (override === null) return null;
  const effective = effectiveOverride(parent, override, nodesAhead(parent));
  return Object.keys(effective).length === 0 ? null : effective;
}

/** The error of a fork whose first facts already fail it at the execution limit; null when they do not. */
export function boundReached(facts: readonly RunFact[]): string | null {
  const last = facts.at(-1);
  return last?.type === 'RunFailed' && last.data.kind === 'execution_limit' ? last.data.error : null;
}

/** The preview of a fork, from the facts that its start would record. */
export function planFork(facts: readonly RunFact[]): ForkPlan {
  const nextNodes = facts.flatMap((fact) => {
    if (fact.type === 'NodeStarted') return [fact.data.node];
    return fact.type === 'RunPaused' ? fact.data.nextNodes : [];
  });
  const [first] = facts;
  const state = first?.type === 'RunRequested' ? first.data.state : null;
  return { reusedResults: state === null ? 0 : reusedResults(state), nextNodes };
}

/** How many results of the parent a fork reuses. */
export function reusedResults({ steps, front }: RunFold): number {
  return steps - front.filter((each) => each.isOutstanding).length;
}

/** The names of what is changed: the values are recorded in the graph and state beside them, and not repeated here. */
function changedNames({ inputTopic, override, nodes, maxNodeExecutions }: ForkChanges): RunChanges {
  const named = (change: NodeChange): string[] => Object.keys(change).filter((field) => CHANGEABLE.has(field));
  return {
    inputTopic: inputTopic !== null,
    state: Object.keys(override ?? {}),
    nodes: nodes.map((change) => ({ id: change.id, fields: named(change) })),
    ...(maxNodeExecutions !== null && { maxNodeExecutions: true }),
  };
}

/** Whether anything is changed: an empty override is no change, nor is a node without changed fields. */
function changesAnything({ inputTopic, state, nodes, maxNodeExecutions = false }: RunChanges): boolean {
  return inputTopic || maxNodeExecutions || state.length > 0 || nodes.some(({ fields }) => fields.length > 0);
}

/**
 * A run forked between a human's decision and its resumption: without changes the decision still holds; with changes
 * the pause is open again.
 */
function withDecision(run: RunState, isChanged: boolean): RunState {
  const pause = pauseOf(run);
  if (pause === null || pause.decision === null) return run;
  if (!isChanged) return withProgress(run, { isApproved: true });
  return { ...run, phase: { status: 'paused', pause: { ...pause, decision: null } } };
}

/** Fields of a node that a fork may change; whatever else a request holds is ignored. */
const CHANGEABLE: ReadonlySet<string> = new Set<keyof NodeChange>([
  ...(['label', 'systemPrompt', 'model', 'temperature', 'maxOutputTokens', 'timeoutMs', 'maxAttempts'] as const),
  'tools',
]);

/** The state after an override, as God Mode's `modify` would leave it; the last node is routed again if it has ended. */
function overridden(run: RunState, override: StateOverride): RunState {
  const at = { source: forkSource(run), shown: nodesAhead(run) };
  const hasEnded = run.progress.frontier.every((each) => !isOutstanding(run, each));
  const continuation = hasEnded ? routeUnderOverride(run, override, at) : { route: null, nextNodes: at.shown };
  const changed = overrideState(run, override, { ...at, ...continuation });
  const next = nextFrontier(changed);
  const [first] = changed.progress.frontier;
  const isBefore = first === undefined || (run.phase.status === 'paused' && next.length > 0);
  return withProgress(changed, { shown: isBefore ? branchShown(changed, next) : first.branch });
}

function changedGraph(graph: Graph, changes: readonly NodeChange[]): Graph {
  if (changes.length === 0) return graph;
  const byId = new Map(changes.map((change) => [change.id, change]));
  return { ...graph, nodes: graph.nodes.map((node) => changedNode(node, byId.get(node.id))) };
}

/** Copies field by field, so that id, role and place in the graph stay. */
function changedNode(node: GraphNode, change: NodeChange | undefined): GraphNode {
  if (change === undefined) return node;
  const { label, systemPrompt, model, temperature, maxOutputTokens, timeoutMs, maxAttempts, tools = {} } = change;
  const { webSearch, pdfReader } = tools;
  return {
    ...node,
    ...(label !== undefined && { label }),
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    tools: {
      ...node.tools,
      ...(webSearch !== undefined && { webSearch }),
      ...(pdfReader !== undefined && { pdfReader }),
    },
  };
}
