/** GET /v1/models: the councils as models. */
import { holdPermit, permitsFor } from '../http/concurrency.js';
import { chunkedBody } from '../http/chunked-body.js';
import type { HttpContext, Route } from '../http/route.js';
import { fieldOf } from '../system/untrusted.js';
import { BUILT_IN, modelOf } from './council-model.js';
import { secondsOf } from './response-object.js';

/** Lists sent at a time; each holds a few records of blueprints in memory. */
const LISTS_AT_A_TIME = 2;
/** Most blueprints in the list, those updated last. Clients show all models at once. */
const MAX_LISTED = 10_000;

const OWNER = 'council-run-service';

export function modelsRoute(http: HttpContext): Route {
  const permits = permitsFor(LISTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/v1/models',
    access: ['read', 'run'],
    name: 'listModels',
    summary: 'Lists the councils as models: the built-in one and every blueprint',
    tag: 'openai',
    success: { status: 200, description: 'The models', schema: 'openai-model-list.json' },
    async handle(ctx) {
      await holdPermit(permits, http, ctx.res);
      const { records } = await http.withinDeadline(http.blueprintList({ limit: MAX_LISTED, offset: 0 }));
      return { status: 200, body: chunkedBody(listText(records), { http, response: ctx.res }) };
    },
  };
}

async function* listText(batches: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  yield `{"object":"list","data":[${modelText({ id: BUILT_IN, name: 'Built-in council', created: 0 })}`;
  for await (const texts of batches) yield texts.map((text) => `,${modelText(blueprintModel(text))}`).join('');
  yield ']}';
}

interface ListedModel {
  readonly id: string;
  readonly name: string;
  readonly created: number;
}

/** @param text the JSON text of a blueprint's record */
function blueprintModel(text: string): ListedModel {
  const record: unknown = JSON.parse(text);
  const [id, name, createdAt] = ['id', 'name', 'createdAt'].map((field) => String(fieldOf(record, field)));
  return { id: modelOf(id ?? ''), name: name ?? '', created: secondsOf(createdAt ?? '') };
}

function modelText({ id, name, created }: ListedModel): string {
  return JSON.stringify({ id, object: 'model', created, owned_by: OWNER, name });
}
