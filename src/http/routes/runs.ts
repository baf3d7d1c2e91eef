/** Runs: start, poll and cancel them. */
import { fixedGraph } from '../../council/fixed-graph.js';
import { BlueprintUnknown } from '../../blueprint/errors.js';
import { RunUnknown } from '../../run/errors.js';
import { MAX_BLUEPRINT_BYTES, councilOf, sentBytes } from '../../blueprint/record.js';
import { RequestRefused } from '../../api/problems.js';
import { BODY_LIMITS, assertBudget, assertRules } from '../../api/validation.js';
import type { RunSummary } from '../../projections/run-summary.js';
import { summaryOf } from '../../projections/run-summary.js';
import type { Freezing } from '../../run/request.js';
import { withOutput } from '../../graph/output-node.js';
import { frozenGraph, buildRunRequest } from '../../run/request.js';
import type { BodyReader } from '../body.js';
import { bodyOf, startBodyBytes } from '../body.js';
import type { Matter } from '../matter.js';
import { assertCouncil } from '../matter.js';
import { budgetOf, startRunOnce } from '../starts.js';
import type { HttpContext, Route } from '../route.js';
import { blueprintIdIn, runIdIn, outcomeUnknown } from '../route.js';
import type { RunIdentity, BuiltRequest } from '../starts.js';
import { decisionResult, runResult } from '../../api/serializers/runs.js';
import { assertScope, mayRead } from '../../api/access/authentication.js';
import type { Caller } from '../../keys/caller.js';
import { failureOf } from '../../run/state.js';
import type { RouterContext } from '@koa/router';
import { alwaysPauses, compileWithCouncils, innerCouncils } from '../../blueprint/councils.js';
import { withNested } from '../../graph/nested.js';
import type { Graph, Reservation, RunRequest, RunResult, TryRequest } from '../../generated/schemas.js';
import { neededBudget } from '../../run/frontier/start.js';
import { runStream } from '../../run/events.js';

/** POST /api/councils/run, GET /api/councils/run/{run_id} and POST /api/councils/run/{run_id}/cancel. */
export function runRoutes(http: HttpContext): readonly Route[] {
  return [builtInCouncilRoute(http), pollRoute(http), cancelRoute(http)];
}

function builtInCouncilRoute(http: HttpContext): Route {
  const build = builtInCouncil(http);
  return startRunRoute(http, {
    path: '/api/councils/run',
    access: 'run',
    name: 'startRun',
    summary: 'Starts a run of the built-in council',
    description:
      'A master writes, a critic scores. Below 8 the master revises; from 8 on a writer finishes. The answer comes when ' +
      'the run is recorded.',
    body: runRequestBody(http),
    buildRequest: build,
  });
}

/** A function that builds the requests of runs of the built-in council. */
export function builtInCouncil(http: HttpContext): (run: RunIdentity, body: RunRequest) => BuiltRequest {
  const graph = fixedGraph(http.nodeDefaults);
  const freezing = freezingOf(http);
  const council = frozenGraph(graph, freezing);
  return (run, { input_topic: inputTopic, material, documents, god_mode: godMode = false, ...options }) => {
    const { model, output_schema: schema } = options;
    const budget = budgetOf(options.budget);
    const isChanged = model !== undefined || schema !== undefined;
    const frozen = isChanged ? frozenGraph(withOutput(withDefaultModel(graph, model), schema), freezing) : council;
    const request = buildRunRequest({
      ...frozen,
      inputTopic,
      material,
      documents,
      godMode,
      blueprint: null,
      budget,
      ...run,
    });
    return { request, failure: null };
  };
}

interface StartRouteOptions<Body> extends Pick<
  Route,
  'path' | 'isAlsoId' | 'access' | 'name' | 'summary' | 'description'
> {
  readonly body: BodyReader<Body>;
  readonly buildRequest: (run: RunIdentity, body: Body, from: StartedFrom) => BuiltRequest | Promise<BuiltRequest>;
}

/** The request of a start, and its caller. */
interface StartedFrom {
  readonly ctx: RouterContext;
  readonly caller: Caller;
}

function runRequestBody(http: HttpContext): BodyReader<RunRequest> {
  return bodyOf(http, 'run-request.json', { isRequired: true, maxBytes: startBodyBytes(http.maxMaterialBytes) });
}

/** A route that starts a run; every kind of start has the same key and answer. */
function startRunRoute<Body extends Pick<RunRequest, 'budget'> & Matter>(
  http: HttpContext,
  { buildRequest, body: reader, ...about }: StartRouteOptions<Body>,
): Route {
  return {
    ...about,
    method: 'POST',
    tag: 'runs',
    body: reader,
    isKeyed: true,
    success: {
      status: 202,
      description: 'The run is recorded and continues in the background',
      schema: 'run-start.json',
    },
    async handle(ctx, caller) {
      const body = await reader.readToCompare(ctx);
      assertBudget(body.value.budget);
      return await startRunOnce(ctx, http, {
        body,
        caller,
        matter: body.value,
        buildRequest: (run) => buildRequest(run, body.value, { ctx, caller }),
      });
    },
  };
}

function pollRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/councils/run/{run_id}',
    access: 'read',
    name: 'getRun',
    summary: 'Returns the status and result of a run',
    tag: 'runs',
    success: { status: 200, description: 'The run', schema: 'run-result.json' },
    async handle(ctx) {
      return { status: 200, body: await resultOf(http, await foundRun(http, runIdIn(ctx))) };
    },
  };
}

/** @throws {RunUnknown} */
export async function foundRun(http: HttpContext, runId: string): Promise<RunSummary> {
  const run = await http.withinDeadline(http.queries.find(runId));
  if (run === null) throw new RunUnknown({ runId });
  return run;
}

/** A run as a poll shows it. */
export async function resultOf(http: HttpContext, run: RunSummary): Promise<RunResult> {
  return runResult(run, await neededBy(http, run));
}

/** What a run needs to go on, or null if it is not paused for its budget. */
async function neededBy(http: HttpContext, { id, pauseReason }: RunSummary): Promise<Reservation | null> {
  if (pauseReason !== 'budget') return null;
  const run = await http.withinDeadline(http.queries.state(id));
  return run && neededBudget(run, http.registry.decisionContext());
}

function cancelRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'cancel-request.json', { isRequired: false });
  return {
    method: 'POST',
    path: '/api/councils/run/{run_id}/cancel',
    access: 'run',
    name: 'cancelRun',
    summary: 'Cancels an unfinished run, which fails with "Cancelled by the user"',
    tag: 'runs',
    body,
    success: { status: 200, description: 'The cancelled run', schema: 'run-result.json' },
    problems: [409],
    async handle(ctx, caller) {
      const { actor } = caller;
      await body.read(ctx);
      const runId = runIdIn(ctx);
      const run = await http.withinDeadline(http.registry.cancel(runId, actor), outcomeUnknown(runStream(runId)));
      http.log.info({ runId, actor }, 'run cancelled');
      if (mayRead(caller, run.request)) return { status: 200, body: runResult(summaryOf(run)) };
      // A caller that may not read the run sees the effect alone, as after a decision.
      return { status: 200, body: decisionResult(runId, { status: 'failed', error: failureOf(run)?.error ?? null }) };
    },
  };
}

// Runs of blueprints: the first event freezes the blueprint.

/** POST /api/councils/{blueprint_id}/run and POST /api/councils/try. */
export function blueprintRunRoutes(http: HttpContext): readonly Route[] {
  return [
    startRunRoute(http, {
      path: '/api/councils/{blueprint_id}/run',
      access: 'run',
      name: 'startBlueprintRun',
      summary: 'Starts a run of a blueprint; with faults in the blueprint the run fails and names them',
      body: runRequestBody(http),
      buildRequest: (run, body, { ctx }) => buildBlueprintRequest(http, { run, body, blueprintId: blueprintIdIn(ctx) }),
    }),
    trialRoute(http),
  ];
}

/** Freezes the current blueprint into the run, so that later changes do not affect the run. */
export async function buildBlueprintRequest(
  http: HttpContext,
  { run, body, blueprintId }: { readonly run: RunIdentity; readonly body: RunRequest; readonly blueprintId: string },
): Promise<BuiltRequest> {
  const blueprint = await http.blueprints.find(blueprintId);
  if (blueprint === null) throw new BlueprintUnknown({ blueprintId });
  const inner = await innerCouncils(blueprint, (id) => http.blueprints.find(id));
  const compiled = compileWithCouncils(blueprint, inner, http.nodeDefaults);
  const schema = body.output_schema ?? blueprint.output_schema;
  const request = buildRunRequest({
    ...run,
    inputTopic: body.input_topic,
    material: body.material,
    documents: body.documents ?? blueprint.documents,
    godMode: alwaysPauses(blueprint, inner) || body.god_mode === true,
    blueprint: { id: blueprint.id, name: blueprint.name },
    budget: budgetOf(body.budget, blueprint.budget),
    ...frozenGraph(withOutput(withDefaultModel(compiled.graph, body.model), schema), freezingOf(http)),
  });
  return { request, failure: compiled.isRunnable ? null : compiled.failure };
}

// Trials of unsaved councils by the offline model.

function trialRoute(http: HttpContext): Route {
  const maxBytes = BODY_LIMITS.maxBytes + startBodyBytes(http.maxMaterialBytes);
  const limits = { ...BODY_LIMITS, maxBytes };
  return startRunRoute(http, {
    path: '/api/councils/try',
    isAlsoId: true,
    access: 'run',
    name: 'tryBlueprint',
    summary: 'Starts a run of an unsaved council with the offline model',
    description:
      'No language model is called, also if nodes name one. With faults in the council the run fails and names them. ' +
      'With the PDF reader the key also needs `read`. The run pauses only if `god_mode` asks for it.',
    body: bodyOf(http, 'try-request.json', { isRequired: true, ...limits }),
    buildRequest: async (run, body, { caller }) => {
      // The caller writes the council, so its PDF reader shows the caller any document.
      if (body.nodes.some(({ tools }) => tools?.pdfReader === true)) assertScope(caller, 'read');
      await assertCouncil(http, { nodes: body.nodes });
      return await buildTrialRequest(http, run, body);
    },
  });
}

/** @throws {RequestRefused} 422, 413 for a council that could not be saved */
async function buildTrialRequest(http: HttpContext, run: RunIdentity, body: TryRequest): Promise<BuiltRequest> {
  const { name = 'Untitled', nodes, edges = [], entry, approvals } = body;
  assertRules({ nodes });
  const council = councilOf({
    name,
    nodes,
    edges,
    ...(approvals && { approvals }),
    ...(entry !== undefined && { entry }),
  });
  assertSize(sentBytes(council));
  const inner = await innerCouncils(council, (id) => http.blueprints.find(id));
  const compiled = compileWithCouncils({ id: name, ...council }, inner, http.nodeDefaults);
  const offline = withNested(compiled.graph, (each) => byModel(each, http.offlineModel));
  const graph = withOutput(offline, body.output_schema);
  const request = buildRunRequest({
    ...run,
    inputTopic: body.input_topic,
    material: body.material,
    documents: body.documents,
    godMode: body.god_mode ?? false,
    blueprint: { id: null, name },
    budget: budgetOf(body.budget),
    ...frozenGraph(graph, freezingOf(http)),
  });
  return { request, failure: compiled.isRunnable ? null : compiled.failure };
}

/** The graph with one model for all nodes. The run freezes it, so it also applies after a restart and in forks. */
function byModel(graph: Graph, model: string): Graph {
  return {
    ...graph,
    nodes: graph.nodes.map(({ fallbacks: _, members, ...node }) => ({
      ...node,
      ...(members !== undefined && { members: members.map(({ model: __, fallbacks: ___, ...member }) => member) }),
      model,
    })),
  };
}

function freezingOf({ fullName, system: { sha256 } }: HttpContext): Freezing {
  return { fullName, sha256 };
}

/** The graph with a model for the nodes without their own. */
function withDefaultModel(graph: Graph, model: string | undefined): Graph {
  if (model === undefined) return graph;
  return withNested(graph, (each) => ({ ...each, nodes: each.nodes.map((node) => ({ model, ...node })) }));
}

/** @throws {RequestRefused} 413 */
function assertSize(bytes: number): void {
  if (bytes <= MAX_BLUEPRINT_BYTES) return;
  const detail = `The council is too large: ${bytes} bytes, the limit is ${MAX_BLUEPRINT_BYTES}`;
  throw new RequestRefused(detail, { status: 413 });
}
