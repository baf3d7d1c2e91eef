/** Saved councils: list, create, read, change, delete, validate, and their versions. */
import { blueprintStream } from '../../blueprint/events.js';
import { warningsOf } from '../../blueprint/validate.js';
import { councilOf } from '../../blueprint/record.js';
import type { RouterContext } from '@koa/router';
import { rolesOf } from '../../council/roles.js';
import type { IsExpected } from '../../blueprint/store.js';
import { outcomeUnknown, blueprintIdIn } from '../route.js';
import { BlueprintUnknown } from '../../blueprint/errors.js';
import type { Blueprint, BlueprintValidation } from '../../generated/schemas.js';
import { BODY_LIMITS, assertRules } from '../../api/validation.js';
import { bodyOf } from '../body.js';
import { assertCouncil } from '../matter.js';
import { IF_MATCH, ifMatch, isKnown, tagged } from '../answer.js';
import type { HttpContext, Route } from '../route.js';
import { chunkedBody } from '../chunked-body.js';
import { linkTo, nextLink, queryOf } from '../query.js';
import { holdPermit, permitsFor, withPermit } from '../concurrency.js';

/** The routes at /api/councils/ that start no run. */
export function blueprintRoutes(http: HttpContext): readonly Route[] {
  return [
    validateRoute(http),
    blueprintListRoute(http),
    createRoute(http),
    getRoute(http),
    blueprintVersionsRoute(http),
    putRoute(http),
    deleteRoute(http),
  ];
}

function validateRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'blueprint-create.json', { isRequired: true, ...BODY_LIMITS });
  return {
    method: 'POST',
    path: '/api/councils/validate',
    access: 'author',
    name: 'validateBlueprint',
    summary: 'Checks a blueprint without saving it',
    tag: 'blueprints',
    body,
    success: { status: 200, description: 'The faults and warnings', schema: 'blueprint-validation.json' },
    async handle(ctx) {
      const draft = await body.read(ctx);
      assertRules(draft);
      await assertCouncil(http, draft, { id: draft.id });
      const issues = await http.withinDeadline(http.blueprints.issuesOf(draft));
      const valid = !issues.some(({ isFault }) => isFault);
      const roles = rolesOf(councilOf(draft));
      const validation: BlueprintValidation = { valid, warnings: warningsOf(issues), roles };
      return { status: 200, body: validation };
    },
  };
}

function createRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'blueprint-create.json', { isRequired: true, ...BODY_LIMITS });
  return {
    method: 'POST',
    path: '/api/councils/',
    access: 'author',
    name: 'createBlueprint',
    summary: 'Creates a blueprint; a graph with faults is saved with warnings',
    tag: 'blueprints',
    body,
    success: { status: 201, description: 'The saved record', schema: 'blueprint.json', headers: ['Location', 'ETag'] },
    problems: [409],
    async handle(ctx, { actor }) {
      const draft = await body.read(ctx);
      assertRules(draft);
      await assertCouncil(http, draft, { id: draft.id });
      const id = draft.id ?? http.system.uuid();
      const blueprint = await http.withinDeadline(
        http.blueprints.create({ ...draft, id }, { actor }),
        outcomeUnknown(blueprintStream(id)),
      );
      http.log.info({ blueprintId: id, actor }, 'blueprint created');
      const headers = { Location: `/api/councils/${id}`, ...tagOf(blueprint, http) };
      return { status: 201, body: blueprint, headers };
    },
  };
}

function getRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/councils/{blueprint_id}',
    access: 'read',
    name: 'getBlueprint',
    summary: 'Returns a blueprint',
    tag: 'blueprints',
    isConditional: true,
    success: { status: 200, description: 'The record', schema: 'blueprint.json' },
    async handle(ctx) {
      const blueprintId = blueprintIdIn(ctx);
      const blueprint = await http.withinDeadline(http.blueprints.find(blueprintId));
      if (blueprint === null) throw new BlueprintUnknown({ blueprintId });
      const headers = tagOf(blueprint, http);
      if (isKnown(ctx, headers)) return { status: 304, body: null, headers };
      return { status: 200, body: blueprint, headers };
    },
  };
}

function putRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'blueprint-update.json', { isRequired: true, ...BODY_LIMITS });
  return {
    method: 'PUT',
    path: '/api/councils/{blueprint_id}',
    access: 'author',
    name: 'updateBlueprint',
    summary: 'Changes the fields of a blueprint that the body names',
    tag: 'blueprints',
    body,
    header: IF_MATCH,
    success: {
      status: 200,
      description: 'The record after the change',
      schema: 'blueprint.json',
      headers: ['ETag'],
    },
    problems: [412],
    async handle(ctx, { actor }) {
      const change = await body.read(ctx);
      assertRules(change);
      const id = blueprintIdIn(ctx);
      const saved = await http.withinDeadline(http.blueprints.find(id));
      await assertCouncil(http, change, saved ?? { id });
      const by = { actor, isExpected: ifMatchOf(ctx, http) };
      const blueprint = await http.withinDeadline(
        http.blueprints.update(id, change, by),
        outcomeUnknown(blueprintStream(id)),
      );
      http.log.info({ blueprintId: id, actor, version: blueprint.version }, 'blueprint updated');
      return { status: 200, body: blueprint, headers: tagOf(blueprint, http) };
    },
  };
}

function deleteRoute(http: HttpContext): Route {
  return {
    method: 'DELETE',
    path: '/api/councils/{blueprint_id}',
    access: 'author',
    name: 'deleteBlueprint',
    summary: 'Deletes a blueprint; its runs stay as they are',
    tag: 'blueprints',
    header: IF_MATCH,
    success: { status: 204, description: 'The blueprint is deleted', schema: null },
    problems: [412],
    async handle(ctx, { actor }) {
      const id = blueprintIdIn(ctx);
      const by = { actor, isExpected: ifMatchOf(ctx, http) };
      await http.withinDeadline(http.blueprints.remove(id, by), outcomeUnknown(blueprintStream(id)));
      http.log.info({ blueprintId: id, actor }, 'blueprint deleted');
      return { status: 204, body: null };
    },
  };
}

/** The ETag: the hash of the record as a JSON value, including its version and times. */
function digestOf(blueprint: Blueprint, { system: { sha256 }, canonical }: HttpContext): string {
  return sha256(canonical(blueprint));
}

function tagOf(blueprint: Blueprint, http: HttpContext): ReturnType<typeof tagged> {
  return tagged(digestOf(blueprint, http));
}

/** The condition of If-Match on the current blueprint, or null without one. */
function ifMatchOf(ctx: RouterContext, http: HttpContext): IsExpected | null {
  const matches = ifMatch(ctx);
  return matches === null ? null : (current) => matches(digestOf(current, http));
}

/** Pages of versions at a time; each holds at most a few megabytes. */
const VERSION_PAGES_AT_A_TIME = 4;

/** GET /api/councils/{blueprint_id}/versions. */
function blueprintVersionsRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'blueprint-versions-query.json');
  const permits = permitsFor(VERSION_PAGES_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/councils/{blueprint_id}/versions',
    access: 'read',
    name: 'listBlueprintVersions',
    summary: 'Lists the versions of a blueprint, newest first, with the key that saved each',
    description: 'Also lists the versions of a deleted blueprint; `deleted` of the last one says when and by whom.',
    tag: 'blueprints',
    query,
    success: {
      status: 200,
      description: 'A page of the versions',
      schema: 'blueprint-version-list.json',
      headers: ['Link'],
    },
    async handle(ctx, caller) {
      const range = query.read(ctx);
      const blueprintId = blueprintIdIn(ctx);
      const page = await withPermit(permits, { http, caller }, () => http.blueprints.versions(blueprintId, range));
      if (page === null) throw new BlueprintUnknown({ blueprintId });
      const { versions, hasMore } = page;
      const last = versions.at(-1);
      const headers = hasMore && last !== undefined ? linkTo(ctx, { limit: range.limit, before: last.seq }) : {};
      return { status: 200, body: versions, headers };
    },
  };
}

// The list may have hundreds of megabytes, so it is never in memory as a whole. The service sends the stored JSON of
// the records from the views as fast as the client reads.

/** Lists sent at a time; each holds a few records in memory. */
const LISTS_AT_A_TIME = 2;

/** GET /api/councils/. */
function blueprintListRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'blueprint-query.json');
  const permits = permitsFor(LISTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/councils/',
    access: 'read',
    name: 'listBlueprints',
    summary: 'Lists the blueprints, newest update first',
    tag: 'blueprints',
    query,
    success: { status: 200, description: 'A page of the blueprints', schema: 'blueprint-list.json', headers: ['Link'] },
    async handle(ctx, caller) {
      const page = query.read(ctx);
      await holdPermit(permits, { http, caller }, ctx.res);
      const { records, hasMore } = await http.withinDeadline(http.blueprintList(page));
      const headers = hasMore ? nextLink(ctx, page) : {};
      return { status: 200, body: chunkedBody(jsonList(records), { http, response: ctx.res }), headers };
    },
  };
}

/** JSON texts as one JSON list. */
async function* jsonList(batches: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  let before = '[';
  for await (const texts of batches) {
    if (texts.length === 0) continue;
    yield before + texts.join(',');
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}
