import { expect } from 'chai';
import { setMaxListeners } from 'node:events';
import { PassThrough } from 'node:stream';
import { serveChannel } from '../../src/ws/channel.js';
import { nodeSystem } from '../../src/system/system.js';
import { elementAt } from '../../src/system/element.js';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import type { ChannelClient, Told } from '../support/channel-client.js';
import { openChannel } from '../support/channel-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { decision, startGodRun } from '../support/god-run.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { streamingModel } from '../support/streaming-model.js';
import { untilTrue } from '../support/until-true.js';
import { slicesOf } from '../support/slices-of.js';

/** Time between pings in milliseconds. */
const PING_MS = 20_000;
/** Who watch without a connection: several slices. */
const WATCHERS = process.env['SOAK'] === undefined ? 300 : 1_000;
/** More than are told in one turn. */
const CROWD = 70;
const DRAFT = 'The sea is wide, and so on.';
const GRAPH = fixedGraph({ timeoutMs: 10_000, maxAttempts: 4 });

describe('A crowd that watches one run', () => {
  let service: RunningService;
  let rest: RestClient;
  /** What the service does in later turns, while the test holds it back. */
  let due: (() => void)[];
  let isHeld: boolean;
  /** Begins the next round of pings. */
  let beat: () => void;
  /** Whoever watches without a connection. */
  let gone: AbortController;

  beforeEach(async () => {
    [due, isHeld, gone] = [[], false, new AbortController()];
    setMaxListeners(0, gone.signal);
    const { soon: really, after: later, ...system } = nodeSystem();
    const soon = (callback: () => void): void => (isHeld ? void due.push(callback) : really(callback));
    const after = (ms: number, callback: () => void): (() => void) => {
      if (ms === PING_MS) beat = callback;
      return later(ms, callback);
    };
    const held = { ...system, after, soon };
    service = await startService({
      model: streamingModel(scriptedModel(() => ({ text: DRAFT }))),
      system: held,
      slices: slicesOf(50, held),
    });
    rest = restClient(service.url);
  });
  afterEach(async () => {
    gone.abort();
    await service.stop();
  });

  /** The next slice; false: there is none. */
  const turn = (): boolean => {
    const now = due.splice(0);
    for (const callback of now) callback();
    return now.length > 0;
  };
  const pausedRun = (): Promise<string> => startGodRun(service.engine, GRAPH);
  const isPause = ({ event, type }: Told): boolean => event === 'run_paused' || type === 'RunReleased';
  const isEnd = ({ event }: Told): boolean => event === 'run_failed';
  const anyTold = (channels: readonly ChannelClient[]): Promise<unknown> =>
    Promise.race(channels.map(({ until }) => until(isEnd)));

  it(`of ${WATCHERS} lets another request be answered before the last of them is told`, async () => {
    const runId = await pausedRun();
    const { views, feed } = service.engine;
    let [states, events] = [0, 0];
    const onState = (): void => void (states += 1);
    const onEvent = ({ type }: { readonly type: string }): void => void (events += type === 'RunFailed' ? 1 : 0);
    const { signal } = gone;
    for (let n = 0; n < WATCHERS; n += 1) {
      expect(await views.watch(runId, { onState, signal })).to.equal(true);
      void feed.follow(runId, { from: 0, onEvent, signal });
    }
    await untilTrue(() => states === WATCHERS);
    [states, isHeld] = [0, true];
    await service.engine.registry.cancel(runId);
    await untilTrue(() => events > 0 || (turn(), false));
    const { status } = await fetch(`${service.url}/api/health`);
    expect([status, states > 0 && states < WATCHERS, events > 0 && events < WATCHERS]).to.deep.equal([200, true, true]);
    while (turn());
    expect(events).to.equal(WATCHERS);
    expect(states % WATCHERS).to.equal(0);
  });

  it('is told every event once and then closed, whoever comes and goes between its slices', async () => {
    const runId = await pausedRun();
    const path = `/ws/council/${runId}`;
    const channels = Array.from({ length: CROWD }, () => openChannel(service.url, path));
    const rich = Array.from({ length: CROWD }, () => openChannel(service.url, `${path}?events=all`));
    await Promise.all(channels.map(({ until }) => until(isPause)));
    await Promise.all(rich.map(({ until }) => until(isPause)));
    const streams = Array.from({ length: CROWD }, () => openEventStream(service.url, `/api/runs/${runId}/stream`));
    await Promise.all(streams.map(({ until }) => until(({ event }) => event === 'RunReleased')));

    isHeld = true;
    await service.engine.registry.cancel(runId);
    await anyTold(channels);
    turn();
    await anyTold(rich);
    const lost = [channels, rich].map((each) => elementAt(each, CROWD - 1));
    for (const { socket } of lost) socket.terminate();
    const late = [path, `${path}?events=all`].map((each) => openChannel(service.url, each));
    for (const { until } of late) await until(isEnd);
    while (turn());
    isHeld = false;

    const page = await rest.get(`/api/runs/${runId}/events?limit=1000`);
    const { events } = rest.read(page, 200, 'run-events-page.json');
    const seqs = events.map(({ seq }) => seq);
    for (const each of [...channels, ...rich, ...late]) {
      if (lost.includes(each)) continue;
      expect(await each.closed).to.equal(1000);
      expect(each.told.filter(isEnd)).to.have.length(1);
      expect(each.told.at(-1)?.event).to.equal('run_failed');
    }
    for (const { told } of [...rich.slice(0, -1), ...late.slice(1)])
      expect(told.filter(({ event }) => event === 'run_event').map(({ seq }) => seq)).to.deep.equal(seqs);
    for (const stream of streams) {
      expect(await stream.over).to.equal('ended');
      expect(stream.events.map(({ id }) => Number(id))).to.deep.equal(seqs);
    }
    expect(service.faults).to.deep.equal([]);
  });

  it('is sent in one write what has come before its turn', async () => {
    const runId = await pausedRun();
    const { engine } = service;
    for (let n = 0; n < CROWD; n += 1)
      await engine.views.watch(runId, { onState: () => undefined, signal: gone.signal });
    const sent: (readonly string[])[] = [];
    const send = (_: unknown, messages: readonly { readonly event: string }[]): boolean => {
      sent.push(messages.map(({ event }) => event));
      return true;
    };
    const { socket } = openChannel(service.url, `/ws/council/${runId}`);
    const peer = { socket, connection: new PassThrough() };
    serveChannel(peer, runId, { views: engine.views, sendQueue: { send }, slices: engine.slices, onFault: String });
    await untilTrue(() => sent.length > 0);
    isHeld = true;
    await engine.registry.decidePause(runId, decision('approve'));
    await untilTrue(async () => (await engine.queries.state(runId))?.phase.status === 'paused');
    while (turn());
    expect(sent).to.deep.equal([
      ['connected', 'node_active', 'run_paused'],
      ['run_resumed', 'node_active', 'run_paused'],
    ]);
    socket.terminate();
  });

  it('is told each piece of a draft between the start and the end of its node', async () => {
    const runId = await pausedRun();
    const channels = Array.from({ length: CROWD }, () => openChannel(service.url, `/ws/council/${runId}?events=all`));
    await Promise.all(channels.map(({ until }) => until(isPause)));
    isHeld = true;
    await service.engine.registry.decidePause(runId, decision('approve'));
    const isComplete = ({ event }: Told): boolean => event === 'node_complete';
    for (const { told } of channels) {
      await untilTrue(() => (turn(), told.some(isComplete)));
      const of = told.slice(
        told.findIndex(({ event }) => event === 'node_start'),
        1 + told.findIndex(isComplete),
      );
      expect(of.flatMap(({ event, text }) => (event === 'token' ? [text] : [])).join('')).to.equal(DRAFT);
      expect(told.filter(({ event }) => event === 'token').length).to.equal(
        of.filter(({ event }) => event === 'token').length,
      );
    }
  });

  it('is pinged in slices, between which another request is answered', async () => {
    const runId = await pausedRun();
    const channels = Array.from({ length: CROWD }, () => openChannel(service.url, `/ws/council/${runId}`));
    await Promise.all(channels.map(({ until }) => until(isPause)));
    let pinged = 0;
    for (const { socket } of channels) socket.on('ping', () => (pinged += 1));
    isHeld = true;
    beat();
    await untilTrue(() => pinged > 0);
    expect((await fetch(`${service.url}/api/health`)).status).to.equal(200);
    expect(pinged).to.be.lessThan(CROWD);
    while (turn());
    await untilTrue(() => pinged === CROWD);
  });

  it('is told what it waits for when the service stops between its slices', async () => {
    const runId = await pausedRun();
    const channels = Array.from({ length: CROWD }, () => openChannel(service.url, `/ws/council/${runId}`));
    await Promise.all(channels.map(({ until }) => until(isPause)));
    isHeld = true;
    await service.engine.registry.cancel(runId);
    await anyTold(channels);
    await service.stop();
    for (const { told, closed } of channels) {
      expect(await closed).to.equal(1000);
      expect(told.at(-1)?.event).to.equal('run_failed');
    }
  });
});
