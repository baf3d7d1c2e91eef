import { expect } from 'chai';
import OpenAI from 'openai';
import { fieldOf } from '../../src/system/untrusted.js';
import { openEventStream } from '../support/event-stream-client.js';
import { approvePath } from '../support/god-run.js';
import { addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, currentModel, scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

const CHAT = '/v1/chat/completions';
const CHAT_BODY = { model: 'council', messages: [{ role: 'user', content: 'Trees' }] };
const RESPONSE_BODY = { model: 'council', input: 'Trees' };

describe('Chats and responses on the wire', () => {
  let service: RunningService;
  let rest: RestClient;
  let client: OpenAI;
  let scripted: ScriptedModel;

  before(async () => {
    service = await startService({ model: currentModel(() => scripted) });
    rest = restClient(service.url);
    client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none' });
  });
  after(() => service.stop());
  beforeEach(() => {
    scripted = scriptedModel(councilScript([8]));
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  /** The values of a stream's events without a name, and whether `[DONE]` ends it. */
  function chunksIn(text: string): { readonly chunks: readonly unknown[]; readonly isDone: boolean } {
    const data = text.split('\n\n').flatMap((block) => (block.startsWith('data: ') ? [block.slice(6)] : []));
    return { chunks: data.slice(0, -1).map((each): unknown => JSON.parse(each)), isDone: data.at(-1) === '[DONE]' };
  }

  it('stream a chat with the id of its run in the header and in each chunk, to its [DONE]', async () => {
    const reply = await rest.post(CHAT, { ...CHAT_BODY, stream: true });
    const runId = reply.headers.get('Council-Run-Id');
    expect(runId).to.match(/^[0-9a-f-]{36}$/);
    const { chunks, isDone } = chunksIn(reply.text);
    expect(isDone).to.equal(true);
    for (const chunk of chunks) expect(fieldOf(chunk, 'council')).to.deep.equal({ run_id: runId });
    // Only a client that asks for the usage gets a chunk without a choice, which others may not expect.
    for (const chunk of chunks) expect(fieldOf(chunk, 'choices')).to.be.an('array').of.length(1);
    for (const chunk of chunks) expect(chunk).not.to.have.property('usage');
  });

  it('end the stream of a chat with its usage if the client asks for it', async () => {
    const reply = await rest.post(CHAT, { ...CHAT_BODY, stream: true, stream_options: { include_usage: true } });
    const { chunks, isDone } = chunksIn(reply.text);
    expect(isDone).to.equal(true);
    expect(chunks.at(-1)).to.deep.include({
      choices: [],
      usage: { prompt_tokens: 30, completion_tokens: 15, total_tokens: 45 },
    });
    expect(chunks.at(-2)).to.have.nested.property('choices[0].finish_reason', 'stop');
  });

  it('have the id of the run in the header of each answer about a response', async () => {
    const created = await rest.post('/v1/responses', RESPONSE_BODY);
    const { id, metadata } = rest.read(created, 200, 'response-object.json');
    const found = [
      created,
      await rest.get(`/v1/responses/${id}`),
      await rest.get(`/v1/responses/${id}?stream=true`),
      await rest.post(`/v1/responses/${id}/cancel`),
    ].map(({ status, headers }) => [status, headers.get('Council-Run-Id')]);
    expect(found).to.deep.equal(Array.from({ length: 4 }, () => [200, metadata.run_id]));
  });

  it('return a response that has ended as it is when it is cancelled', async () => {
    const response = await client.responses.create(RESPONSE_BODY);
    const { output_text: _, ...cancelled } = await client.responses.cancel(response.id);
    const { output_text: text, ...created } = response;
    expect(cancelled).to.deep.equal(created);
    expect(text).to.equal('Draft 2 by Writer');
  });

  it('accept parameters that have no effect, and store each response', async () => {
    const ignored = { temperature: 1.9, top_p: 0.1, seed: 7, user: 'ann', metadata: { a: 'b' }, store: false };
    const forChat = { max_tokens: 3, max_completion_tokens: 3, stop: ['a'], presence_penalty: 1, logit_bias: { 5: 1 } };
    await rest.post(CHAT, CHAT_BODY);
    const [plain] = scripted.requests;
    const chat = await rest.post(CHAT, { ...CHAT_BODY, ...ignored, ...forChat, n: 1, service_tier: 'auto' });
    expect(chat.status, chat.text).to.equal(200);
    const forResponse = { max_output_tokens: 3, truncation: 'auto', reasoning: { effort: 'low' }, include: [] };
    const reply = await rest.post('/v1/responses', { ...RESPONSE_BODY, ...ignored, ...forResponse });
    const { id, store, metadata } = rest.read(reply, 200, 'response-object.json');
    expect([store, Object.keys(metadata)]).to.deep.equal([true, ['run_id']]);
    expect((await client.responses.retrieve(id)).status).to.equal('completed');
    const asked = scripted.requests.filter(({ prompt }) => prompt === plain?.prompt);
    expect(asked).to.have.lengthOf(3);
    expect(new Set(asked.map((each) => JSON.stringify(each))).size).to.equal(1);
  });

  it('stream a background response at once', async () => {
    scripted = scriptedModel(() => 'hold');
    const stream = await client.responses.create({ ...RESPONSE_BODY, background: true, stream: true });
    const seen: string[] = [];
    for await (const event of stream) {
      seen.push(event.type);
      if (event.type === 'response.in_progress') await client.responses.cancel(event.response.id);
    }
    expect(seen).to.deep.equal(['response.created', 'response.in_progress', 'response.failed']);
  });

  it('end the stream of a client whose key is revoked, and not its background run', async () => {
    // In another service, because the keys stay.
    const closed = await startService({ model: scriptedModel(() => 'hold') });
    try {
      const admin = restWith(closed.url, await addFirstKey(closed.url));
      const guest = bearer(await addKey(admin, { name: 'guest', scopes: ['run'] }));
      const background = { ...RESPONSE_BODY, background: true };
      const created = await restClient(closed.url, guest).post('/v1/responses', background);
      const { id } = admin.read(created, 200, 'response-object.json');
      const stream = openEventStream(closed.url, `/v1/responses/${id}?stream=true`, guest);
      await stream.until(({ event }) => event === 'response.in_progress');
      expect((await admin.send('DELETE', '/api/keys/guest')).status).to.equal(204);
      expect(await stream.over).to.equal('cut');
      const now = admin.read(await admin.get(`/v1/responses/${id}`), 200, 'response-object.json');
      expect(now.status).to.equal('in_progress');
    } finally {
      await closed.stop();
    }
  });

  it('keep the stream of a paused run open, and say in a comment where it waits', async () => {
    const nodes = [{ id: 'write', label: 'Poet' }];
    await rest.post('/api/councils/', { id: 'slow', name: 'Slow', nodes, model_options: { god_mode: true } });
    const created = await rest.post('/v1/responses', { model: 'council/slow', input: 'Trees', background: true });
    const { id, metadata } = rest.read(created, 200, 'response-object.json');
    const stream = openEventStream(service.url, `/v1/responses/${id}?stream=true`);
    const path = approvePath(metadata.run_id);
    const waits = `: Paused before Poet: waits for a decision at ${path}`;
    await untilTrue(() => stream.others.includes(waits));
    const event = stream.events.at(-1);
    expect(event?.event).to.equal('response.in_progress');
    expect((await client.responses.retrieve(id)).status).to.equal('in_progress');
    await untilTrue(async () => (await rest.get('/metrics')).text.includes('\ncouncil_event_streams_open 1\n'));
    const approved = await rest.post(path, { action: 'approve' });
    expect(approved.status, approved.text).to.equal(200);
    await stream.until(({ event: type }) => type === 'response.completed');
    expect(await stream.over).to.equal('ended');
    expect(stream.others).to.include(': Poet: draft written');
    expect((await rest.until(metadata.run_id, isOver)).status).to.equal('completed');
    await rest.send('DELETE', '/api/councils/slow');
  });
});
