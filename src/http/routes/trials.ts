/** A council that is tried before it is saved: by the offline model, whatever the service is set to. */
import { compileBlueprint } from '../../blueprint/compile.js';
import { MAX_BLUEPRINT_BYTES, councilOf, sentBytes } from '../../blueprint/record.js';
import type { Graph, TryRequest } from '../../generated/schemas.js';
import { frozenGraph, requestedRun } from '../../run/request.js';
import { RequestRefused } from '../../api/problems.js';
import { BODY_LIMITS, assertRules } from '../../api/validation.js';
import { bodyOf } from '../body.js';
import type { Beginning, RunKey } from '../idempotency.js';
import type { HttpContext, Route } from '../route.js';
import { startingRoute } from './runs.js';

/** Longest topic in bytes, each of its characters escaped, beside the council. */
const TOPIC_BYTES = 10_000 * 12;

/** POST /api/councils/try. */
export function trialRoute(http: HttpContext): Route {
  const lists = { ...BODY_LIMITS, maxBytes: BODY_LIMITS.maxBytes + TOPIC_BYTES };
  return startingRoute(http, {
    path: '/api/councils/try',
    isAlsoId: true,
    access: 'run',
    name: 'tryBlueprint',
    summary: 'Starts a run of a council that is not saved, with the offline model at each node',
    description: 'No language model is asked, whatever the nodes name; a council with faults fails by name.',
    body: bodyOf(http.schemas, 'try-request.json', { isRequired: true, lists }),
    begin: (run, request) => frozenTrial(http, run, request),
  });
}

/** @throws {RequestRefused} 422 for what could not be saved either, 413 */
function frozenTrial(http: HttpContext, run: RunKey, request: TryRequest): Beginning {
  const { name = 'Untitled', nodes, edges = [], approvals } = request;
  assertRules({ nodes });
  const council = councilOf({ name, nodes, edges, ...(approvals !== undefined && { approvals }) });
  assertSize(sentBytes(council));
  const compiled = compileBlueprint({ id: name, ...council }, http.nodeDefaults);
  const graph = byModel(compiled.graph, http.offlineModel);
  const requested = requestedRun({
    ...run,
    inputTopic: request.input_topic,
    godMode: request.god_mode ?? false,
    blueprint: { id: null, name },
    ...frozenGraph(graph, http.system.sha256),
  });
  return { requested, failure: compiled.isRunnable ? null : compiled.failure };
}

/** Frozen so, it holds on every instance, after a restart and in forks. */
function byModel(graph: Graph, model: string): Graph {
  return { ...graph, nodes: graph.nodes.map((node) => ({ ...node, model })) };
}

/** @throws {RequestRefused} 413 */
function assertSize(bytes: number): void {
  if (bytes <= MAX_BLUEPRINT_BYTES) return;
  const detail = `The council is too large: ${bytes} bytes, at most ${MAX_BLUEPRINT_BYTES} could be saved`;
  throw new RequestRefused(detail, { status: 413 });
}
