/** The versions of a saved council. */
import { BlueprintUnknown } from '../../blueprint/errors.js';
import { permitsFor, withPermit } from '../concurrency.js';
import { linkTo, queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { blueprintIdIn } from '../route.js';

/** Pages made at a time; each holds a few megabytes of records at most. */
const PAGES_AT_A_TIME = 4;

/** GET /api/councils/{blueprint_id}/versions. */
export function blueprintVersionsRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'blueprint-versions-query.json');
  const permits = permitsFor(PAGES_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/councils/{blueprint_id}/versions',
    access: 'read',
    name: 'listBlueprintVersions',
    summary: 'Lists every save of a council, newest first, each whole and with who saved it',
    description: 'Also of one that is deleted: `deleted` of its last version tells when and by whom.',
    tag: 'blueprints',
    query,
    success: {
      status: 200,
      description: 'A page of the versions',
      schema: 'blueprint-version-list.json',
      headers: ['Link'],
    },
    problems: [503],
    async handle(ctx) {
      const range = query.read(ctx);
      const blueprintId = blueprintIdIn(ctx);
      const page = await withPermit(permits, http, () => http.blueprints.versions(blueprintId, range));
      if (page === null) throw new BlueprintUnknown({ blueprintId });
      const { versions, hasMore } = page;
      const last = versions.at(-1);
      const headers = hasMore && last !== undefined ? linkTo(ctx, { limit: range.limit, before: last.seq }) : {};
      return { status: 200, body: versions, headers };
    },
  };
}
