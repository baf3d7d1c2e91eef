/** Runs of saved councils: the blueprint is frozen into the run's first event. */
import type { Compiled } from '../blueprint/compile.js';
import { compileBlueprint } from '../blueprint/compile.js';
import { BlueprintUnknown } from '../errors.js';
import type { RunRequest, RunRequestedData } from '../generated/schemas.js';
import { keyedRunId, requestedRun } from '../run/request.js';
import { bodyOf } from './body.js';
import { idempotencyKey, keyScope } from './idempotency.js';
import type { Edge, Route } from './route.js';
import { blueprintIdIn } from './route.js';
import { outcomeUnknown } from './runs.js';
import { runStart } from './wire.js';

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
      const request = await body.read(ctx);
      const key = idempotencyKey(ctx);
      const { uuid, sha256 } = edge.ambient;
      const wish: Wish = {
        runId: key === null ? uuid() : keyedRunId({ ...keyScope(ctx), key }, sha256),
        keyHash: key === null ? null : sha256(key),
        bodyHash: sha256(edge.canonical(request)),
        request,
      };
      const begun = await edge.inTime(
        begin(edge, wish, () => blueprintIdIn(ctx)),
        outcomeUnknown(wish.runId),
      );
      return { status: 202, body: runStart(begun) };
    },
  };
  return [route];
}

/** What is asked for, before anybody has looked at the blueprint. */
interface Wish extends Pick<RunRequestedData, 'runId' | 'keyHash' | 'bodyHash'> {
  readonly request: RunRequest;
}

/** A repeated request is answered before any look at the blueprint (contract, section 2). */
async function begin(edge: Edge, wish: Wish, blueprintIdOf: () => string): Promise<RunRequestedData> {
  const { registry, log } = edge;
  const { runId, keyHash, bodyHash } = wish;
  const repeated = keyHash === null ? null : await registry.repeated(runId, bodyHash);
  if (repeated !== null) return repeated;
  const { requested, compiled } = await freeze(edge, wish, blueprintIdOf());
  const begun = await (compiled.isRunnable ? registry.start(requested) : registry.refuse(requested, compiled.failure));
  if (begun === requested) log.info({ runId, blueprintId: requested.blueprintId }, 'run requested');
  return begun;
}

/** The blueprint as it stands now, as the run will have it whatever becomes of the blueprint. */
async function freeze(
  edge: Edge,
  { request, ...ids }: Wish,
  blueprintId: string,
): Promise<{ readonly requested: RunRequestedData; readonly compiled: Compiled }> {
  const blueprint = await edge.blueprints.find(blueprintId);
  if (blueprint === null) throw new BlueprintUnknown({ blueprintId });
  const compiled = compileBlueprint(blueprint, edge.nodeDefaults);
  const requested = requestedRun({
    ...ids,
    inputTopic: request.input_topic,
    godMode: request.god_mode ?? false,
    blueprint: { id: blueprint.id, name: blueprint.name },
    graph: compiled.graph,
    graphHash: edge.ambient.sha256(edge.canonical(compiled.graph)),
  });
  return { requested, compiled };
}
