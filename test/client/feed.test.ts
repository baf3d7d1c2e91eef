import { expect } from 'chai';
import type { FeedEvent } from '../../src/client/client.js';
import { CouncilClient } from '../../src/client/client.js';
import { allOf } from '../support/all-of.js';
import { systemWithoutBackoff } from '../support/client-system.js';
import { openCuttingProxy } from '../support/cutting-proxy.js';
import type { Reply } from '../support/fake-server.js';
import { answersStatus, fakeServer } from '../support/fake-server.js';
import { instantModel } from '../support/instant-model.js';
import { rejectionOf } from '../support/rejection.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';

const SEED = Number(process.env['SEED'] ?? 20260108);
const MAX_PIECE_BYTES = 8_000;

describe(`The client's feed of all runs (SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  let service: RunningService;
  let council: CouncilClient;
  let ids: readonly string[];

  before(async () => {
    service = await startService({ model: instantModel() });
    council = new CouncilClient({ url: service.url, system: systemWithoutBackoff() });
    const runs = await Promise.all(['Trees', 'Seas', 'Hills'].map((topic) => council.runs.start({ topic })));
    await Promise.all(runs.map((run) => run.result()));
    ids = runs.map(({ id }) => id);
  });
  after(() => service.stop());

  const recorded = async (): Promise<readonly unknown[]> =>
    (await Promise.all(ids.map((id) => allOf(council.run(id).events())))).flat();

  it('yields every event of every run once and in order, over broken connections', async () => {
    const proxy = await openCuttingProxy(service.url, () => 1 + Math.floor(random() * MAX_PIECE_BYTES));
    const through = new CouncilClient({ url: proxy.url, system: systemWithoutBackoff() });
    const events = await recorded();
    const received: FeedEvent[] = [];
    for await (const event of through.feed()) if (received.push(event) === events.length) break;
    await proxy.close();
    expect(proxy.cuts).to.be.greaterThan(1);
    const byRun = ids.flatMap((id) => received.filter(({ run_id: runId }) => runId === id));
    expect(byRun.map(({ seq, id, type, at, data, hash }) => ({ seq, id, type, at, data, hash }))).to.deep.equal(events);
  });

  it('continues after its cursor, in the same stream or a new one', async () => {
    const events = await recorded();
    const stream = council.feed();
    const received: FeedEvent[] = [];
    for await (const event of stream) if (received.push(event) === 5) break;
    for await (const event of stream) if (received.push(event) === 9) break;
    for await (const event of council.feed({ from: stream.cursor })) if (received.push(event) === events.length) break;
    expect(new Set(received.map(({ id }) => id))).to.have.property('size', events.length);
  });

  it('yields only the requested types, or only new events', async () => {
    const ended: string[] = [];
    for await (const { run_id: runId } of council.feed({ types: ['RunCompleted', 'RunFailed'] })) {
      if (ended.push(runId) === ids.length) break;
    }
    expect(ended.toSorted()).to.deep.equal(ids.toSorted());
    // Starts runs until the feed yields one, because a feed does not report when it begins.
    const delivered = new AbortController();
    const coming = (async () => {
      for await (const { data } of council.feed({ from: 'head', types: ['RunRequested'] })) return data;
      return null;
    })().finally(() => delivered.abort());
    while (!delivered.signal.aborted) await (await council.runs.start({ topic: 'New' })).result();
    expect(await coming).to.include({ inputTopic: 'New' });
  });

  it('updates its cursor from an id without an event', async () => {
    const eventStream =
      (text: string): Reply =>
      (response) =>
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(text);
    const server = await fakeServer([
      eventStream('retry: 1000\n\nid: 7\ndata: {"run_id":"x","seq":0,"type":"RunRequested","data":{}}\n\n'),
      eventStream('id: 9\n\n'),
      answersStatus(409, '{"detail":"It is of another log"}'),
    ]);
    const stream = new CouncilClient({ url: server.url, system: systemWithoutBackoff() }).feed({ from: 'head' });
    expect(await rejectionOf(allOf(stream))).to.include({ name: 'ConflictError', detail: 'It is of another log' });
    expect(server.calls.map(({ path, headers }) => [path, headers['last-event-id']])).to.deep.equal([
      ['/api/feed?from=head', undefined],
      ['/api/feed?from=head', '7'],
      ['/api/feed?from=head', '9'],
    ]);
    expect(stream.cursor).to.equal('9');
    await server.stop();
  });
});
