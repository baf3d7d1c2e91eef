/** Builds a run's request, the data of its first event, and begins runs. */
import type { ModelNaming } from '../graph/models-asked.js';
import { withFullNames } from '../graph/models-asked.js';
import { withNested } from '../graph/nested.js';
import { maxNodeExecutions, MAX_ITERATIONS, MAX_TAKEOVERS, PASS_SCORE } from '../graph/limits.js';
import type { Budget, Graph, RunBudget, RunFailedData, RunRequestedData } from '../generated/schemas.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import { claim } from './decide.js';
import { NO_EFFORT, usageOf } from './effort.js';
import type { Chart } from './chart/machine.js';
import type { DecisionContext } from './pending-events.js';
import { PendingEvents } from './pending-events.js';

/** What a start endpoint knows of a new run. */
export interface RunParameters {
  readonly runId: string;
  readonly inputTopic: string;
  /** The text that the council works on. Absent or empty: none. */
  readonly material?: string | undefined;
  readonly godMode: boolean;
  /** Ids of the documents that its PDF reader searches. Absent or empty: all. */
  readonly documents?: readonly string[] | undefined;
  /** The blueprint, with id null if it is not saved, or null for the fixed graph, which ignores God Mode. */
  readonly blueprint: { readonly id: string | null; readonly name: string } | null;
  readonly graph: Graph;
  readonly graphHash: string;
  readonly keyHash: string | null;
  readonly bodyHash: string;
  /** Name of the caller's key, or null if the service has no keys. */
  readonly actor: string | null;
  /** Absent: none. */
  readonly budget?: RunBudget | undefined;
}

/** What a start needs to freeze a graph. */
export interface Freezing {
  /** Reads the name of a model as the graph has it. */
  readonly fullName: ModelNaming;
  readonly sha256: (text: string) => string;
}

/** A graph as frozen into runs, with the full names of its models (contract 6.1), and its hash. */
export function frozenGraph(named: Graph, { fullName, sha256 }: Freezing): Pick<RunParameters, 'graph' | 'graphHash'> {
  const graph = withNested(named, (each) => withFullNames(each, fullName));
  return { graph, graphHash: sha256(canonical(graph)) };
}

/** A budget as a client sends it, as recorded. */
export function recordedBudget({ usd, tokens, on_exceeded: onExceeded = 'pause' }: Budget): RunBudget {
  return { usd: usd ?? null, tokens: tokens ?? null, onExceeded };
}

/** Builds the data of a run's first event. A new limit of runs gets its value here, from graph/limits.ts. */
export function buildRunRequest(run: RunParameters): RunRequestedData {
  const { blueprint, graph, material = '', documents = [] } = run;
  const godMode = blueprint !== null && run.godMode;
  return {
    runId: run.runId,
    inputTopic: run.inputTopic,
    ...(material !== '' && { material }),
    ...(documents.length > 0 && { documents: [...documents] }),
    godMode,
    executionMode: godMode ? 'god-mode' : 'auto-pilot',
    blueprintId: blueprint?.id ?? null,
    blueprintName: blueprint?.name ?? null,
    graph,
    graphHash: run.graphHash,
    limits: {
      maxIterations: MAX_ITERATIONS,
      passScore: PASS_SCORE,
      maxNodeExecutions: maxNodeExecutions(graph.nodes.length),
      maxTakeovers: MAX_TAKEOVERS,
    },
    ...(run.budget !== undefined && { budget: run.budget }),
    parent: null,
    state: null,
    keyHash: run.keyHash,
    bodyHash: run.bodyHash,
    actor: run.actor,
  };
}

/** An Idempotency-Key with its endpoint: the same key on another path is another request. */
export interface KeyScope {
  readonly method: string;
  /** Without trailing slash. */
  readonly path: string;
  /** Includes the name of the actor, if there is one. */
  readonly key: string;
}

/**
 * The run id derived from an Idempotency-Key and the log's secret: the first 16 bytes of a SHA-256 with the bits of a version-4
 * UUID. Equal requests append to the same stream, and the log decides which is first. With null in place of the secret it is
 * the id that versions without a secret gave, which anyone can compute from the names of a key and an Idempotency-Key.
 */
export function keyedRunId(
  { method, path, key }: KeyScope,
  secret: string | null,
  sha256: (text: string) => string,
): string {
  const hex = sha256([...(secret === null ? [] : [secret]), method, path, key].join('\n'));
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

/**
 * Begins a run. With a slot: RunRequested, RunClaimed, RunStarted, and a NodeStarted for each first node or, in God Mode,
 * RunPaused. Without a slot: RunRequested alone, and the run is pending.
 */
export function startRun(
  chart: Chart,
  request: RunRequestedData,
  { context, hasSlot }: { readonly context: DecisionContext; readonly hasSlot: boolean },
): PendingEvents {
  const pending = PendingEvents.ofNewRun(chart, { pricesHash: context.pricesHash, ...request }, context);
  if (hasSlot) claim(pending, 'started');
  return pending;
}

/** Begins a run that fails at once. */
export function refuseRun(
  chart: Chart,
  request: RunRequestedData,
  { context, failure }: { readonly context: DecisionContext; readonly failure: RunFailedData },
): PendingEvents {
  const pending = PendingEvents.ofNewRun(chart, request, context);
  pending.write({ type: 'RunFailed', data: { usage: usageOf(NO_EFFORT), ...failure } });
  return pending;
}
