import { expect } from 'chai';
import type { ChannelMessage } from '../support/channel-client.js';
import { openChannel, refusedUpgrade } from '../support/channel-client.js';
import { rawExchange } from '../support/raw-exchange.js';
import type { RunningService } from '../support/running-service.js';
import type { HeldCall, ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';

describe('WebSocket /ws/council/{run_id}', () => {
  let service: RunningService;
  let model: ScriptedModel;

  const house = sharedService();
  const serve = async (script: Parameters<typeof scriptedModel>[0]): Promise<void> => {
    model = scriptedModel(script);
    service = await house.serve(model);
  };
  const serveAlone = async (script: Parameters<typeof scriptedModel>[0], overrides = {}): Promise<void> => {
    model = scriptedModel(script);
    service = await house.serveAlone(model, overrides);
  };
  const startRun = async (): Promise<string> => {
    const response = await fetch(`${service.url}/api/councils/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ input_topic: 'The sea' }),
    });
    const { run_id: runId } = (await response.json()) as { run_id: string };
    return runId;
  };
  const poll = async (runId: string): Promise<Record<string, unknown>> => {
    const response = await fetch(`${service.url}/api/councils/run/${runId}`);
    return (await response.json()) as Record<string, unknown>;
  };
  const nextHeld = async (calls: number): Promise<HeldCall> => {
    await model.called(calls);
    const [call] = model.held;
    if (call === undefined) throw new Error('No call is held');
    return call;
  };

  it('sends all messages of a run in order, then closes with 1000', async () => {
    await serve(() => 'hold');
    const runId = await startRun();
    const channel = openChannel(service.url, `/ws/council/${runId}`);
    await channel.until((message) => message.event === 'node_active');
    const answers = [
      'Draft A',
      '{"score": 6, "feedback": "more"}',
      'Draft B',
      '{"score": 9, "feedback": "fine"}',
      'Final',
    ];
    for (const [index, answer] of answers.entries()) (await nextHeld(index + 1)).release(answer);

    expect(await channel.closed).to.equal(1000);
    const active = (node: string, iteration: number | null): ChannelMessage => ({
      event: 'node_active',
      run_id: runId,
      node,
      iteration,
    });
    expect(channel.messages).to.deep.equal([
      { event: 'connected', run_id: runId, status: 'running' },
      active('master_agent', null),
      active('critic_agent', 1),
      active('master_agent', 1),
      active('critic_agent', 2),
      active('writer_agent', 2),
      active('done', 2),
      { event: 'run_complete', run_id: runId, final_draft: 'Final', critic_score: 9, iteration_count: 2 },
    ]);
  });

  it('sends a late joiner of a completed run connected, node done, run_complete', async () => {
    await serve(councilScript([8]));
    const runId = await startRun();
    await openChannel(service.url, `/ws/council/${runId}`).closed;
    const late = openChannel(service.url, `/ws/council/${runId}/`);
    expect(await late.closed).to.equal(1000);
    expect(late.messages.map((message) => message.event)).to.deep.equal(['connected', 'node_active', 'run_complete']);
    expect(late.messages[0]).to.deep.equal({ event: 'connected', run_id: runId, status: 'completed' });
    expect(late.messages[1]).to.deep.equal({ event: 'node_active', run_id: runId, node: 'done', iteration: 1 });
  });

  it('reports a failure with the same error as the poll', async () => {
    await serve(() => ({ error: new Error('The model has left') }));
    const runId = await startRun();
    const channel = openChannel(service.url, `/ws/council/${runId}`);
    expect(await channel.closed).to.equal(1000);
    const { error } = await poll(runId);
    expect(error).to.be.a('string').that.includes('The model has left');
    expect(channel.messages.at(-1)).to.deep.equal({ event: 'run_failed', run_id: runId, error });
  });

  it('sends a cancellation to all clients of the run', async () => {
    await serve(() => 'hold');
    const runId = await startRun();
    const channels = Array.from({ length: 20 }, () => openChannel(service.url, `/ws/council/${runId}`));
    await Promise.all(channels.map((channel) => channel.until((message) => message.event === 'node_active')));
    await fetch(`${service.url}/api/councils/run/${runId}/cancel`, { method: 'POST' });
    for (const channel of channels) {
      expect(await channel.closed).to.equal(1000);
      const last = { event: 'run_failed', run_id: runId, error: 'Cancelled by the user' };
      expect(channel.messages.at(-1)).to.deep.equal(last);
    }
  });

  it('sends a message only after a poll shows the same state', async () => {
    await serve(councilScript([6, 7, 8]));
    const runId = await startRun();
    const channel = openChannel(service.url, `/ws/council/${runId}`);
    await channel.until((message) => message.event === 'run_complete');
    expect((await poll(runId)).status).to.equal('completed');
  });

  it('sends an error for an unknown run and closes with 1000', async () => {
    await serve(councilScript([8]));
    for (const id of ['11111111-1111-4111-8111-111111111111', '%00', '%zz', 'a'.repeat(3000), 'run']) {
      const channel = openChannel(service.url, `/ws/council/${id}`);
      expect(await channel.closed).to.equal(1000);
      expect(channel.messages).to.have.length(1);
      expect(channel.messages[0]).to.have.property('event', 'error');
      expect(channel.messages[0]).to.have.property('message').that.includes('not found');
    }
  });

  it('ignores text from clients and closes with 1009 on a message over 4 KiB', async () => {
    await serve(() => 'hold');
    const runId = await startRun();
    const channel = openChannel(service.url, `/ws/council/${runId}`);
    await channel.until((message) => message.event === 'node_active');
    channel.socket.send('{"event":"approve"}');
    channel.socket.send('x'.repeat(4096));
    channel.socket.send('x'.repeat(4097));
    expect(await channel.closed).to.equal(1009);
    expect(channel.messages).to.have.length(2);
    expect((await poll(runId)).status).to.equal('running');
  });

  it('closes with 1008 on a message of more than 64 fragments, however small', async () => {
    await serve(() => 'hold');
    const runId = await startRun();
    const [within, past] = [
      openChannel(service.url, `/ws/council/${runId}`),
      openChannel(service.url, `/ws/council/${runId}`),
    ];
    for (const [{ socket, until }, fragments] of [
      [within, 64],
      [past, 65],
    ] as const) {
      await until((message) => message.event === 'node_active');
      for (let sent = 1; sent <= fragments; sent += 1) socket.send('', { fin: sent === fragments });
    }
    expect(await past.closed).to.equal(1008);
    expect(within.socket.readyState).to.equal(within.socket.OPEN);
  });

  it('refuses upgrades to other paths with a plain 404', async () => {
    await serve(councilScript([8]));
    for (const path of [
      '/',
      '/ws',
      '/ws/council',
      '/ws/council/',
      '/ws/council/a/b',
      '/api/health',
      '/api/councils/run',
    ]) {
      expect((await refusedUpgrade(service.url, path)).status, path).to.equal(404);
    }
  });

  for (const [what, start, status] of [
    ['a version that nobody speaks', 'GET /ws/council/x HTTP/1.1\r\nSec-WebSocket-Version: 5', 400],
    ['another method', 'POST /ws/council/x HTTP/1.1\r\nSec-WebSocket-Version: 13', 405],
  ] as const) {
    it(`refuses an upgrade of ${what} with a detail`, async () => {
      await serve(councilScript([8]));
      const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
      const head = [start, 'Host: localhost', 'Connection: Upgrade', 'Upgrade: websocket', key, '', ''].join('\r\n');
      const reply = await rawExchange(service.url, [head]);
      expect(reply.status).to.equal(status);
      expect(JSON.parse(reply.body)).to.have.all.keys('detail');
      expect(reply.head).to.match(status === 405 ? /\r\nAllow: GET/ : /\r\nSec-WebSocket-Version: 13/);
    });
  }

  it('closes every socket with 1012 when the service stops', async () => {
    await serveAlone(() => 'hold');
    const channels = await Promise.all(
      Array.from({ length: 10 }, async () => openChannel(service.url, `/ws/council/${await startRun()}`)),
    );
    await Promise.all(channels.map((channel) => channel.until((message) => message.event === 'connected')));
    await service.stop();
    for (const channel of channels) expect(await channel.closed).to.equal(1012);
  });

  it('follows a queued run from pending to its end', async () => {
    await serveAlone(() => 'hold', { maxActiveRuns: 1 });
    const first = await startRun();
    const second = await startRun();
    const channel = openChannel(service.url, `/ws/council/${second}`);
    expect(await channel.until((message) => message.event === 'connected')).to.deep.equal({
      event: 'connected',
      run_id: second,
      status: 'pending',
    });
    expect(channel.messages).to.have.length(1);
    await fetch(`${service.url}/api/councils/run/${first}/cancel`, { method: 'POST' });
    await channel.until((message) => message.event === 'node_active');
    await fetch(`${service.url}/api/councils/run/${second}/cancel`, { method: 'POST' });
    expect(await channel.closed).to.equal(1000);
  });
});
