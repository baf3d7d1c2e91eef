import { expect } from 'chai';
import OpenAI from 'openai';
import { ModelFailed } from '../../src/errors.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { rejectionOf } from '../support/rejection.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import { openSocket } from '../support/raw-exchange.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { currentModel, scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

const TASK = '### Task:\nGenerate a concise title for the chat.\n### Chat History:\nUSER: Trees';

describe('A task of a chat front end', () => {
  let service: RunningService;
  let rest: RestClient;
  let client: OpenAI;
  let scripted: ScriptedModel;

  before(async () => {
    service = await startService({ model: currentModel(() => scripted), modelOutageMs: 0 });
    rest = restClient(service.url);
    client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  after(() => service.stop());
  beforeEach(() => {
    scripted = scriptedModel([{ text: 'Trees of the Town' }]);
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));
  afterEach('no run', async () => {
    expect(rest.read(await rest.get('/api/runs/'), 200, 'history-list.json')).to.deep.equal([]);
  });

  const request = { model: 'council', messages: [{ role: 'user' as const, content: TASK }] };

  it('is answered by one call of the default model, without a run', async () => {
    const { data: chat, response } = await client.chat.completions.create(request).withResponse();
    expect(chat.choices[0]?.message.content).to.equal('Trees of the Town');
    expect(chat.usage).to.deep.equal({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 });
    expect(chat).not.to.have.property('council');
    expect(response.headers.has('Council-Run-Id')).to.equal(false);
    expect(scripted.requests.map(({ prompt, model }) => [prompt, model])).to.deep.equal([[TASK, undefined]]);
  });

  it('is counted among the calls of models in the metrics', async () => {
    const calls = async (): Promise<number> => {
      const text = await (await fetch(`${service.url}/metrics`)).text();
      return Number(/^council_model_calls_total\{.*outcome="answered"\} (\d+)$/m.exec(text)?.[1] ?? 0);
    };
    const before = await calls();
    await client.chat.completions.create(request);
    expect(await calls()).to.equal(before + 1);
  });

  it('is streamed too', async () => {
    const stream = await client.chat.completions.create({ ...request, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).to.equal('Trees of the Town');
  });

  it('gets the failure of the model as an error, streamed or not', async () => {
    const error = new ModelFailed('The model is tired', { kind: 'unavailable', retryable: true });
    scripted = scriptedModel(() => ({ error }));
    for (const stream of [false, true]) {
      const refused: unknown = await client.chat.completions
        .create({ ...request, stream })
        .then(async (answer) => {
          if (!(Symbol.asyncIterator in answer)) return null;
          for await (const chunk of answer) expect(chunk.choices[0]?.finish_reason).to.equal(null);
          return null;
        })
        .catch((reason: unknown) => reason);
      expect(refused).to.include({ type: 'server_error' });
      expect(refused).to.have.property('message').that.includes('The model is tired');
    }
  });

  it('ends its call when the client goes away', async () => {
    scripted = scriptedModel(() => 'hold');
    const socket = await openSocket(service.url);
    const body = JSON.stringify(request);
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    await untilTrue(() => scripted.held.length === 1);
    socket.destroy();
    await untilTrue(() => scripted.held[0]?.signal.aborted === true);
  });

  it('ends its call when its key is revoked', async () => {
    scripted = scriptedModel(() => 'hold');
    // In another service, because the keys stay.
    const closed = await startService({ model: currentModel(() => scripted) });
    const admin = restWith(closed.url, await addFirstKey(closed.url));
    const key = await addKey(admin, { name: 'guest', scopes: ['run'] });
    const cut = rejectionOf(restWith(closed.url, key).post('/v1/chat/completions', request));
    await untilTrue(() => scripted.held.length === 1);
    await admin.send('DELETE', '/api/keys/guest');
    await untilTrue(() => scripted.held[0]?.signal.aborted === true);
    expect(await cut).to.be.an('error');
    await closed.stop();
  });

  it('needs a model that exists', async () => {
    const reply = await rest.post('/v1/chat/completions', { ...request, model: 'council/nobody' });
    expect(reply.status).to.equal(404);
    expect(scripted.requests).to.deep.equal([]);
  });
});
