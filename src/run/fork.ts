/** A fork: a new run that continues from an event of another run, with changes at that point. */
import type { ModelNaming } from '../graph/models-asked.js';
import { modelsNamed, recordedName } from '../graph/models-asked.js';
import { withOutput } from '../graph/output-node.js';
import { planOf } from '../graph/plan.js';
import type {
  Graph,
  GraphMember,
  GraphNode,
  NodeChange,
  RunBudget,
  RunChanges,
  RunFold,
  RunRequestedData,
  StateOverride,
} from '../generated/schemas.js';
import type { RunFact } from './events.js';
import { frozenGraph } from './request.js';
import { humanSource } from './frontier/branch.js';
import { branchShown, nextFrontier, nodesAhead } from './frontier/frontier.js';
import { startersOf } from './pauses/approvals.js';
import { effectiveOverride, overrideState } from './pauses/override.js';
import { routeUnderOverride } from './pauses/override.js';
import { forkSnapshot, isOpen } from './fork-snapshot.js';
import type { Freezing, RunParameters } from './request.js';
import type { FrontierNode, RunState } from './state.js';
import { pauseOf, withProgress } from './state.js';

/** The changes of a node, with members and a council's fields as a run records them. */
export type ForkedNode = Omit<NodeChange, 'members' | 'council' | 'for_each' | 'max_parallel' | 'on_error'> &
  Pick<GraphNode, 'forEach' | 'maxParallel' | 'onError'> & { readonly members?: GraphMember[] };

/** What a fork changes. */
export interface ForkChanges {
  /** The new run's topic, or null for the parent's. */
  readonly inputTopic: string | null;
  /** The new run's material, empty for none. Absent: the parent's. */
  readonly material?: string | undefined;
  /** The documents of the new run, empty for all. Absent: the parent's. */
  readonly documents?: readonly string[] | undefined;
  /** The JSON Schema of its final output. Absent: the parent's. */
  readonly outputSchema?: GraphNode['schema'] | undefined;
  /** A human's override of the state at the fork point. */
  readonly override: StateOverride | null;
  /** Changes of nodes by id; each id is in the parent's graph. */
  readonly nodes: readonly ForkedNode[];
  /** Limit of node executions, including the parent's, or null for the parent's limit. */
  readonly maxNodeExecutions: number | null;
  /** The new run's budget. Absent: the parent's. */
  readonly budget?: RunBudget | undefined;
}

/** What a fork is, beside its changes. */
export interface ForkParameters extends Pick<RunParameters, 'runId' | 'bodyHash' | 'actor'>, Freezing {
  /** Whether its council now pauses before each node of every run; then it pauses even if its parent did not. Default: no. */
  readonly alwaysPauses?: boolean;
}

/** A preview of a fork. */
export interface ForkPlan {
  readonly reusedResults: number;
  /** Nodes that it starts or pauses before; empty if it ends at once. */
  readonly nextNodes: readonly string[];
}

/** Source id of an override at a fork: pause 0, because pauses count from 1. */
export function forkSource({ progress }: RunState): string {
  return humanSource(0, progress.steps);
}

/**
 * The first event of a fork.
 *
 * @param parent state at the fork point, not finished
 * @throws {OverrideRefused} when the override is not allowed or leaves the last node without a route
 */
export function buildForkRequest(
  parent: RunState,
  requested: ForkChanges,
  { alwaysPauses = false, ...fork }: ForkParameters,
): RunRequestedData {
  const changes = { ...requested, override: effectiveAt(parent, requested.override) };
  const { inputTopic, override, nodes, maxNodeExecutions } = changes;
  const budget = changes.budget ?? parent.spending?.budget;
  const graph = withOutput(changedGraph(parent.plan.graph, nodes), changes.outputSchema);
  const named = changedNames(changes);
  const isChanged = changesAnything(named);
  const decided = withDecision(parent, isChanged);
  const mode = modeOf(parent, alwaysPauses);
  // An approval of the parent does not cover what the fork changes, and a parent without God Mode has none.
  const reopened = alwaysPauses && (isChanged || !parent.request.godMode) ? { isApproved: false } : {};
  const topic = inputTopic === null ? {} : { inputTopic };
  const isOther = ({ node }: FrontierNode): boolean =>
    nodes.some((each) => each.id === node && (each.topic !== undefined || each.forEach !== undefined));
  const started = withoutChildren(withGraph(decided, graph), isOther);
  const run = withProgress(started, { ...topic, ...reopened });
  const { material: _, documents: __, ...copied } = parent.request;
  return {
    ...copied,
    runId: fork.runId,
    ...mode,
    ...topic,
    ...matterOf(parent, changes),
    ...frozenGraph(graph, { ...fork, fullName: namingOfFork(parent, fork.fullName) }),
    limits: { ...parent.request.limits, ...(maxNodeExecutions !== null && { maxNodeExecutions }) },
    ...(budget !== undefined && { budget }),
    parent: { runId: parent.runId, at: parent.head.seq, hash: parent.head.hash },
    earlierStarters: [...new Set(startersOf(parent.request))],
    state: forkSnapshot(override === null ? run : overridden(run, override)),
    changes: named,
    keyHash: null,
    bodyHash: fork.bodyHash,
    actor: fork.actor,
  };
}

/** The material and the documents of a fork: its own or its parent's, if they are not empty. */
function matterOf({ request }: RunState, changes: ForkChanges): Pick<RunRequestedData, 'material' | 'documents'> {
  const { material = request.material ?? '', documents = request.documents ?? [] } = changes;
  return { ...(material !== '' && { material }), ...(documents.length > 0 && { documents: [...documents] }) };
}

/** A run with another graph. If it has got an output node, the branches that had ended go on to that node. */
function withGraph(run: RunState, graph: Graph): RunState {
  const plan = planOf(graph);
  const { arrivals, ended } = run.progress;
  const goingOn = ended.flatMap(({ node, from, branch }) =>
    plan
      .edgesFrom(node)
      .filter(({ target }) => !run.plan.hasNode(target))
      .map(({ target }) => ({ node: target, from, order: plan.edgeOrder(node, target), branch })),
  );
  if (goingOn.length === 0) return { ...run, plan };
  return withProgress({ ...run, plan }, { arrivals: [...arrivals, ...goingOn], ended: [] });
}

/** The mode of a fork: a fork of a run in God Mode is in God Mode. */
function modeOf({ request }: RunState, alwaysPauses: boolean): Pick<RunRequestedData, 'godMode' | 'executionMode'> {
  const godMode = request.godMode || alwaysPauses;
  return { godMode, executionMode: godMode ? 'god-mode' : 'auto-pilot' };
}

/**
 * The node that has begun at a fork point without an approval of what the fork gives it, or null if there is none. A council
 * that always pauses allows no such fork, because its call would be made again before anyone is asked.
 */
export function unapprovedNode(parent: RunState, requested: ForkChanges): string | null {
  const changes = { ...requested, override: effectiveAt(parent, requested.override) };
  if (parent.request.godMode && !changesAnything(changedNames(changes))) return null;
  return parent.progress.frontier.find((each) => isOpen(parent, each))?.node ?? null;
}

/** Which models the graph of a fork names: as its parent has recorded them, and new names as a start reads them. */
function namingOfFork({ plan }: RunState, fullName: ModelNaming): ModelNaming {
  const recorded = new Set(modelsNamed(plan.graph));
  return (model) => (recorded.has(model) ? recordedName(model, fullName) : fullName(model));
}

/** The effective part of an override at a fork point, or null if it changes nothing. */
function effectiveAt(parent: RunState, override: StateOverride | null): StateOverride | null {
  if (override === null) return null;
  const effective = effectiveOverride(parent, override, nodesAhead(parent));
  return Object.keys(effective).length === 0 ? null : effective;
}

/** The error of a fork that its first facts already fail at the execution limit, or null. */
export function executionLimitError(facts: readonly RunFact[]): string | null {
  const last = facts.at(-1);
  return last?.type === 'RunFailed' && last.data.kind === 'execution_limit' ? last.data.error : null;
}

/** The preview of a fork, computed from the facts that its start would record. */
export function planFork(facts: readonly RunFact[]): ForkPlan {
  const nextNodes = facts.flatMap((fact) => {
    if (fact.type === 'NodeStarted') return [fact.data.node];
    return fact.type === 'RunPaused' ? fact.data.nextNodes : [];
  });
  const [first] = facts;
  const state = first?.type === 'RunRequested' ? first.data.state : null;
  return { reusedResults: state === null ? 0 : reusedResults(state), nextNodes: [...new Set(nextNodes)] };
}

/** How many of its parent's results a fork reuses. */
export function reusedResults({ steps, unanswered = 0, front }: RunFold): number {
  const without = front.filter(({ isOutstanding, seat }) => isOutstanding || (seat?.error ?? null) !== null);
  return steps - unanswered - without.length;
}

/** The names of the changed fields. Their values are recorded in the graph and state of the same event. */
function changedNames(changes: ForkChanges): RunChanges {
  const { inputTopic, material, documents, outputSchema, override, nodes, maxNodeExecutions } = changes;
  const isChangeable = (field: string): boolean => field === 'tools' || CHANGEABLE.some((each) => each === field);
  const named = (change: ForkedNode): string[] => Object.keys(change).filter(isChangeable);
  return {
    inputTopic: inputTopic !== null,
    ...(material !== undefined && { material: true }),
    ...(documents !== undefined && { documents: true }),
    ...(outputSchema !== undefined && { outputSchema: true }),
    state: Object.keys(override ?? {}),
    nodes: nodes.map((change) => ({ id: change.id, fields: named(change) })),
    ...(maxNodeExecutions !== null && { maxNodeExecutions: true }),
  };
}

/** Whether a fork changes anything: an empty override or a node without changed fields is no change. */
function changesAnything({ state, nodes, ...flags }: RunChanges): boolean {
  return Object.values(flags).includes(true) || state.length > 0 || nodes.some(({ fields }) => fields.length > 0);
}

/**
 * A run that is forked after a decision and before it resumes. Changes reopen its pause; without changes the decision
 * holds.
 */
function withDecision(run: RunState, isChanged: boolean): RunState {
  const pause = pauseOf(run);
  if (pause === null || pause.decision === null) return run;
  if (!isChanged) return withProgress(run, { isApproved: true });
  return { ...run, phase: { status: 'paused', pause: { ...pause, decision: null } } };
}

/** Fields of a node that a fork may change, besides its tools. A request's other fields are ignored. */
const CHANGEABLE = [
  'label',
  'systemPrompt',
  'model',
  'fallbacks',
  'temperature',
  'maxOutputTokens',
  'timeoutMs',
  'maxAttempts',
  'material',
  'members',
  'quorum',
  'graceMs',
  'keep',
  'aggregate',
  'topic',
  'forEach',
  'maxParallel',
  'onError',
] as const;

/** The state after an override, as after a `modify` in God Mode. The last node is routed again if it has ended. */
function overridden(run: RunState, override: StateOverride): RunState {
  const at = { source: forkSource(run), shown: nodesAhead(run) };
  const hasEnded = run.progress.frontier.every((each) => !isOpen(run, each));
  const continuation = hasEnded ? routeUnderOverride(run, override, at) : { route: null, nextNodes: at.shown };
  const before = new Map(run.progress.frontier.map(({ step, branch }) => [step, branch.draft]));
  const isOther = ({ step, branch }: FrontierNode): boolean => before.get(step) !== branch.draft;
  const changed = withoutChildren(overrideState(run, override, { ...at, ...continuation }), isOther);
  const next = nextFrontier(changed);
  const [first] = changed.progress.frontier;
  const isBefore = first === undefined || (run.phase.status === 'paused' && next.length > 0);
  return withProgress(changed, { shown: isBefore ? branchShown(changed, next) : first.branch });
}

/** The runs of a council that have ended are of its draft, items and topics: others have runs of their own. */
function withoutChildren(run: RunState, isOther: (at: FrontierNode) => boolean): RunState {
  const frontier = run.progress.frontier.map((each) => (isOther(each) ? { ...each, children: [] } : each));
  return withProgress(run, { frontier });
}

function changedGraph(graph: Graph, changes: readonly ForkedNode[]): Graph {
  if (changes.length === 0) return graph;
  const byId = new Map(changes.map((change) => [change.id, change]));
  return { ...graph, nodes: graph.nodes.map((node) => changedNode(node, byId.get(node.id))) };
}

function changedNode(node: GraphNode, change: ForkedNode | undefined): GraphNode {
  if (change === undefined) return node;
  const fields = CHANGEABLE.flatMap((field) => (change[field] === undefined ? [] : [[field, change[field]] as const]));
  const { webSearch = node.tools.webSearch, pdfReader = node.tools.pdfReader } = change.tools ?? {};
  return { ...node, ...Object.fromEntries(fields), tools: { ...node.tools, webSearch, pdfReader } };
}
