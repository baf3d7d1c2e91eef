import { expect } from 'chai';
import OpenAI from 'openai';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { heldCouncil } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

describe('A response while all slots of runs are taken', () => {
  let service: RunningService;
  let client: OpenAI;
  let scripted: ScriptedModel;

  beforeEach(async () => {
    scripted = heldCouncil();
    service = await startService({ model: scripted, maxActiveRuns: 1 });
    client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none' });
    await client.responses.create({ model: 'council', input: 'Oaks', background: true });
    await untilTrue(() => scripted.held.length === 1);
  });
  afterEach(async () => {
    expect(service.faults).to.deep.equal([]);
    await service.stop();
  });

  it('is queued, and in progress when it has a slot', async () => {
    const { id } = await client.responses.create({ model: 'council', input: 'Elms', background: true });
    expect((await client.responses.retrieve(id)).status).to.equal('queued');
    const seen: string[] = [];
    for await (const event of await client.responses.retrieve(id, { stream: true })) {
      if (event.type === 'response.created') scripted.held[0]?.release();
      if ('response' in event) seen.push(event.response.status ?? '');
    }
    expect(seen).to.deep.equal(['queued', 'in_progress', 'completed']);
  });

  it('is cancelled 1 s after its client has gone', async () => {
    const leave = new AbortController();
    const stream = await client.responses.create(
      { model: 'council', input: 'Elms', stream: true },
      { signal: leave.signal },
    );
    let id = '';
    for await (const event of stream) {
      if (event.type !== 'response.created') continue;
      ({ id } = event.response);
      leave.abort();
    }
    await untilTrue(async () => (await client.responses.retrieve(id)).status === 'cancelled');
    expect(scripted.requests).to.have.lengthOf(1);
    scripted.held[0]?.release();
  });
});
