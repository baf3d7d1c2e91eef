/** Runs under way: start one, ask where it stands, cancel it. */
import type { RouterContext } from '@koa/router';
import { fixedGraph } from '../council/fixed-graph.js';
import { AppendOutcomeUnknown, RunUnknown } from '../errors.js';
import type { Graph, RunRequest, RunRequestedData } from '../generated/schemas.js';
import { summaryOf } from '../projections/run-summary.js';
import { runStream } from '../run/events.js';
import { keyedRunId, requestedRun } from '../run/request.js';
import type { BodyReader } from './body.js';
import { bodyOf } from './body.js';
import { idempotencyKey, keyScope } from './idempotency.js';
import type { Edge, Route } from './route.js';
import { runIdIn } from './route.js';
import { runResult, runStart } from './wire.js';

/** POST /api/councils/run, GET /api/councils/run/{run_id} and POST /api/councils/run/{run_id}/cancel. */
export function runRoutes(edge: Edge): readonly Route[] {
  return [startRoute(edge), pollRoute(edge), cancelRoute(edge)];
}

function startRoute(edge: Edge): Route {
  const body = bodyOf(edge.schemas, 'run-request.json', { isRequired: true });
  const graph = fixedGraph(edge.nodeDefaults);
  const council = { graph, graphHash: edge.ambient.sha256(edge.canonical(graph)) };
  return {
    method: 'POST',
    path: '/api/councils/run',
    name: 'startRun',
    summary: 'Starts a run of the built-in council',
    tag: 'runs',
    body,
    isKeyed: true,
    success: {
      status: 202,
      description: 'The run is recorded and goes on in the background',
      schema: 'run-start.json',
    },
    problems: [503],
    async handle(ctx) {
      const requested = await readRequest(ctx, { edge, body, council });
      const begun = await edge.inTime(begin(edge, requested), outcomeUnknown(requested.runId));
      return { status: 202, body: runStart(begun) };
    },
  };
}

interface StartReading {
  readonly edge: Edge;
  readonly body: BodyReader<RunRequest>;
  readonly council: { readonly graph: Graph; readonly graphHash: string };
}

async function readRequest(ctx: RouterContext, { edge, body, council }: StartReading): Promise<RunRequestedData> {
  const { uuid, sha256 } = edge.ambient;
  const request = await body.read(ctx);
  const key = idempotencyKey(ctx);
  return requestedRun({
    ...council,
    runId: key === null ? uuid() : keyedRunId({ ...keyScope(ctx), key }, sha256),
    inputTopic: request.input_topic,
    godMode: request.god_mode ?? false,
    blueprint: null,
    keyHash: key === null ? null : sha256(key),
    bodyHash: sha256(edge.canonical(request)),
  });
}

/** A repeated request is answered before any other check of state (contract, section 2). */
async function begin({ registry, log }: Edge, requested: RunRequestedData): Promise<RunRequestedData> {
  const { runId, keyHash, bodyHash } = requested;
  const repeated = keyHash === null ? null : await registry.repeated(runId, bodyHash);
  if (repeated !== null) return repeated;
  const begun = await registry.start(requested);
  if (begun === requested) log.info({ runId }, 'run requested');
  return begun;
}

function pollRoute(edge: Edge): Route {
  return {
    method: 'GET',
    path: '/api/councils/run/{run_id}',
    name: 'getRun',
    summary: 'Tells where a run stands',
    tag: 'runs',
    success: { status: 200, description: 'The run', schema: 'run-result.json' },
    async handle(ctx) {
      const runId = runIdIn(ctx);
      const run = await edge.inTime(edge.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      return { status: 200, body: runResult(run) };
    },
  };
}

function cancelRoute(edge: Edge): Route {
  const body = bodyOf(edge.schemas, 'cancel-request.json', { isRequired: false });
  return {
    method: 'POST',
    path: '/api/councils/run/{run_id}/cancel',
    name: 'cancelRun',
    summary: 'Cancels an unfinished run: it fails with "Cancelled by the user"',
    tag: 'runs',
    body,
    success: { status: 200, description: 'The run as it ended', schema: 'run-result.json' },
    problems: [409, 503],
    async handle(ctx) {
      await body.read(ctx);
      const runId = runIdIn(ctx);
      const run = await edge.inTime(edge.registry.cancel(runId), outcomeUnknown(runId));
      edge.log.info({ runId }, 'run cancelled');
      return { status: 200, body: runResult(summaryOf(run)) };
    },
  };
}

/** What a caller is told who has waited long enough for the log. */
export function outcomeUnknown(runId: string): () => AppendOutcomeUnknown {
  return () => new AppendOutcomeUnknown({ stream: runStream(runId) });
}
