/** Runs: start one, poll its status, cancel it. */
import { fixedGraph } from '../../council/fixed-graph.js';
import { BlueprintUnknown, RunUnknown } from '../../errors.js';
import { summaryOf } from '../../projections/run-summary.js';
import { requestedRun } from '../../run/request.js';
import { bodyOf } from '../body.js';
import type { HttpContext, Route } from '../route.js';
import { blueprintIdIn, runIdIn } from '../route.js';
import type { Beginning, RunKey } from '../idempotency.js';
import { outcomeUnknown, startOnce } from '../idempotency.js';
import { runResult } from '../../api/serializers.js';
import type { RouterContext } from '@koa/router';
import { compileBlueprint } from '../../blueprint/compile.js';
import type { RunRequest } from '../../generated/schemas.js';

/** POST /api/councils/run, GET /api/councils/run/{run_id} and POST /api/councils/run/{run_id}/cancel. */
export function runRoutes(http: HttpContext): readonly Route[] {
  return [startRoute(http), pollRoute(http), cancelRoute(http)];
}

function startRoute(http: HttpContext): Route {
  const body = bodyOf(http.schemas, 'run-request.json', { isRequired: true });
  const graph = fixedGraph(http.nodeDefaults);
  const council = { graph, graphHash: http.system.sha256(http.canonical(graph)) };
  return {
    method: 'POST',
    path: '/api/councils/run',
    name: 'startRun',
    summary: 'Starts a run of the built-in council',
    description:
      'A master writes, a critic scores, below 8 the master goes on, else a writer ends it. It is answered once it is recorded.',
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
      const request = await body.readToCompare(ctx);
      const { input_topic: inputTopic, god_mode: godMode = false } = request.value;
      const base = { ...council, inputTopic, godMode, blueprint: null };
      return await startOnce(ctx, http, {
        request,
        begin: (run) => ({ requested: requestedRun({ ...base, ...run }), failure: null }),
      });
    },
  };
}

function pollRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/councils/run/{run_id}',
    name: 'getRun',
    summary: 'Tells where a run stands',
    tag: 'runs',
    success: { status: 200, description: 'The run', schema: 'run-result.json' },
    problems: [503],
    async handle(ctx) {
      const runId = runIdIn(ctx);
      const run = await http.inTime(http.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      return { status: 200, body: runResult(run) };
    },
  };
}

function cancelRoute(http: HttpContext): Route {
  const body = bodyOf(http.schemas, 'cancel-request.json', { isRequired: false });
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
      const run = await http.inTime(http.registry.cancel(runId), outcomeUnknown(runId));
      http.log.info({ runId }, 'run cancelled');
      return { status: 200, body: runResult(summaryOf(run)) };
    },
  };
}

// Runs of saved councils: the blueprint is frozen into the run's first event.

/** POST /api/councils/{blueprint_id}/run. */
export function blueprintRunRoutes(http: HttpContext): readonly Route[] {
  const body = bodyOf(http.schemas, 'run-request.json', { isRequired: true });
  const route: Route = {
    method: 'POST',
    path: '/api/councils/{blueprint_id}/run',
    name: 'startBlueprintRun',
    summary: 'Starts a run of a saved council; one with faults fails by name',
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
      const request = await body.readToCompare(ctx);
      return await startOnce(ctx, http, {
        request,
        begin: (run) => freezeBlueprint(http, { run, request: request.value, ctx }),
      });
    },
  };
  return [route];
}

/** Freezes the current blueprint into the run: later changes of it do not reach the run. */
async function freezeBlueprint(
  http: HttpContext,
  { run, request, ctx }: { readonly run: RunKey; readonly request: RunRequest; readonly ctx: RouterContext },
): Promise<Beginning> {
  const blueprintId = blueprintIdIn(ctx);
  const blueprint = await http.blueprints.find(blueprintId);
  if (blueprint === null) throw new BlueprintUnknown({ blueprintId });
  const compiled = compileBlueprint(blueprint, http.nodeDefaults);
  const requested = requestedRun({
    ...run,
    inputTopic: request.input_topic,
    godMode: request.god_mode ?? false,
    blueprint: { id: blueprint.id, name: blueprint.name },
    graph: compiled.graph,
    graphHash: http.system.sha256(http.canonical(compiled.graph)),
  });
  return { requested, failure: compiled.isRunnable ? null : compiled.failure };
}
