/**
 * The list of saved councils. It may hold hundreds of megabytes, so it is never there as a whole: records go from the
 * stored views to the client as they are kept, as fast as it reads.
 */
import { nextLink } from './list-page.js';
import { sentInPieces } from './pieces.js';
import { queryOf } from './query.js';
import { crowded, roomFor } from './room.js';
import type { Edge, Route } from './route.js';
import { whenClosed } from './when-closed.js';

/** Lists sent at a time; each holds a few records in memory. */
const LISTS_AT_A_TIME = 2;

/** GET /api/councils/. */
export function blueprintListRoute(edge: Edge): Route {
  const query = queryOf(edge.schemas, 'blueprint-query.json');
  const room = roomFor(LISTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/councils/',
    name: 'listBlueprints',
    summary: 'Lists the saved councils, newest update first',
    tag: 'blueprints',
    query,
    success: { status: 200, description: 'A page of the blueprints', schema: 'blueprint-list.json', headers: ['Link'] },
    problems: [503],
    async handle(ctx) {
      const page = query.read(ctx);
      const entered = room.enter().then((leave) => whenClosed(ctx.res, leave));
      await edge.inTime(entered, crowded);
      const { records, hasMore } = await edge.inTime(edge.blueprintList(page));
      const headers = hasMore ? nextLink(ctx, page) : {};
      return { status: 200, body: sentInPieces(jsonList(records), { edge, response: ctx.res }), headers };
    },
  };
}

/** JSON texts as one JSON list. */
async function* jsonList(pieces: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  let before = '[';
  for await (const texts of pieces) {
    if (texts.length === 0) continue;
    yield before + texts.join(',');
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}
