/** Names of councils as models, and starts of their runs. */
import type { RouterContext } from '@koa/router';
import { isBlueprintId } from '../blueprint/record.js';
import type { Blueprint, RunRequest } from '../generated/schemas.js';
import type { ReadBody } from '../http/body.js';
import type { RunIdentity, BuiltRequest } from '../http/starts.js';
import { startRunOnce } from '../http/starts.js';
import type { HttpContext } from '../http/route.js';
import { buildBlueprintRequest, builtInCouncil } from '../http/routes/runs.js';
import type { Caller } from '../keys/caller.js';
import { unknownModel } from './errors.js';

/** The built-in council. */
export const BUILT_IN = 'council';

/** The model of a blueprint, or of the built-in council if the id is null. */
export function modelOf(blueprintId: string | null): string {
  return blueprintId === null ? BUILT_IN : `${BUILT_IN}/${blueprintId}`;
}

/** The id of the blueprint of a model, or null for the built-in council. @throws {RequestRefused} 404 */
function blueprintIdOf(model: string): string | null {
  if (model === BUILT_IN) return null;
  const id = model.startsWith(`${BUILT_IN}/`) ? model.slice(BUILT_IN.length + 1) : '';
  if (!isBlueprintId(id)) throw unknownModel(model);
  return id;
}

/**
 * The blueprint of a model, or null for the built-in council.
 *
 * @throws {RequestRefused} 404 for a model that is no council
 */
export async function blueprintOf(http: HttpContext, model: string): Promise<Blueprint | null> {
  const id = blueprintIdOf(model);
  if (id === null) return null;
  const blueprint = await http.withinDeadline(http.blueprints.find(id));
  if (blueprint === null) throw unknownModel(model);
  return blueprint;
}

export interface ModelStart {
  readonly body: ReadBody<unknown>;
  readonly model: string;
  readonly topic: string;
  /** Empty: none. */
  readonly material: string;
  readonly schema: RunRequest['output_schema'];
  readonly caller: Caller;
}

/** A function that starts runs as the start endpoints do, and returns the id of the run. */
export function modelStarts(http: HttpContext): (ctx: RouterContext, start: ModelStart) => Promise<string> {
  const ofBuiltIn = builtInCouncil(http);
  const requestOf = async (run: RunIdentity, { model, topic, material, schema }: ModelStart): Promise<BuiltRequest> => {
    const blueprint = await blueprintOf(http, model);
    const body = {
      input_topic: topic,
      material,
      god_mode: blueprint?.model_options?.god_mode === true,
      ...(schema !== undefined && { output_schema: schema }),
    };
    if (blueprint === null) return ofBuiltIn(run, body);
    return await buildBlueprintRequest(http, { run, body, blueprintId: blueprint.id });
  };
  return async (ctx, start) => {
    const { body, caller } = start;
    const answer = await startRunOnce(ctx, http, { body, caller, buildRequest: (run) => requestOf(run, start) });
    return answer.body.run_id;
  };
}
