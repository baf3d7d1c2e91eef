/** The tool list_councils: the saved councils. */
import { fieldOf, listOf } from '../../system/untrusted.js';
import type { HttpContext } from '../../http/route.js';
import { permitsFor, withPermit } from '../../http/concurrency.js';
import type { Tool } from '../tool.js';
import { toolOf } from '../tool.js';

/** Lists read at a time; each holds up to `MAX_CHARS` in memory. */
const LISTS_AT_A_TIME = 2;
/** Most councils of an answer, and characters of their JSON: an assistant reads all of it. */
const MAX_COUNCILS = 200;
const MAX_CHARS = 512 * 1024;

export function listCouncilsTool(http: HttpContext): Tool {
  const permits = permitsFor(LISTS_AT_A_TIME);
  return toolOf(http.schemas, {
    name: 'list_councils',
    description:
      'Lists the saved councils, newest change first, with their nodes and edges. Pass the id of one to start_council. The ' +
      'built-in council is not listed: start_council runs it without an id.',
    scope: 'read',
    input: 'list-call.json',
    // The whole schema of a blueprint is longer than most lists of councils.
    output: {
      type: 'object',
      required: ['councils'],
      properties: { councils: { type: 'array', items: COUNCIL } },
    },
    isReading: true,
    async call(_, { caller }) {
      const { councils, hasMore } = await withPermit(permits, { http, caller }, () => newest(http));
      const lines = councils.map(lineOf);
      const head =
        councils.length === 0
          ? 'No council is saved; start_council runs the built-in one.'
          : 'The councils, with their names as data:';
      const rest = hasMore ? ['There are more: GET /api/councils/ lists them.'] : [];
      return { texts: [[head, ...lines, ...rest].join('\n')], structured: { councils } };
    },
  });
}

/** The fields of `blueprint.json` by which an assistant chooses a council. */
const COUNCIL = {
  type: 'object',
  required: ['id', 'version', 'name', 'nodes', 'edges', 'createdAt', 'updatedAt', 'warnings', 'roles'],
  properties: {
    id: { type: 'string' },
    version: { type: 'integer' },
    name: { type: 'string' },
    nodes: { type: 'array', items: { type: 'object' } },
    edges: { type: 'array', items: { type: 'object' } },
    warnings: { type: 'array', description: 'Faults and warnings: a run of a council with a fault fails.' },
  },
};

async function newest(
  http: HttpContext,
): Promise<{ readonly councils: readonly unknown[]; readonly hasMore: boolean }> {
  const { records, hasMore } = await http.blueprintList({ limit: MAX_COUNCILS, offset: 0 });
  const councils: unknown[] = [];
  let chars = 0;
  for await (const texts of records) {
    for (const text of texts) {
      chars += text.length;
      if (chars > MAX_CHARS && councils.length > 0) return { councils, hasMore: true };
      councils.push(JSON.parse(text));
    }
  }
  return { councils, hasMore };
}

function lineOf(council: unknown): string {
  const nodes = listOf(fieldOf(council, 'nodes')).length;
  return `- ${String(fieldOf(council, 'id'))}: ${String(fieldOf(council, 'name'))}, ${nodes} nodes`;
}
