/** Runs under way: start one, ask where it stands, cancel it. */
import { fixedGraph } from '../council/fixed-graph.js';
import { RunUnknown } from '../errors.js';
import { summaryOf } from '../projections/run-summary.js';
import { requestedRun } from '../run/request.js';
import { bodyOf } from './body.js';
import type { Edge, Route } from './route.js';
import { runIdIn } from './route.js';
import { outcomeUnknown, startOnce } from './start-once.js';
import { runResult } from './wire.js';

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
      const asked = { ...council, inputTopic, godMode, blueprint: null };
      return await startOnce(ctx, edge, {
        request,
        begin: (run) => ({ requested: requestedRun({ ...asked, ...run }), failure: null }),
      });
    },
  };
}

function pollRoute(edge: Edge): Route {
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
