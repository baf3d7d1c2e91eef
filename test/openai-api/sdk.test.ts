import { expect } from 'chai';
import OpenAI from 'openai';
import type { LanguageModel, ModelRequest, ModelUsage } from '../../src/models/port.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Reply, ScriptedModel } from '../support/scripted-model.js';
import { councilScript, currentModel, heldCouncil, scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

/** The final draft of the built-in council by `councilScript`. */
const FINAL = 'Draft 2 by Writer';

/** A format whose answers the client parses, as its helpers for zod make it. */
function parseable<Format extends object>(format: Format): Format {
  return Object.defineProperties(
    { ...format },
    {
      $brand: { value: 'auto-parseable-response-format', enumerable: false },
      $parseRaw: { value: (content: string): unknown => JSON.parse(content), enumerable: false },
    },
  );
}

/** A draft of 600 code points, some of two UTF-16 units. */
const LONG = '🌳'.repeat(300) + 'é'.repeat(300);

describe('The official OpenAI client', () => {
  let service: RunningService;
  let rest: RestClient;
  let client: OpenAI;
  let scripted: ScriptedModel;

  before(async () => {
    service = await startService({ model: currentModel((): LanguageModel => scripted) });
    rest = restClient(service.url);
    client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none' });
  });
  after(() => service.stop());
  beforeEach(() => {
    scripted = scriptedModel(councilScript([8]));
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const messages = (content: string) => [{ role: 'user', content }] as const;
  const topicOf = async (runId: string): Promise<string> =>
    rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json').input_topic;

  const materialOf = async (runId: string): Promise<string> => (await rest.get(`/api/runs/${runId}/material`)).text;
  const SCHEMA = {
    ...{ type: 'object', additionalProperties: false, required: ['title'] },
    properties: { title: { type: 'string' } },
  };
  const TITLED = '{"title":"Oaks"}';
  const titled = (): ScriptedModel => {
    const others = councilScript([8]);
    return scriptedModel((request, index) => (request.answer === 'output' ? { text: TITLED } : others(request, index)));
  };

  it('gets JSON by a schema in a chat, whole, streamed and parsed', async () => {
    scripted = titled();
    const json_schema = { name: 'titled', strict: true, schema: SCHEMA };
    const asked = {
      ...{ model: 'council', messages: [...messages('Trees')] },
      response_format: { type: 'json_schema' as const, json_schema },
    };
    const chat = await client.chat.completions.create(asked);
    expect(chat.choices[0]?.message.content).to.equal(TITLED);
    const parsed = await client.chat.completions.parse({ ...asked, response_format: parseable(asked.response_format) });
    expect(parsed.choices[0]?.message.parsed).to.deep.equal({ title: 'Oaks' });
    const pieces: string[] = [];
    for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true }))
      pieces.push(choices[0]?.delta.content ?? '');
    expect(pieces.join('')).to.equal(TITLED);
    const any = await client.chat.completions.create({ ...asked, response_format: { type: 'json_object' } });
    expect(any.choices[0]?.message.content).to.equal(TITLED);
    const [output] = scripted.requests.filter(({ answer }) => answer === 'output').slice(-1);
    expect(output?.promptInput.schema).to.deep.equal({ type: 'object' });
  });

  it('gets JSON by a schema in a response, whole, streamed and parsed', async () => {
    scripted = titled();
    const format = { type: 'json_schema' as const, name: 'titled', strict: true, schema: SCHEMA };
    const asked = { model: 'council', input: 'Trees', text: { format } };
    const response = await client.responses.create(asked);
    expect(response.output_text).to.equal(TITLED);
    expect(response.text?.format).to.deep.equal({ type: 'json_schema', name: 'output', schema: SCHEMA });
    const parsed = await client.responses.parse({ ...asked, text: { format: parseable(format) } });
    expect(parsed.output_parsed).to.deep.equal({ title: 'Oaks' });
    const deltas: string[] = [];
    for await (const event of await client.responses.create({ ...asked, stream: true }))
      if (event.type === 'response.output_text.delta') deltas.push(event.delta);
    expect(deltas.join('')).to.equal(TITLED);
  });

  it('gets null as JSON, not the prose, if that is the output', async () => {
    const others = councilScript([8]);
    scripted = scriptedModel((request, index) =>
      request.answer === 'output' ? { text: 'null' } : others(request, index),
    );
    const schema = { type: ['string', 'null'] };
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'maybe', schema } };
    const chat = await client.chat.completions.create({
      ...{ model: 'council', messages: [...messages('Trees')] },
      response_format,
    });
    expect(chat.choices[0]?.message.content).to.equal('null');
    const format = { type: 'json_schema' as const, name: 'maybe', schema };
    const response = await client.responses.create({ model: 'council', input: 'Trees', text: { format } });
    expect(response.output_text).to.equal('null');
  });

  it('learns that the budget ended the run before its JSON, in both forms, whole and streamed', async () => {
    scripted = titled();
    const council = {
      ...{ id: 'thrifty', name: 'Thrifty', nodes: [{ id: 'author', maxOutputTokens: 10 }], output_schema: SCHEMA },
      budget: { tokens: 2_000, on_exceeded: 'finish' },
    };
    rest.read(await rest.post('/api/councils/', council), 201, 'blueprint.json');
    const chat = { model: 'council/thrifty', messages: [...messages('Trees')] };
    expect((await client.chat.completions.create(chat)).choices[0]).to.have.property('finish_reason', 'length');
    const reasons: (string | null)[] = [];
    for await (const { choices } of await client.chat.completions.create({ ...chat, stream: true }))
      reasons.push(...choices.map((choice) => choice.finish_reason));
    expect(reasons.at(-1)).to.equal('length');
    const response = await client.responses.create({ model: 'council/thrifty', input: 'Trees' });
    expect([response.status, response.incomplete_details?.reason]).to.deep.equal(['incomplete', 'max_output_tokens']);
    const types: string[] = [];
    for await (const { type } of await client.responses.create({
      model: 'council/thrifty',
      input: 'Trees',
      stream: true,
    }))
      types.push(type);
    expect(types.at(-1)).to.equal('response.incomplete');
    expect((await rest.send('DELETE', '/api/councils/thrifty')).status).to.equal(204);
  });

  it('is refused for a JSON schema that it does not send', async () => {
    const format = { type: 'json_schema', name: 'none' };
    const bodies = [
      ['/v1/chat/completions', { messages: messages('Trees'), response_format: { type: 'json_schema' } }],
      ['/v1/chat/completions', { messages: messages('Trees'), response_format: { ...format, json_schema: {} } }],
      ['/v1/responses', { input: 'Trees', text: { format } }],
    ] as const;
    for (const [path, body] of bodies) {
      const refused = await rest.post(path, { model: 'council', ...body });
      expect(refused.status).to.equal(400);
      expect(JSON.parse(refused.text)).to.have.nested.property('error.code', 'missing_required_parameter');
    }
  });

  it('continues a response: its topic and result come before the input', async () => {
    const first = await client.responses.create({ model: 'council', instructions: 'Be brief.', input: 'Trees?' });
    scripted = scriptedModel(councilScript([8]));
    const second = await client.responses.create({ model: 'council', input: 'Why?', previous_response_id: first.id });
    const runId = second.metadata?.['run_id'] ?? '';
    expect(await topicOf(runId)).to.equal('Why?');
    expect(await materialOf(runId)).to.equal(`System: Be brief.\n\nUser: Trees?\n\nAssistant: ${FINAL}`);
  });

  it('sends tools, which a council never calls', async () => {
    const { choices } = await client.chat.completions.create({
      ...{ model: 'council', messages: [...messages('Trees')], tool_choice: 'auto' },
      tools: [{ type: 'function', function: { name: 'look', parameters: {} } }],
    });
    expect(choices[0]?.message).to.include({ content: FINAL }).and.not.to.have.property('tool_calls');
    const tools = [{ type: 'function' as const, name: 'look', parameters: {}, strict: false }];
    const response = await client.responses.create({ model: 'council', input: 'Trees', tools });
    expect(response.output_text).to.include('by Writer');
  });

  it('lists the councils as models, and retrieves each', async () => {
    const nodes = [{ id: 'write' }];
    await rest.post('/api/councils/', { id: 'poets', name: 'Poets', nodes });
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).to.deep.equal(['council', 'council/poets']);
    expect(await (await fetch(`${service.url}/v1/models`)).json()).to.have.nested.property('data[1].name', 'Poets');
    const listed = rest.read(await rest.get('/v1/models'), 200, 'openai-model-list.json').data;
    for (const model of listed) expect(await client.models.retrieve(model.id)).to.deep.equal(model);
    await rest.send('DELETE', '/api/councils/poets');
  });

  it('completes a chat', async () => {
    const { data: chat, response } = await client.chat.completions
      .create({
        model: 'council',
        messages: [...messages('Should our town build a sauna?')],
        temperature: 0.1,
        seed: 7,
      })
      .withResponse();
    const [choice] = chat.choices;
    expect(choice).to.have.property('finish_reason', 'stop');
    expect(choice?.message.content).to.equal(FINAL);
    expect(chat.usage).to.deep.equal({ prompt_tokens: 30, completion_tokens: 15, total_tokens: 45 });
    const runId = response.headers.get('Council-Run-Id') ?? '';
    expect(chat).to.have.deep.property('council', { run_id: runId });
    expect(await topicOf(runId)).to.equal('Should our town build a sauna?');
    expect((await rest.poll(runId)).status).to.equal('completed');
  });

  it('streams a chat: progress as reasoning, then the final draft, then the usage', async () => {
    scripted = scriptedModel((request, index) => (index === 2 ? { text: LONG } : councilScript([8])(request, index)));
    const stream = await client.chat.completions.create({
      model: 'council',
      messages: [...messages('Trees')],
      stream: true,
      stream_options: { include_usage: true },
    });
    const [pieces, progress, reasons, usages]: [string[], string[], string[], number[]] = [[], [], [], []];
    for await (const chunk of stream) {
      const delta = chunk.choices[0]?.delta as { content?: string; reasoning_content?: string } | undefined;
      if ((delta?.content ?? '') !== '') pieces.push(delta?.content ?? '');
      if (delta?.reasoning_content !== undefined) {
        expect(pieces).to.deep.equal([]);
        progress.push(delta.reasoning_content);
      }
      reasons.push(...chunk.choices.flatMap((each) => each.finish_reason ?? []));
      usages.push(...(chunk.usage ? [chunk.usage.total_tokens] : []));
    }
    expect(pieces.map((each) => [...each].length)).to.deep.equal([256, 256, 88]);
    expect(pieces.join('')).to.equal(LONG);
    expect(progress).to.include('Critic: score 8\n');
    expect([reasons, usages]).to.deep.equal([['stop'], [45]]);
  });

  /** A council whose calls report these tokens. */
  const reporting = (usage: ModelUsage): ScriptedModel => {
    const { ask, ...model } = scriptedModel(councilScript([8]));
    return { ...model, ask: async (request, call) => ({ ...(await ask(request, call)), usage }) };
  };

  it('leaves the usage out when a call has reported none', async () => {
    scripted = reporting({ inputTokens: null, outputTokens: null });
    const chat = await client.chat.completions.create({ model: 'council', messages: [...messages('Trees')] });
    expect(chat).not.to.have.property('usage');
    const response = await client.responses.create({ model: 'council', input: 'Trees' });
    expect(response).not.to.have.property('usage');
  });

  it('shows the cached and the reasoning tokens that the calls have reported', async () => {
    scripted = reporting({ inputTokens: 10, outputTokens: 5, cachedInputTokens: 4, reasoningTokens: 1 });
    const chat = await client.chat.completions.create({ model: 'council', messages: [...messages('Trees')] });
    expect(chat.usage?.prompt_tokens_details).to.deep.equal({ cached_tokens: 12 });
    expect(chat.usage?.completion_tokens_details).to.deep.equal({ reasoning_tokens: 3 });
    const { usage } = await client.responses.create({ model: 'council', input: 'Trees' });
    expect(usage?.input_tokens_details).to.deep.equal({ cached_tokens: 12 });
    expect(usage?.output_tokens_details).to.deep.equal({ reasoning_tokens: 3 });
  });

  it('creates a response', async () => {
    const response = await client.responses.create({ model: 'council', instructions: 'Be brief.', input: 'Trees' });
    expect(response.status).to.equal('completed');
    expect(response.output_text).to.equal(FINAL);
    expect(response.usage).to.include({ input_tokens: 30, output_tokens: 15, total_tokens: 45 });
    const runId = response.metadata?.['run_id'] ?? '';
    expect(response.id).to.equal(`resp_${runId.replaceAll('-', '')}`);
    expect(await topicOf(runId)).to.equal('Trees');
    expect(await materialOf(runId)).to.equal('System: Be brief.');
    expect(await client.responses.retrieve(response.id)).to.deep.equal(response);
  });

  it('streams a response in the order of the Responses API', async () => {
    scripted = scriptedModel((request, index) => (index === 2 ? { text: LONG } : councilScript([8])(request, index)));
    const types: string[] = [];
    const deltas: string[] = [];
    for await (const event of await client.responses.create({ model: 'council', input: 'Trees', stream: true })) {
      expect(event.sequence_number).to.equal(types.length);
      types.push(event.type);
      if (event.type === 'response.output_text.delta') deltas.push(event.delta);
      if (event.type === 'response.output_text.done') expect(event.text).to.equal(LONG);
      if (event.type === 'response.completed') expect(event.response.status).to.equal('completed');
    }
    expect(deltas.join('')).to.equal(LONG);
    expect(types).to.deep.equal([
      ...['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added'],
      ...['response.output_text.delta', 'response.output_text.delta', 'response.output_text.delta'],
      ...['response.output_text.done', 'response.content_part.done', 'response.output_item.done'],
      'response.completed',
    ]);
  });

  it('accumulates streams with its helpers: a draft of 128 KiB, in a chat and in a response', async () => {
    const draft = 'x'.repeat(128 * 1024 - 2);
    const script = (request: ModelRequest): Reply =>
      request.answer === 'draft' ? { text: draft } : { text: '{"score": 9, "feedback": ""}' };
    scripted = scriptedModel(script);
    const request = { model: 'council', messages: [...messages('Trees')] };
    expect(await client.chat.completions.stream(request).finalContent()).to.equal(draft);
    const response = await client.responses.stream({ model: 'council', input: 'Trees' }).finalResponse();
    expect(response.output_text).to.equal(draft);
  });

  it('runs a response in the background, polls it and resumes its stream', async () => {
    scripted = heldCouncil();
    let response = await client.responses.create({ model: 'council', input: 'Trees', background: true });
    expect(response.status).to.equal('queued');
    const { id } = response;
    await untilTrue(async () => (await client.responses.retrieve(id)).status === 'in_progress');
    await untilTrue(() => Promise.resolve(scripted.held.length === 1));
    scripted.held[0]?.release();
    await untilTrue(async () => (response = await client.responses.retrieve(id)).status === 'completed');
    expect(response.output_text).to.equal('Draft 1 by Writer');
    const numbers = async (after?: number): Promise<readonly number[]> => {
      const resumed = await client.responses.retrieve(id, {
        stream: true,
        ...(after !== undefined && { starting_after: after }),
      });
      const found: number[] = [];
      for await (const event of resumed) found.push(event.sequence_number);
      return found;
    };
    expect(await numbers()).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await numbers(5)).to.deep.equal([6, 7, 8]);
    expect(await numbers(8)).to.deep.equal([]);
  });

  it('cancels a response, and gets one that has ended as it is', async () => {
    scripted = scriptedModel(() => 'hold');
    const { id } = await client.responses.create({ model: 'council', input: 'Trees', background: true });
    expect((await client.responses.cancel(id)).status).to.equal('cancelled');
    expect((await client.responses.cancel(id)).status).to.equal('cancelled');
    const events = [];
    for await (const event of await client.responses.retrieve(id, { stream: true })) events.push(event);
    expect(events.map(({ type }) => type)).to.deep.equal([
      'response.created',
      'response.in_progress',
      'response.failed',
    ]);
    expect(events.at(-1)).to.have.nested.property('response.status', 'cancelled');
  });

  it('gets the error of a failed run once, without a second run', async () => {
    scripted = scriptedModel(() => ({ error: new Error('The model is tired') }));
    const before = await runs();
    const request = { model: 'council', messages: [...messages('Trees')] };
    const refused = await rejected(client.chat.completions.create(request));
    expect(refused).to.include({ status: 502, code: 'run_failed', type: 'server_error' });
    const streamed = await rejected(
      client.chat.completions.create({ ...request, stream: true }).then(async (stream) => {
        for await (const chunk of stream) expect(chunk.choices[0]?.finish_reason).to.equal(null);
      }),
    );
    expect(streamed).to.have.property('code', 'run_failed');
    const response = await client.responses.create({ model: 'council', input: 'Trees' });
    expect(response).to.include({ status: 'failed', output_text: '' });
    expect(response.error?.message).to.include('master_agent');
    expect(await runs()).to.equal(before + 3);
  });

  it('runs a blueprint, in God Mode if its model options say so', async () => {
    const council = { id: 'pair', name: 'Pair', nodes: [{ id: 'write', label: 'Poet' }] };
    await rest.post('/api/councils/', council);
    const chat = await client.chat.completions.create({ model: 'council/pair', messages: [...messages('Trees')] });
    expect(chat.choices[0]?.message.content).to.equal('Draft 1 by Poet');
    expect(chat.model).to.equal('council/pair');
    const saved = rest.read(
      await rest.send('PUT', '/api/councils/pair', { body: { model_options: { god_mode: true } } }),
      200,
      'blueprint.json',
    );
    expect(saved.model_options).to.deep.equal({ god_mode: true });
    const { id, metadata } = await client.responses.create({ model: 'council/pair', input: 'Trees', background: true });
    const runId = metadata?.['run_id'] ?? '';
    await rest.until(runId, ({ status }) => status === 'paused');
    expect((await client.responses.retrieve(id)).status).to.equal('in_progress');
    await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
    await rest.until(runId, isOver);
    expect((await client.responses.retrieve(id)).output_text).to.equal('Draft 2 by Poet');
    const removed = await rest.send('PUT', '/api/councils/pair', { body: { model_options: null } });
    expect(rest.read(removed, 200, 'blueprint.json')).not.to.have.property('model_options');
    await rest.send('DELETE', '/api/councils/pair');
  });

  it('repeats a request with an Idempotency-Key without a second run', async () => {
    const request = { model: 'council', messages: [...messages('Trees')] };
    const headers = { 'Idempotency-Key': 'once' };
    const before = await runs();
    const [one, other] = await Promise.all([
      client.chat.completions.create(request, { headers }),
      client.chat.completions.create(request, { headers }),
    ]);
    expect(other).to.deep.equal(one);
    expect(await runs()).to.equal(before + 1);
    const changed = { model: 'council', messages: [...messages('Oaks')] };
    const once = { headers, maxRetries: 0 };
    expect(await rejected(client.chat.completions.create(changed, once))).to.have.property('status', 409);
  });

  it('gets errors as the classes that it documents', async () => {
    const request = { model: 'gpt-5', messages: [...messages('Trees')] };
    const unknown = await rejected(client.chat.completions.create(request));
    expect(unknown).to.be.an.instanceOf(OpenAI.NotFoundError);
    expect(unknown).to.include({ code: 'model_not_found', param: 'model' });
    const bad = await rejected(client.chat.completions.create({ ...request, model: 'council', n: 2 }));
    expect(bad).to.be.an.instanceOf(OpenAI.BadRequestError);
    expect(bad).to.include({ type: 'invalid_request_error', param: 'n' });
    const nobody = await rejected(client.responses.retrieve('resp_0'));
    expect(nobody).to.be.an.instanceOf(OpenAI.NotFoundError);
  });

  async function runs(): Promise<number> {
    return Number((await rest.get('/api/runs/?count=1')).headers.get('Total-Count'));
  }
});

async function rejected(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => expect.fail('It does not fail'),
    (error: unknown) => error,
  );
}
