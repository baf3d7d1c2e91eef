import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect } from 'chai';
import { CHAPTER, holding, report } from '../../support/council-of-chapters.js';
import type { RestClient } from '../../support/rest-client.js';
import { isOver, restClient } from '../../support/rest-client.js';
import type { RunningService } from '../../support/running-service.js';
import { startService } from '../../support/running-service.js';
import type { ScriptedModel } from '../../support/scripted-model.js';
import { scriptedModel } from '../../support/scripted-model.js';
import { untilTrue } from '../../support/until-true.js';

describe('The progress of a council in a council', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;

  beforeEach(async () => {
    model = scriptedModel(holding(() => true));
    service = await startService({ model });
    rest = restClient(service.url);
    for (const body of [CHAPTER, report({ label: 'Chapters', max_parallel: 2 })])
      expect((await rest.post('/api/councils/', body)).status).to.equal(201);
  });
  afterEach(() => service.stop());

  async function start(): Promise<string> {
    const reply = await rest.post('/api/councils/report/run', { input_topic: 'Trees' });
    const runId = rest.read(reply, 202, 'run-start.json').run_id;
    await model.called(3);
    return runId;
  }

  /** Ends the next chapters, one after the other. */
  async function release(from: number, to: number): Promise<void> {
    for (let ended = from; ended < to; ended += 1) {
      model.held[0]?.release('Text');
      await model.called(Math.min(ended + 4, 4));
    }
  }

  it('says to clients of models how many of its runs have ended', async () => {
    const reply = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ model: 'council/report', stream: true, messages: [{ role: 'user', content: 'Trees' }] }),
    });
    const text = reply.text();
    await model.called(3);
    await release(0, 3);
    const lines = [...(await text).matchAll(/Chapters: [^"\\]*/g)].map(([line]) => line.trim());
    expect(lines).to.deep.equal([
      'Chapters: at work',
      'Chapters: 1 of 3 runs ended',
      'Chapters: 2 of 3 runs ended',
      'Chapters: 3 of 3 runs ended',
      'Chapters: draft written',
    ]);
  });

  it('says it to assistants, in the text of await_run and while that call waits', async () => {
    const runId = await start();
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`)));
    const told: (string | undefined)[] = [];
    const awaited = async (seconds: number): Promise<string> => {
      const call = { name: 'await_run', arguments: { run_id: runId, timeout_s: seconds } };
      const { content } = await client.callTool(call, { onprogress: ({ message }) => void told.push(message) });
      return JSON.stringify(content);
    };
    await release(0, 1);
    await untilTrue(async () => (await awaited(0)).includes('Chapters: 1 of 3 runs ended, 1 draft'));
    told.length = 0;
    const waiting = awaited(50);
    await untilTrue(() => told.length > 0);
    await release(1, 3);
    expect(await waiting).to.include('is completed');
    const progress = [1, 2, 3].map((ended) => `node "chapters" is active, Chapters: ${ended} of 3 runs ended, 1 draft`);
    expect(told).to.include.members(progress.slice(0, 2));
    expect(told.at(-1)).to.include('node "edit" is active');
    expect(isOver(await rest.poll(runId))).to.equal(true);
    await client.close();
  });
});
