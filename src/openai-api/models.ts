/** GET /v1/models and GET /v1/models/{model}: the councils as models. */
import type { Blueprint, Model } from '../generated/schemas.js';
import { holdPermit, permitsFor } from '../http/concurrency.js';
import { chunkedBody } from '../http/chunked-body.js';
import type { HttpContext, Route } from '../http/route.js';
import { parameterIn } from '../http/route.js';
import { fieldOf } from '../system/untrusted.js';
import { BUILT_IN, blueprintOf, modelOf } from './council-model.js';
import { secondsOf } from './response-object.js';

/** Lists sent at a time; each holds a few records of blueprints in memory. */
const LISTS_AT_A_TIME = 2;
/** Most blueprints in the list, those updated last. Clients show all models at once. */
const MAX_LISTED = 10_000;

const OWNER = 'council-run-service';
const BUILT_IN_MODEL: Model = { id: BUILT_IN, object: 'model', created: 0, owned_by: OWNER, name: 'Built-in council' };

export function modelRoutes(http: HttpContext): readonly Route[] {
  return [listRoute(http), getRoute(http)];
}

function listRoute(http: HttpContext): Route {
  const permits = permitsFor(LISTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/v1/models',
    access: ['read', 'run'],
    name: 'listModels',
    summary: 'Lists the councils as models: the built-in one and every blueprint',
    tag: 'openai',
    success: { status: 200, description: 'The models', schema: 'openai-model-list.json' },
    async handle(ctx, caller) {
      await holdPermit(permits, { http, caller }, ctx.res);
      const { records } = await http.withinDeadline(http.blueprintList({ limit: MAX_LISTED, offset: 0 }));
      return { status: 200, body: chunkedBody(listText(records), { http, response: ctx.res }) };
    },
  };
}

function getRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/v1/models/{model}',
    access: ['read', 'run'],
    name: 'getModel',
    summary: 'Returns a council as a model',
    description: 'The slash in the id of a blueprint is sent as `%2F`, as the OpenAI SDKs do.',
    tag: 'openai',
    success: { status: 200, description: 'The model', schema: 'openai-model.json' },
    async handle(ctx) {
      const blueprint = await blueprintOf(http, parameterIn(ctx, 'model'));
      return { status: 200, body: blueprint === null ? BUILT_IN_MODEL : blueprintModel(blueprint) };
    },
  };
}

async function* listText(batches: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  yield `{"object":"list","data":[${JSON.stringify(BUILT_IN_MODEL)}`;
  for await (const texts of batches) yield texts.map((text) => `,${JSON.stringify(modelIn(text))}`).join('');
  yield ']}';
}

/** @param text the JSON text of a blueprint's record */
function modelIn(text: string): Model {
  const record: unknown = JSON.parse(text);
  const [id, name, createdAt] = ['id', 'name', 'createdAt'].map((field) => String(fieldOf(record, field)));
  return blueprintModel({ id: id ?? '', name: name ?? '', createdAt: createdAt ?? '' });
}

function blueprintModel({ id, name, createdAt }: Pick<Blueprint, 'id' | 'name' | 'createdAt'>): Model {
  return { id: modelOf(id), object: 'model', created: secondsOf(createdAt), owned_by: OWNER, name };
}
