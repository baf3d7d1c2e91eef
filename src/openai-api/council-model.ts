/** Names of councils as models, and starts of their runs. */
import type { RouterContext } from '@koa/router';
import { isBlueprintId } from '../blueprint/record.js';
import type { RunRequestedData } from '../generated/schemas.js';
import type { ReadBody } from '../http/body.js';
import type { RunWishes } from '../http/council-requests.js';
import { blueprintRequest, builtInRequests } from '../http/council-requests.js';
import type { BuiltRequest, RunIdentity } from '../http/idempotency.js';
import { recordedStart } from '../http/idempotency.js';
import type { HttpContext } from '../http/route.js';
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

/** Refuses a model that is no council. @throws {RequestRefused} 404 */
export async function assertModel(http: HttpContext, model: string): Promise<void> {
  const id = blueprintIdOf(model);
  if (id !== null && (await http.withinDeadline(http.blueprints.find(id))) === null) throw unknownModel(model);
}

export interface ModelStart {
  readonly body: ReadBody<unknown>;
  readonly model: string;
  readonly topic: string;
  readonly caller: Caller;
}

/** A function that starts runs as the start endpoints do. It throws a RequestRefused with 404 for an unknown model. */
export function modelStarts(http: HttpContext): (ctx: RouterContext, start: ModelStart) => Promise<RunRequestedData> {
  const ofBuiltIn = builtInRequests(http);
  const requestOf = async (run: RunIdentity, { model, topic }: ModelStart): Promise<BuiltRequest> => {
    const id = blueprintIdOf(model);
    if (id !== null) await assertModel(http, model);
    const wishes: RunWishes = { inputTopic: topic, godMode: (blueprint) => blueprint.model_options?.god_mode === true };
    return id === null ? ofBuiltIn(run, wishes) : await blueprintRequest(http, run, { id, ...wishes });
  };
  return async (ctx, start) => {
    const { body, caller } = start;
    return await recordedStart(ctx, http, { body, caller, buildRequest: (run) => requestOf(run, start) });
  };
}
