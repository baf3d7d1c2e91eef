/** Diagrams of a run or a council, as JSON or as Mermaid text: the provenance of drafts, and the statechart. */
import type { RouterContext } from '@koa/router';
import { chartDiagram } from '../../audit/diagrams.js';
import { councilChart, runChart } from '../../audit/chart.js';
import { genealogyDiagram } from '../../audit/diagrams.js';
import { compileWithCouncils, innerCouncils } from '../../blueprint/councils.js';
import { BlueprintUnknown } from '../../blueprint/errors.js';
import { RunUnknown } from '../../run/errors.js';
import type { Answer } from '../answer.js';
import { beyondTheEnd } from './audit.js';
import { RequestRefused } from '../../api/problems.js';
import { queryOf } from '../query.js';
import type { Permits } from '../concurrency.js';
import { withPermit, permitsFor } from '../concurrency.js';
import type { HttpContext, Route } from '../route.js';
import { blueprintIdIn, runIdIn } from '../route.js';

const MERMAID = 'text/vnd.mermaid';
const AS_MERMAID = { [MERMAID]: { description: 'A Mermaid diagram; also with `format=mermaid`' } };

/** Diagrams at a time; each reads a whole record. */
const RUNS_AT_A_TIME = 4;

/** GET /api/runs/{run_id}/genealogy and …/chart, GET /api/councils/{blueprint_id}/chart. */
export function diagramRoutes(http: HttpContext): readonly Route[] {
  const permits = permitsFor(RUNS_AT_A_TIME);
  return [genealogyRoute(http, permits), runChartRoute(http, permits), councilChartRoute(http)];
}

function genealogyRoute(http: HttpContext, permits: Permits): Route {
  const query = queryOf(http.schemas, 'diagram-query.json');
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/genealogy',
    access: 'read',
    name: 'getGenealogy',
    summary: 'Returns the drafts and feedback that led to each draft, the scores, and human decisions',
    tag: 'audit',
    query,
    success: {
      status: 200,
      description: 'The genealogy, with each text as hash, length and first line',
      schema: 'genealogy.json',
      alsoAs: AS_MERMAID,
    },
    async handle(ctx, caller) {
      const form = formOf(ctx, query.read(ctx));
      const runId = runIdIn(ctx);
      const genealogy = await withPermit(permits, { http, caller }, () => http.genealogy(runId));
      if (genealogy === null) throw new RunUnknown({ runId });
      if (form === 'mermaid') return mermaid(genealogyDiagram(genealogy));
      return { status: 200, body: genealogy };
    },
  };
}

function runChartRoute(http: HttpContext, permits: Permits): Route {
  const query = queryOf(http.schemas, 'chart-query.json');
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/chart',
    access: 'read',
    name: 'getRunChart',
    summary: 'Returns the statechart of a run and its state after one of its events',
    tag: 'audit',
    query,
    success: { status: 200, description: CHART, schema: 'chart.json', alsoAs: AS_MERMAID },
    async handle(ctx, caller) {
      const parameters = query.read(ctx);
      const form = formOf(ctx, parameters);
      const runId = runIdIn(ctx);
      const run = await withPermit(permits, { http, caller }, () => http.queries.folded(runId, parameters.at));
      if (run === null) throw new RunUnknown({ runId });
      if (parameters.at !== undefined && run.head.seq < parameters.at) throw beyondTheEnd(run.head.seq);
      const chart = runChart(run);
      return form === 'json' ? { status: 200, body: chart } : mermaid(chartDiagram(chart, run.plan.graph));
    },
  };
}

function councilChartRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'diagram-query.json');
  return {
    method: 'GET',
    path: '/api/councils/{blueprint_id}/chart',
    access: 'read',
    name: 'getCouncilChart',
    summary: 'Returns the statechart of the runs of a blueprint',
    tag: 'blueprints',
    query,
    success: { status: 200, description: CHART, schema: 'chart.json', alsoAs: AS_MERMAID },
    problems: [409],
    async handle(ctx) {
      const form = formOf(ctx, query.read(ctx));
      const blueprintId = blueprintIdIn(ctx);
      const find = (id: string) => http.withinDeadline(http.blueprints.find(id));
      const blueprint = await find(blueprintId);
      if (blueprint === null) throw new BlueprintUnknown({ blueprintId });
      const compiled = compileWithCouncils(blueprint, await innerCouncils(blueprint, find), http.nodeDefaults);
      if (!compiled.isRunnable) throw new RequestRefused(compiled.failure.error, { status: 409 });
      const chart = councilChart(compiled.graph, { blueprint_id: blueprintId, version: blueprint.version });
      return form === 'json' ? { status: 200, body: chart } : mermaid(chartDiagram(chart, compiled.graph));
    },
  };
}

const CHART = "The configuration of the machine, as XState's createMachine accepts it";

type Form = 'json' | 'mermaid';

/** The query's `format` wins over the Accept header; clients that accept both get JSON. */
function formOf(ctx: RouterContext, { format }: { readonly format?: Form }): Form {
  ctx.vary('Accept');
  return format ?? (ctx.accepts('application/json', MERMAID) === MERMAID ? 'mermaid' : 'json');
}

function mermaid(body: string): Answer {
  return { status: 200, body, type: MERMAID };
}
