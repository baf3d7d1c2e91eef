import { expect } from 'chai';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { openSchemas } from '../../src/api/schemas.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { pdfWith } from '../support/upload-client.js';

type Json = Record<string, unknown>;

const ROUTES: Readonly<Record<string, readonly string[]>> = {
  '/api/health': ['get'],
  '/api/health/ready': ['get'],
  '/api/councils/run': ['post'],
  '/api/councils/run/{run_id}': ['get'],
  '/api/councils/run/{run_id}/cancel': ['post'],
  '/api/councils/validate': ['post'],
  '/api/councils': ['get', 'post'],
  '/api/councils/{blueprint_id}': ['get', 'put', 'delete'],
  '/api/councils/{blueprint_id}/run': ['post'],
  '/api/councils/run/{run_id}/approve': ['post'],
  '/api/councils/run/{run_id}/state': ['get'],
  '/api/councils/upload-pdf': ['post'],
  '/api/documents': ['get'],
  '/api/documents/{document_id}': ['get', 'delete'],
  '/api/documents/{document_id}/verify': ['get'],
  '/api/about': ['get'],
  '/api/prices': ['get'],
  '/api/oversight': ['get'],
  '/api/overview': ['get'],
  '/api/estimate': ['get'],
  '/api/runs/counts': ['get'],
  '/api/runs/export': ['get'],
  '/api/runs': ['get'],
  '/api/runs/{run_id}': ['get', 'delete'],
  '/api/runs/{run_id}/events': ['get'],
  '/api/runs/{run_id}/stream': ['get'],
  '/api/feed': ['get'],
  '/api/approvals': ['get'],
  '/api/approvals/stream': ['get'],
  '/api/runs/{run_id}/state': ['get'],
  '/api/runs/{run_id}/verify': ['get'],
  '/api/runs/{run_id}/proof': ['get'],
  '/api/ledger': ['get'],
  '/ledger/checkpoint': ['get'],
  '/ledger/tile/{level}/{tile}': ['get'],
  '/api/runs/{run_id}/fork': ['post'],
  '/api/runs/{run_id}/genealogy': ['get'],
  '/api/runs/{run_id}/material': ['get'],
  '/api/runs/{run_id}/deliberation': ['get'],
  '/api/runs/{run_id}/draft': ['get'],
  '/api/runs/{run_id}/sources': ['get'],
  '/api/runs/{run_id}/next': ['get'],
  '/api/runs/{run_id}/prompt': ['get'],
  '/api/runs/{run_id}/chart': ['get'],
  '/api/councils/{blueprint_id}/chart': ['get'],
  '/api/councils/{blueprint_id}/versions': ['get'],
  '/api/councils/try': ['post'],
  '/api/documents/search': ['get'],
  '/api/documents/{document_id}/chunks': ['get'],
  '/api/backup': ['get', 'post'],
  '/api/keys': ['get', 'post'],
  '/api/keys/events': ['get'],
  '/api/keys/{name}': ['delete'],
  '/api/session': ['post', 'get', 'delete'],
  '/api/tickets': ['post'],
  '/api/asyncapi.json': ['get'],
  '/api/openapi.json': ['get'],
  '/api/providers': ['get'],
  '/api/examples': ['get'],
  '/metrics': ['get'],
  '/v1/models': ['get'],
  '/v1/models/{model}': ['get'],
  '/v1/chat/completions': ['post'],
  '/v1/responses': ['post'],
  '/v1/responses/{response_id}': ['get'],
  '/v1/responses/{response_id}/cancel': ['post'],
  '/mcp': ['post'],
  '/api/webhooks': ['get', 'post'],
  '/api/webhooks/{webhook_id}': ['delete'],
  '/api/webhooks/{webhook_id}/rotate': ['post'],
  '/api/webhooks/{webhook_id}/deliveries': ['get'],
  '/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry': ['post'],
};

describe('GET /api/openapi.json', () => {
  let service: RunningService;
  let rest: RestClient;
  let ajv: Ajv2020;
  let document: unknown;

  before(async () => {
    service = await startService({ model: scriptedModel() });
    rest = restClient(service.url);
    document = JSON.parse((await rest.get('/api/openapi.json')).text);
    ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(record(document), 'document');
  });
  after(() => service.stop());

  it('is OpenAPI 3.1 with a title and a version', () => {
    expect(at('/openapi')).to.match(/^3\.1\.\d+$/);
    expect(at('/info/title')).to.be.a('string');
    expect(at('/info/version')).to.match(/^\d+\.\d+\.\d+$/);
  });

  it('lists every route with its methods', () => {
    const listed = Object.entries(record(at('/paths'))).map(([path, item]) => [path, Object.keys(record(item))]);
    expect(Object.fromEntries(listed)).to.deep.equal(ROUTES);
  });

  it('has a unique id for each operation, and all parameters of its path', () => {
    const operations = Object.entries(record(at('/paths'))).flatMap(([path, item]) =>
      Object.values(record(item)).map((operation) => ({ path, operation: record(operation) })),
    );
    const names = operations.map(({ operation }) => operation['operationId']);
    expect(new Set(names).size).to.equal(names.length);
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const parameters = Object.values(record(operation['parameters'])).map(record);
      expect(parameters.filter((each) => each['in'] === 'path').map((each) => each['name'])).to.deep.equal(inPath);
      expect(record(operation['responses'])).to.have.property('default');
    }
  });

  it('marks exactly the mandatory query parameters as required', () => {
    const operations = Object.values(record(at('/paths'))).flatMap((item) => Object.values(record(item)).map(record));
    const required = operations.flatMap(({ operationId, parameters }) => {
      const inQuery = Object.values(record(parameters))
        .map(record)
        .filter((each) => each['in'] === 'query');
      return inQuery
        .filter((each) => each['required'] === true)
        .map(({ name }) => `${String(operationId)}: ${String(name)}`);
    });
    expect(required).to.have.members(['searchDocuments: q', 'getStepPrompt: step']);
  });

  it('documents 404 for an unknown id, and 400 for a decision', () => {
    for (const [path, item] of Object.entries(record(at('/paths')))) {
      for (const operation of Object.values(record(item)).map(record)) {
        const { responses, operationId } = operation;
        // A body of these names a council, an unknown method of MCP gets 404 too, and there may be no backup and no checkpoint.
        const isTold =
          ['createChatCompletion', 'createResponse', 'callMcp', 'getBackup', 'getLedgerCheckpoint'].includes(
            String(operationId),
          ) ||
          (path.includes('{') && operationId !== 'approveRun');
        expect(Object.keys(record(responses)).includes('404'), String(operationId)).to.equal(isTold);
      }
    }
  });

  it('refers only to complete components, which code generators can follow', () => {
    const refs = [...refsIn(document)];
    expect(refs).not.to.be.empty;
    for (const ref of refs) {
      expect(ref).to.match(/^#\/components\/schemas\/[A-Za-z]+$/);
      expect(at(ref.slice(1)), ref).to.be.an('object');
    }
  });

  it('has exactly the schemas with a title as components', () => {
    for (const [name, schema] of Object.entries(record(at('/components/schemas')))) {
      expect(record(schema)['title']).to.equal(name);
      for (const inner of Object.values(record(schema))) expect([...titlesIn(inner)], name).to.be.empty;
      expect(schema, name).not.to.have.any.keys('$defs', '$id', 'x-data-by-type');
    }
  });

  it('describes the data of an event by its type: in a page, as NDJSON and in the stream', () => {
    const types = Object.keys(openSchemas().document('run-events.json').properties ?? {});
    const union = '/components/schemas/StoredRunEvent';
    expect(at(`${union}/oneOf`)).to.deep.equal(types.map((type) => ({ $ref: `#/components/schemas/${type}Event` })));
    expect(at(`${union}/discriminator/propertyName`)).to.equal('type');
    for (const type of types) {
      const member = `/components/schemas/${type}Event/properties`;
      expect(at(`${member}/type/const`)).to.equal(type);
      expect(at(`${member}/data/$ref`)).to.match(/^#\/components\/schemas\/\w+Data$/);
    }
    const events = '/paths/~1api~1runs~1{run_id}~1events/get/responses/200/content';
    const stream = '/paths/~1api~1runs~1{run_id}~1stream/get/responses/200/content';
    for (const place of [`${events}/application~1x-ndjson/schema`, `${stream}/text~1event-stream/schema`]) {
      expect(at(`${place}/$ref`)).to.equal(`#${union}`);
    }
    expect(at('/components/schemas/RunEventsPage/properties/events/items/$ref')).to.equal(`#${union}`);
  });

  it('describes the real answers', async () => {
    const runId = await rest.start();
    for (const [method, path, statuses] of [
      ['get', '/api/health', [200]],
      ['get', '/api/health/ready', [200]],
      ['get', '/api/runs', [200]],
      ['get', '/api/runs/{run_id}', [200, 404]],
      ['get', '/api/runs/{run_id}/events', [200, 404]],
      ['get', '/api/runs/{run_id}/state', [200, 404]],
      ['get', '/api/runs/{run_id}/verify', [200, 404]],
      ['get', '/api/runs/{run_id}/genealogy', [200, 404]],
      ['get', '/api/runs/{run_id}/deliberation', [200, 404]],
      ['get', '/api/runs/{run_id}/chart', [200, 404]],
      ['get', '/api/councils/run/{run_id}', [200, 404]],
      ['get', '/api/openapi.json', [200]],
      ['post', '/api/councils/run/{run_id}/cancel', [404]],
      ['post', '/api/councils/run', [415]],
    ] as const) {
      for (const status of statuses) {
        const reply = await rest.send(method.toUpperCase(), path.replace('{run_id}', status === 404 ? NO_RUN : runId));
        expect(reply.status, path).to.equal(status);
        const schema = `/paths/${path.replaceAll('/', '~1')}/${method}/responses/${status}/content/application~1json/schema`;
        expectFits(JSON.parse(reply.text), schema);
      }
    }
  });

  it('documents the headers of each answer', async () => {
    const runId = await rest.start();
    const council = { id: 'told', name: 'Told', nodes: [] };
    const form = new FormData();
    form.append('file', new Blob([new Uint8Array(pdfWith(['Trees']))]), 'trees.pdf');
    const uploading = await fetch(`${service.url}/api/councils/upload-pdf`, { method: 'POST', body: form });
    const replies = [
      ['post', '/api/councils/upload-pdf', uploading, 'Content-Location'],
      ['post', '/api/councils', await rest.post('/api/councils/', council), 'Location'],
      ['get', '/api/runs', await rest.get('/api/runs/?limit=1'), 'Link'],
      ['get', '/api/runs/{run_id}/events', await rest.get(`/api/runs/${runId}/events`), 'ETag'],
    ] as const;
    for (const [method, path, { status, headers }, name] of replies) {
      expect(headers.get(name), path).to.be.a('string');
      expect(at(`/paths/${path.replaceAll('/', '~1')}/${method}/responses/${status}/headers/${name}`)).to.have.keys(
        'description',
        'schema',
      );
    }
    for (const path of ['/api/councils', '/api/documents']) {
      expect(at(`/paths/${path.replaceAll('/', '~1')}/get/responses/200/headers`)).to.have.property('Link');
    }
    expect(at('/paths/~1api~1runs~1{run_id}~1events/get/responses/304/headers')).to.have.property('ETag');
  });

  it('documents Retry-After for every 503', () => {
    for (const [path, item] of Object.entries(record(at('/paths')))) {
      for (const operation of Object.values(record(item)).map(record)) {
        const unavailable = record(operation['responses'])['503'];
        if (unavailable !== undefined) expect(record(unavailable)['headers'], path).to.have.property('Retry-After');
        else expect(path).to.equal('/api/health');
      }
    }
  });

  it('has examples that match their schemas', () => {
    const shown: string[] = [];
    for (const [name, schema] of Object.entries(record(at('/components/schemas')))) {
      const { examples = [] } = record(schema);
      for (const example of Object.values(record(examples))) {
        expectFits(example, `/components/schemas/${name}`);
        shown.push(name);
      }
    }
    expect(shown).to.include.members(['RunRequest', 'ApprovalRequest', 'BlueprintCreate', 'ForkRequest', 'RunResult']);
  });

  it('contains the rules of the start request', () => {
    const schema = '/paths/~1api~1councils~1run/post/requestBody/content/application~1json/schema';
    expectFits({ input_topic: 'x' }, schema);
    expect(() => expectFits({ input_topic: '' }, schema)).to.throw();
    expect(at('/components/schemas/RunRequest/properties/input_topic')).to.include({ minLength: 1, maxLength: 10_000 });
  });

  /** The value at a JSON Pointer in the document. */
  function at(pointer: string): unknown {
    const names = pointer.split('/').slice(1);
    return names.reduce<unknown>(
      (part, name) => record(part)[name.replaceAll('~1', '/').replaceAll('~0', '~')],
      document,
    );
  }

  function expectFits(value: unknown, pointer: string): void {
    const validate = ajv.compile({ $ref: `document#${encodeURI(pointer)}` });
    expect(validate(value), `${pointer}: ${JSON.stringify(validate.errors)}`).to.be.true;
  }
});

function record(value: unknown): Json {
  if (typeof value !== 'object' || value === null) throw new Error(`No object: ${String(value)}`);
  return Object.fromEntries(Object.entries(value));
}

/** The titles of all schemas, without properties that are named `title`. */
function* titlesIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === 'title' && typeof member === 'string') yield member;
    else yield* titlesIn(member);
  }
}

function* refsIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === '$ref' && typeof member === 'string') yield member;
    else yield* refsIn(member);
  }
}
