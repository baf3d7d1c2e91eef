import { expect } from 'chai';
import { elementAt } from '../../src/system/element.js';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import type { ChannelMessage } from '../support/channel-client.js';
import { openChannel } from '../support/channel-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { startGodRun } from '../support/god-run.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { streamingModel } from '../support/streaming-model.js';

/** The number of clients of each kind. */
const CROWD = 70;
const DRAFT = 'The sea is wide, and so on.';
const GRAPH = fixedGraph({ timeoutMs: 10_000, maxAttempts: 4 });

describe('A crowd of clients of one run', () => {
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    service = await startService({ model: streamingModel(scriptedModel(() => ({ text: DRAFT }))) });
    rest = restClient(service.url);
  });
  afterEach(() => service.stop());

  const pausedRun = (): Promise<string> => startGodRun(service.context, GRAPH);
  const isPause = ({ event, type }: ChannelMessage): boolean => event === 'run_paused' || type === 'RunReleased';
  const isEnd = ({ event }: ChannelMessage): boolean => event === 'run_failed';

  it('receives every event once before its sockets close, while other clients connect and leave', async () => {
    const runId = await pausedRun();
    const path = `/ws/council/${runId}`;
    const channels = Array.from({ length: CROWD }, () => openChannel(service.url, path));
    const rich = Array.from({ length: CROWD }, () => openChannel(service.url, `${path}?events=all`));
    await Promise.all(channels.map(({ until }) => until(isPause)));
    await Promise.all(rich.map(({ until }) => until(isPause)));
    const streams = Array.from({ length: CROWD }, () => openEventStream(service.url, `/api/runs/${runId}/stream`));
    await Promise.all(streams.map(({ until }) => until(({ event }) => event === 'RunReleased')));

    const lost = [channels, rich].map((each) => elementAt(each, CROWD - 1));
    for (const { socket } of lost) socket.terminate();
    await service.context.registry.cancel(runId);
    const late = [path, `${path}?events=all`].map((each) => openChannel(service.url, each));

    for (const each of [...channels, ...rich, ...late]) {
      if (lost.includes(each)) continue;
      expect(await each.closed).to.equal(1000);
      expect(each.messages.filter(isEnd)).to.have.length(1);
      expect(each.messages.at(-1)?.event).to.equal('run_failed');
    }
    const page = await rest.get(`/api/runs/${runId}/events?limit=1000`);
    const { events } = rest.read(page, 200, 'run-events-page.json');
    const seqs = events.map(({ seq }) => seq);
    for (const { messages: told } of [...rich.slice(0, -1), ...late.slice(1)])
      expect(told.filter(({ event }) => event === 'run_event').map(({ seq }) => seq)).to.deep.equal(seqs);
    for (const stream of streams) {
      expect(await stream.over).to.equal('ended');
      expect(stream.events.map(({ id }) => Number(id))).to.deep.equal(seqs);
    }
    expect(service.faults).to.deep.equal([]);
  });
});
