import { expect } from 'chai';
import { graphOf } from '../support/given.js';
import type { RichMessage } from '../../src/generated/schemas.js';
import type { LanguageModel } from '../../src/models/port.js';
import { schemaCheck } from '../support/schema-check.js';
import type { ChannelClient, ChannelMessage } from '../support/channel-client.js';
import { openChannel, refusedUpgrade } from '../support/channel-client.js';
import { pausedBefore, corruptRecord, startGodRun } from '../support/god-run.js';
import { recordOf } from '../support/record-of.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';
import { streamingModel } from '../support/streaming-model.js';

describe('WebSocket /ws/council/{run_id}?events=all', () => {
  let service: RunningService;

  const house = sharedService();
  const serve = async (model: LanguageModel): Promise<void> => {
    service = await house.serve(model);
  };
  const serveAlone = async (model: LanguageModel): Promise<void> => {
    service = await house.serveAlone(model);
  };
  const start = (): Promise<string> => restClient(service.url).start();
  const follow = (runId: string, from = ''): ChannelClient =>
    openChannel(service.url, `/ws/council/${runId}?events=all${from}`);
  const finished = async (): Promise<string> => {
    const runId = await start();
    await openChannel(service.url, `/ws/council/${runId}`).closed;
    return runId;
  };
  /** The events in the messages, which must equal the log after a position. */
  const expectRecord = async (runId: string, told: readonly ChannelMessage[], after = -1): Promise<void> => {
    const record = await recordOf(service.context.log, runId);
    const events = told.filter(({ event }) => event === 'run_event');
    expect(events).to.deep.equal(
      record.slice(after + 1).map((event) => ({ event: 'run_event', run_id: runId, ...event })),
    );
  };

  it('sends every event of a live run as exported, and messages of its nodes, and closes with 1000', async () => {
    const model = scriptedModel(() => 'hold');
    await serve(model);
    const runId = await start();
    const channel = follow(runId);
    await channel.until(({ event }) => event === 'node_start');
    const answers = ['Draft', '{"score": 9, "feedback": "fine"}', 'Final'];
    for (const [index, answer] of answers.entries()) {
      await model.called(index + 1);
      model.held[0]?.release(answer);
    }
    expect(await channel.closed).to.equal(1000);
    await expectRecord(runId, channel.messages);
    expect(channel.messages[0]).to.deep.equal({ event: 'connected', run_id: runId, status: 'running' });
    const node = (
      event: string,
      name: string,
      iteration: number | null,
      score: number | null = null,
    ): ChannelMessage => ({
      event,
      run_id: runId,
      node: name,
      iteration,
      score,
    });
    expect(channel.messages.slice(1).filter(({ event }) => event !== 'run_event')).to.deep.equal([
      node('node_start', 'master_agent', null),
      node('node_complete', 'master_agent', null),
      node('node_start', 'critic_agent', 1),
      node('node_complete', 'critic_agent', 1, 9),
      node('node_start', 'writer_agent', 1),
      node('node_complete', 'writer_agent', 1),
      { event: 'run_complete', run_id: runId, final_draft: 'Final', critic_score: 9, iteration_count: 1 },
    ]);
    expectBesideTheirEvents(channel.messages);
  });

  it('sends messages that match their schema', async () => {
    await serve(streamingModel(scriptedModel(councilScript([8]))));
    const runId = await start();
    const channel = follow(runId);
    await channel.closed;
    const validate = schemaCheck('rich-messages.json');
    const rich = new Set<string>([
      'run_event',
      'node_start',
      'node_complete',
      'token',
    ] satisfies RichMessage['event'][]);
    for (const message of channel.messages) expect(validate(message), message.event).to.equal(rich.has(message.event));
  });

  it('sends all events of a finished run', async () => {
    await serve(scriptedModel(councilScript([6, 8])));
    const runId = await finished();
    const late = follow(runId);
    expect(await late.closed).to.equal(1000);
    expect(late.messages[0]).to.deep.equal({ event: 'connected', run_id: runId, status: 'completed' });
    await expectRecord(runId, late.messages);
  });

  it('resumes after any event, also the last, without a gap or a repeat', async () => {
    await serve(scriptedModel(councilScript([6, 8])));
    const runId = await finished();
    const whole = follow(runId);
    await whole.closed;
    const { length } = await recordOf(service.context.log, runId);
    for (let after = -1; after < length + 2; after += 1) {
      const channel = follow(runId, `&from=${after}`);
      expect(await channel.closed).to.equal(1000);
      await expectRecord(runId, channel.messages, after);
      // After the last event the service sends only the end.
      const next = whole.messages.findIndex(({ seq }) => seq === after + 1);
      const rest = whole.messages.slice(next);
      expect(channel.messages.slice(1), `from=${after}`).to.deep.equal(rest);
    }
  });

  it('answers 422 to an invalid `from`, which the default stream ignores', async () => {
    await serve(scriptedModel(councilScript([8])));
    const runId = await finished();
    for (const from of ['', '-2', '1.5', 'x', '1&from=2', '9007199254740993']) {
      const path = `/ws/council/${runId}?events=all&from=${from}`;
      expect(await refusedUpgrade(service.url, path)).to.have.property('status', 422);
    }
    const plain = openChannel(service.url, `/ws/council/${runId}?from=x&events=some`);
    expect(await plain.closed).to.equal(1000);
    expect(plain.messages.map(({ event }) => event)).to.deep.equal(['connected', 'node_active', 'run_complete']);
  });

  it('sends an error for an unknown run and closes with 1000', async () => {
    await serve(scriptedModel());
    const channel = follow(NO_RUN);
    expect(await channel.closed).to.equal(1000);
    expect(channel.messages).to.deep.equal([{ event: 'error', message: `Run ${NO_RUN} not found` }]);
  });

  it('reports a failure at the end', async () => {
    await serve(scriptedModel(() => ({ error: new Error('The model has left') })));
    const runId = await start();
    const channel = follow(runId);
    expect(await channel.closed).to.equal(1000);
    const { error } = await restClient(service.url).poll(runId);
    expect(channel.messages.at(-1)).to.deep.equal({ event: 'run_failed', run_id: runId, error });
  });

  it('sends tokens between the start of their node and its completion, and records none', async () => {
    const model = scriptedModel((_request, index) =>
      index === 0 ? 'hold' : { text: '{"score": 8, "feedback": "Go on"}' },
    );
    await serve(streamingModel(model));
    const runId = await start();
    await model.called(1);
    model.held[0]?.release('Nobody hears this');
    const channel = follow(runId);
    expect(await channel.closed).to.equal(1000);
    for (const [index, { event, node, step }] of channel.messages.entries()) {
      if (event !== 'token') continue;
      const before = channel.messages.slice(0, index);
      const isOf = (message: ChannelMessage, name: string): boolean =>
        message.event === name && message['node'] === node;
      expect(before.filter((each) => isOf(each, 'node_start')).length).to.be.greaterThan(
        before.filter((each) => isOf(each, 'node_complete')).length,
      );
      expect(step).to.be.a('number');
    }
    const last = channel.messages.filter(({ event, node }) => event === 'token' && node === 'writer_agent');
    expect(last.map(({ text }) => text).join('')).to.equal('{"score": 8, "feedback": "Go on"}');
    await expectRecord(runId, channel.messages);
  });

  it('sends no tokens to a client while it does not read, and then the rest of the run', async () => {
    const model = scriptedModel((_request, index) =>
      index === 0 ? 'hold' : { text: '{"score": 8, "feedback": "Go on"}' },
    );
    let channel: ChannelClient | null = null;
    await serve({
      ...model,
      async ask(request, call) {
        const { onToken, answer } = request;
        if (answer === 'draft' && onToken !== undefined) {
          channel?.socket.pause();
          // 32 MB, because a loopback connection holds some MB in transit.
          for (let pieces = 0; pieces < 4_000; pieces += 1) {
            onToken('x'.repeat(8 * 1024));
            await new Promise(setImmediate);
          }
          channel?.socket.resume();
        }
        return await model.ask(request, call);
      },
    });
    const runId = await start();
    await model.called(1);
    channel = follow(runId);
    await channel.until(({ event }) => event === 'node_start');
    model.held[0]?.release('Draft');
    expect(await channel.closed).to.equal(1000);
    await expectRecord(runId, channel.messages);
  });

  it('closes with 1011 on a corrupt record, also for a new client', async () => {
    await serveAlone(scriptedModel(councilScript([8])));
    const runId = await startGodRun(service.context, graphOf('one -> two'));
    await pausedBefore(service.context, runId, 'one');
    const channel = follow(runId);
    await channel.until(({ type }) => type === 'RunReleased');
    await corruptRecord(service.context, runId);
    expect(await channel.closed).to.equal(1011);
    expect(channel.messages.some(({ type }) => type === 'RunFailed')).to.equal(false);
    expect(await follow(runId).closed).to.equal(1011);
    expect(service.faults).not.to.deep.equal([]);
  });

  it('is closed with 1012 when the service stops', async () => {
    await serveAlone(scriptedModel(() => 'hold'));
    const channel = follow(await start());
    await channel.until(({ event }) => event === 'node_start');
    await service.stop();
    expect(await channel.closed).to.equal(1012);
    expect(service.faults).to.deep.equal([]);
  });
});

/** Checks that each node_start and node_complete follows its event and precedes the next one. */
function expectBesideTheirEvents(told: readonly ChannelMessage[]): void {
  const types = { node_start: 'NodeStarted', node_complete: 'NodeCompleted', run_complete: 'RunCompleted' };
  told.forEach(({ event }, index) => {
    const type = Object.entries(types).find(([name]) => name === event)?.[1];
    if (type !== undefined) expect(told[index - 1]).to.include({ event: 'run_event', type });
  });
}
