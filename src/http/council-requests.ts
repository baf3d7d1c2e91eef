/** Requests of runs of the built-in council and of saved blueprints, as the doors to the service start them. */
import { compileBlueprint } from '../blueprint/compile.js';
import { BlueprintUnknown } from '../blueprint/errors.js';
import { fixedGraph } from '../council/fixed-graph.js';
import type { Blueprint, Budget } from '../generated/schemas.js';
import { buildRunRequest, frozenGraph } from '../run/request.js';
import { budgetOf } from './budget.js';
import type { BuiltRequest, RunIdentity } from './idempotency.js';
import type { HttpContext } from './route.js';

/** What a client asks of a run. */
export interface RunWishes {
  readonly inputTopic: string;
  /** Whether it runs in God Mode, which the built-in council ignores. */
  readonly godMode: (blueprint: Blueprint) => boolean;
  readonly budget?: Budget | undefined;
}

/** A function that builds requests of the built-in council. */
export function builtInRequests({
  nodeDefaults,
  system,
}: Pick<HttpContext, 'nodeDefaults' | 'system'>): (run: RunIdentity, wishes: RunWishes) => BuiltRequest {
  const council = frozenGraph(fixedGraph(nodeDefaults), system.sha256);
  return (run, { inputTopic, budget }) => {
    const parameters = { ...run, inputTopic, godMode: false, budget: budgetOf(budget) };
    return { request: buildRunRequest({ ...council, ...parameters, blueprint: null }), failure: null };
  };
}

/**
 * Freezes the current blueprint into the run, so that later changes do not affect the run.
 *
 * @throws {BlueprintUnknown}
 */
export async function blueprintRequest(
  http: HttpContext,
  run: RunIdentity,
  { id, inputTopic, godMode, budget }: RunWishes & { readonly id: string },
): Promise<BuiltRequest> {
  const blueprint = await http.blueprints.find(id);
  if (blueprint === null) throw new BlueprintUnknown({ blueprintId: id });
  const compiled = compileBlueprint(blueprint, http.nodeDefaults);
  const request = buildRunRequest({
    ...run,
    inputTopic,
    godMode: godMode(blueprint),
    blueprint: { id: blueprint.id, name: blueprint.name },
    budget: budgetOf(budget, blueprint.budget),
    ...frozenGraph(compiled.graph, http.system.sha256),
  });
  return { request, failure: compiled.isRunnable ? null : compiled.failure };
}
