import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { nodeSystem } from '../../src/system/system.js';
import { queueEarlyRequests } from '../../src/app/early-requests.js';
import { readConfig } from '../../src/config.js';
import type { OpenAiError } from '../../src/generated/schemas.js';
import { OPENAI_PROBLEMS } from '../../src/openai-api/errors.js';
import { addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import { rawExchange } from '../support/raw-exchange.js';
import type { Reply, RestClient, Sent } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { schemaCheck } from '../support/schema-check.js';

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';

/** The error of a reply with this status, which has OpenAI's form. */
function errorIn(reply: { readonly text: string; readonly status: number }, status: number): OpenAiError['error'] {
  expect(reply.status, reply.text).to.equal(status);
  const value: unknown = JSON.parse(reply.text);
  if (schemaCheck('openai-error.json')(value)) return value.error;
  throw new Error(`Not in OpenAI's form: ${reply.text}`);
}

const chatOf = (...messages: readonly object[]) => ({ model: 'council', messages });
const user = (content: unknown) => ({ role: 'user', content });

describe('Errors under /v1', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const refusedChat = async (body: unknown): Promise<OpenAiError['error']> => errorIn(await rest.post(CHAT, body), 400);
  const refusedResponse = async (body: object): Promise<OpenAiError['error']> =>
    errorIn(await rest.post(RESPONSES, { model: 'council', input: 'Trees', ...body }), 400);

  it('are 400 for broken rules of fields, and name the field', async () => {
    for (const [body, param] of [
      [{ messages: [user('Trees')] }, 'model'],
      [{ model: 'council' }, 'messages'],
      [{ model: 1, messages: [user('Trees')] }, 'model'],
      [chatOf(), 'messages'],
      [chatOf({ content: 'Trees' }), 'messages.0.role'],
      [chatOf(user(7)), 'messages.0.content'],
      [{ ...chatOf(user('Trees')), stream: 'yes' }, 'stream'],
      [{ ...chatOf(user('Trees')), n: 0 }, 'n'],
    ] as const) {
      expect(await refusedChat(body), JSON.stringify(body)).to.include({ type: 'invalid_request_error', param });
    }
    for (const body of ['{', '', 'null', '[]', '"x"']) {
      const reply = await rest.send('POST', CHAT, { body, headers: { 'Content-Type': 'application/json' } });
      expect(errorIn(reply, 400), body).to.include({ type: 'invalid_request_error', param: null });
    }
  });

  it('are 400 for parameters that a council cannot honour', async () => {
    for (const [param, value] of [
      ['functions', [{ name: 'look' }]],
      ['tool_choice', 'required'],
      ['tool_choice', { type: 'function', function: { name: 'look' } }],
      ['n', 2],
      ['logprobs', true],
      ['top_logprobs', 2],
      ['modalities', ['text', 'audio']],
      ['audio', { voice: 'alloy' }],
      ['web_search_options', {}],
    ] as const) {
      const error = await refusedChat({ ...chatOf(user('Trees')), [param]: value });
      expect(error, param).to.include({ param, code: 'unsupported_parameter', type: 'invalid_request_error' });
    }
    for (const [param, value] of [
      ['tool_choice', { type: 'file_search' }],
      ['top_logprobs', 1],
      ['conversation', 'conv_1'],
      ['prompt', { id: 'p' }],
    ] as const) {
      expect(await refusedResponse({ [param]: value }), param).to.include({ param, code: 'unsupported_parameter' });
    }
  });

  it('are 400 for a format that is unknown, or whose schema cannot be used', async () => {
    const format = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'nothing' } } };
    const chat = await refusedChat({ ...chatOf(user('Trees')), response_format: format });
    expect(chat).to.include({ code: 'invalid_json_schema', param: 'response_format' });
    const text = { format: { type: 'grammar' } };
    expect(await refusedResponse({ text })).to.include({ code: 'unsupported_parameter', param: 'text.format.type' });
  });

  it('are 404 for an unknown earlier response', async () => {
    for (const id of ['resp_1', 'resp_00000000000040008000000000000000']) {
      const reply = await rest.post(RESPONSES, { model: 'council', input: 'Trees', previous_response_id: id });
      expect(errorIn(reply, 404)).to.include({ code: 'response_not_found', param: 'previous_response_id' });
    }
  });

  it('are 400 for content that is no text', async () => {
    const image = { type: 'image_url', image_url: { url: 'https://example.org/tree.png' } };
    const text = { type: 'text', text: 'Trees' };
    for (const [message, param] of [
      [user([text, image]), 'messages.0.content.1'],
      [{ role: 'stranger', content: 'found' }, 'messages.0.role'],
    ] as const) {
      expect(await refusedChat(chatOf(message, user('Trees')))).to.include({ code: 'unsupported_content', param });
    }
    const input = [{ type: 'computer_call', call_id: 'x' }, user('Trees')];
    expect(await refusedResponse({ input })).to.include({ code: 'unsupported_content', param: 'input.0.type' });
  });

  it('are 400 for an empty topic, and for one that is too long', async () => {
    for (const messages of [[user('')], [user([])], [{ role: 'system', content: 'Be brief.' }]]) {
      expect(await refusedChat(chatOf(...messages))).to.include({ type: 'invalid_request_error', param: 'messages' });
    }
    expect(await refusedResponse({ input: '' })).to.include({ param: 'input' });
    expect(await refusedResponse({ input: [] })).to.include({ param: 'input' });
    const code = 'context_length_exceeded';
    const long = 'x'.repeat(600_001);
    expect(await refusedChat(chatOf(user(long)))).to.include({ code, param: 'messages' });
    expect(await refusedResponse({ input: 'Trees', instructions: long })).to.include({ code });
    // Each quotation mark takes two bytes of the record.
    expect(await refusedChat(chatOf(user('"'.repeat(500_000))))).to.include({ code, param: 'messages' });
  });

  it('are 404 for an unknown model, route and response', async () => {
    for (const model of ['', 'gpt-5', 'council/', 'council/nobody', 'council/run', 'Council', 'council/a/b']) {
      const error = errorIn(await rest.post(CHAT, { ...chatOf(user('Trees')), model }), 404);
      expect(error, model).to.include({ code: 'model_not_found', param: 'model', type: 'invalid_request_error' });
      errorIn(await rest.post(RESPONSES, { model, input: 'Trees' }), 404);
      if (model === '') continue;
      const found = errorIn(await rest.get(`/v1/models/${encodeURIComponent(model)}`), 404);
      expect(found, model).to.include({ code: 'model_not_found', param: 'model' });
    }
    for (const path of ['/v1', '/v1/', '/v1/nothing', '/v1/models/council/poets', '/v1/chat']) {
      expect(errorIn(await rest.get(path), 404).message, path).to.include('No such route');
    }
    const unknown = '00000000000040008000000000000000';
    for (const id of [`resp_${unknown}`, 'resp_', unknown, '00000000-0000-4000-8000-000000000000']) {
      for (const query of ['', '?stream=true']) errorIn(await rest.get(`${RESPONSES}/${id}${query}`), 404);
      errorIn(await rest.post(`${RESPONSES}/${id}/cancel`), 404);
    }
    rest.problem(await rest.get('/v1x'), 404);
  });

  it('are 400 for a query that breaks a rule', async () => {
    for (const [query, param] of [
      ['stream=yes', 'stream'],
      ['stream=true&starting_after=-1', 'starting_after'],
      ['stream=true&starting_after=x', 'starting_after'],
    ] as const) {
      expect(errorIn(await rest.get(`${RESPONSES}/resp_0?${query}`), 400)).to.include({ param });
    }
    const sent: Sent = { body: chatOf(user('Trees')), headers: { 'Idempotency-Key': 'x'.repeat(256) } };
    expect(errorIn(await rest.send('POST', CHAT, sent), 400)).to.include({ param: 'Idempotency-Key' });
  });

  it('are 405 with the methods, 413, 415 and 417', async () => {
    const wrong = await rest.get(CHAT);
    expect(errorIn(wrong, 405).type).to.equal('invalid_request_error');
    expect(wrong.headers.get('Allow')).to.equal('OPTIONS, POST');
    errorIn(await rest.send('DELETE', `${RESPONSES}/resp_0`), 405);
    errorIn(await rest.post(CHAT, chatOf(user('x'.repeat(5 * 1024 * 1024)))), 413);
    errorIn(await rest.send('POST', CHAT, { body: 'x' }), 415);
    const gzip = { body: chatOf(user('Trees')), headers: { 'Content-Encoding': 'gzip' } };
    errorIn(await rest.send('POST', RESPONSES, gzip), 415);
    const head = `GET /v1/models?x HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\nConnection: close\r\n\r\n`;
    const { status, body } = await rawExchange(service.url, [head]);
    errorIn({ status, text: body }, 417);
  });

  it('are 421 for a foreign host, and 403 for a foreign page', async () => {
    const head = `GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`;
    const { status, body } = await rawExchange(service.url, [head]);
    errorIn({ status, text: body }, 421);
    const headers = { Origin: 'https://evil.example' };
    const reply = await rest.send('POST', CHAT, { body: chatOf(user('Trees')), headers });
    expect(errorIn(reply, 403).type).to.equal('permission_error');
  });
});

describe('Errors under /v1 of a service with keys and limits', () => {
  let service: RunningService | null = null;
  afterEach(() => service?.stop());

  it('are 401, 403 and 429 for keys', async () => {
    service = await startService();
    const { url } = service;
    const read = await keyWith(url);
    const nobody = restClient(url);
    const missing = await nobody.post(CHAT, chatOf(user('Trees')));
    expect(errorIn(missing, 401)).to.include({ type: 'authentication_error', code: 'invalid_api_key' });
    expect(missing.headers.get('WWW-Authenticate')).to.include('Bearer');
    const denied = await restClient(url, bearer(read)).post(CHAT, chatOf(user('Trees')));
    expect(errorIn(denied, 403).message).to.include('"run"');
    let reply: Reply = missing;
    while (reply.status === 401) reply = await restClient(url, bearer('sk-x')).get('/v1/models');
    expect(errorIn(reply, 429)).to.include({ type: 'rate_limit_error', code: 'rate_limit_exceeded' });
    expect(reply.headers.get('Retry-After')).to.be.a('string');
  });

  it('are 429 past the limits of requests and of runs, also for tasks of front ends', async () => {
    const settings = { MAX_RUNS_PER_MINUTE: '1' };
    service = await startService({
      system: { ...nodeSystem(), monotonicMs: () => 0 },
      limits: readConfig(settings).limits,
    });
    const rest = restClient(service.url);
    expect((await rest.post(CHAT, chatOf(user('### Task:\nName it.')))).status).to.equal(200);
    expect(errorIn(await rest.post(CHAT, chatOf(user('### Task:\nName it.'))), 429).code).to.be.a('string');
    const refused = await rest.post(RESPONSES, { model: 'council', input: 'Trees' });
    expect(errorIn(refused, 429).type).to.equal('rate_limit_error');
  });

  it('are 503 while the service has no log', async () => {
    const server = createServer();
    const early = queueEarlyRequests(server, {
      system: nodeSystem(),
      unsent: new SharedBytes(),
      basePath: '',
      corsOrigins: [],
      isOwnHost: () => true,
      problemForms: [OPENAI_PROBLEMS],
      onFault: () => expect.fail('Nothing fails'),
      onAccessRefused: () => expect.fail('Nothing is refused'),
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    try {
      early.setAway(true);
      const reply = await fetch(`${url}/v1/models`);
      expect(errorIn({ status: reply.status, text: await reply.text() }, 503).type).to.equal('server_error');
      expect(reply.headers.get('Retry-After')).to.equal('2');
      const other = await fetch(`${url}/api/runs/`);
      expect(await other.json()).to.have.all.keys('detail');
    } finally {
      early.end();
      server.close();
      server.closeAllConnections();
    }
  });
});

/** Adds keys to a service, and returns one that may only read. */
async function keyWith(url: string): Promise<string> {
  const admin = await addFirstKey(url);
  return await addKey(restWith(url, admin), { name: 'reader', scopes: ['read'] });
}
