/** Runs of saved councils: the blueprint is frozen into the run's first event. */
import type { RouterContext } from '@koa/router';
import { compileBlueprint } from '../blueprint/compile.js';
import { BlueprintUnknown } from '../errors.js';
import type { RunRequest } from '../generated/schemas.js';
import { requestedRun } from '../run/request.js';
import { bodyOf } from './body.js';
import type { Edge, Route } from './route.js';
import { blueprintIdIn } from './route.js';
import type { Beginning, RunKey } from './start-once.js';
import { startOnce } from './start-once.js';

/** POST /api/councils/{blueprint_id}/run. */
export function blueprintRunRoutes(edge: Edge): readonly Route[] {
  const body = bodyOf(edge.schemas, 'run-request.json', { isRequired: true });
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
      return await startOnce(ctx, edge, {
        request,
        begin: (run) => freeze(edge, { run, request: request.value, ctx }),
      });
    },
  };
  return [route];
}

/** The blueprint as it stands now, as the run will have it whatever becomes of the blueprint. */
async function freeze(
  edge: Edge,
  { run, request, ctx }: { readonly run: RunKey; readonly request: RunRequest; readonly ctx: RouterContext },
): Promise<Beginning> {
  const blueprintId = blueprintIdIn(ctx);
  const blueprint = await edge.blueprints.find(blueprintId);
  if (blueprint === null) throw new BlueprintUnknown({ blueprintId });
  const compiled = compileBlueprint(blueprint, edge.nodeDefaults);
  const requested = requestedRun({
    ...run,
    inputTopic: request.input_topic,
    godMode: request.god_mode ?? false,
    blueprint: { id: blueprint.id, name: blueprint.name },
    graph: compiled.graph,
    graphHash: edge.ambient.sha256(edge.canonical(compiled.graph)),
  });
  return { requested, failure: compiled.isRunnable ? null : compiled.failure };
}
