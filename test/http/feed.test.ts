import { expect } from 'chai';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Position } from '../../src/eventlog/port.js';
import { runIdOf } from '../../src/run/events.js';
import { changedLog } from '../support/changed-log.js';
import type { CuttingProxy } from '../support/cutting-proxy.js';
import { openCuttingProxy } from '../support/cutting-proxy.js';
import type { EventStreamClient } from '../support/event-stream-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, corruptRecord, startGodRun } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { seededRandom } from '../support/seeded-random.js';
import type { LogLine, SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { pdfWith, uploaded } from '../support/upload-client.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20261122);
const CUTS = IS_SOAK ? 1_000 : 30;
/** The most bytes of an answer before a cut. */
const MAX_PIECE_BYTES = 20_000;
const BEAT_MS = 15_000;
const NODES = [{ id: 'write' }, { id: 'judge', type: 'critic' }];

/** The fields that the feed sends of an event. */
interface Shown {
  readonly run_id: string;
  readonly seq: number;
  readonly type: string;
}

describe('GET /api/feed', () => {
  let service: RunningService;
  let rest: RestClient;
  let open: EventStreamClient[];

  before(async () => {
    service = await startService({ model: instantModel() });
    rest = restClient(service.url);
    await rest.post('/api/councils/', { id: 'pair', name: 'Pair', nodes: NODES, edges: [] });
    await uploaded(service.url, pdfWith(['A document']));
    await finished('/api/councils/run');
    await Promise.all([finished('/api/councils/pair/run'), finished('/api/councils/run')]);
    await finished('/api/councils/pair/run');
  });
  after(() => service.stop());
  beforeEach(() => (open = []));
  afterEach(() => {
    for (const each of open) each.leave();
    expect(service.faults).to.deep.equal([]);
  });

  async function finished(path: string): Promise<string> {
    const start = await rest.post(path, { input_topic: 'Trees' });
    const { run_id: runId } = rest.read(start, 202, 'run-start.json');
    await rest.until(runId, isOver);
    return runId;
  }

  function follow(query = '', headers: Record<string, string> = {}): EventStreamClient {
    const stream = openEventStream(service.url, `/api/feed${query}`, headers);
    open.push(stream);
    return stream;
  }

  const ofPair = async (): Promise<ReadonlySet<string>> => {
    const first = (await recorded(service)).filter(({ data }) => 'blueprintId' in data && data.blueprintId === 'pair');
    return new Set(first.map(({ run_id }) => run_id));
  };

  it('sends the events of all runs in the order of the log, and no others', async () => {
    const record = await recorded(service);
    const stream = follow();
    await untilTrue(() => stream.events.length >= record.length);
    expect(shownIn(stream)).to.deep.equal(record);
    expect(stream.events.map(({ event }) => event)).to.deep.equal(record.map(({ type }) => type));
    expect(new Set(stream.events.map(({ id }) => id)).size).to.equal(record.length);
  });

  it('resumes after any event, by Last-Event-ID or from', async () => {
    const record = await recorded(service);
    const all = follow();
    await untilTrue(() => all.events.length >= record.length);
    for (let at = 0; at < record.length - 1; at += 7) {
      const { id = '' } = all.events[at] ?? {};
      for (const stream of [
        follow(`?from=${id}`),
        follow('', { 'Last-Event-ID': id }),
        follow('?from=head', { 'Last-Event-ID': id }),
      ]) {
        await untilTrue(() => stream.events.length >= record.length - at - 1);
        expect(shownIn(stream)).to.deep.equal(record.slice(at + 1));
      }
    }
  });

  it('sends only new events from the head', async () => {
    const stream = follow('?from=head');
    await stream.answered;
    const runId = await finished('/api/councils/run');
    await stream.until(({ event }) => event === 'RunCompleted');
    const page = await rest.get(`/api/runs/${runId}/events?limit=1000`);
    const { events } = rest.read(page, 200, 'run-events-page.json');
    expect(shownIn(stream)).to.deep.equal(events.map((event) => ({ run_id: runId, ...event })));
  });

  it('sends its cursor at once, so that a client that is cut off before the first event misses none', async () => {
    const stream = follow('?from=head');
    const place = (): string | undefined => stream.others.flatMap((each) => /^id: (.+)$/.exec(each)?.slice(1) ?? [])[0];
    await untilTrue(() => place() !== undefined);
    stream.leave();
    const runId = await finished('/api/councils/run');
    const again = follow('?from=head', { 'Last-Event-ID': place() ?? '' });
    await again.until(({ event }) => event === 'RunCompleted');
    expect(shownIn(again)[0]).to.include({ run_id: runId, seq: 0 });
  });

  it('filters by type and blueprint, also from the middle of a run', async () => {
    const [record, pair] = [await recorded(service), await ofPair()];
    expect(pair.size).to.equal(2);
    const all = follow();
    await untilTrue(() => all.events.length >= record.length);
    const isEnd = ({ type }: Shown): boolean => type === 'RunCompleted' || type === 'NodeStarted';
    for (const at of [-1, 3, record.findIndex(({ run_id }) => pair.has(run_id)) + 2]) {
      const from = at < 0 ? '' : `from=${all.events[at]?.id ?? ''}&`;
      for (const [query, isWanted] of [
        ['types=RunCompleted,%20NodeStarted', isEnd],
        ['blueprint_id=pair', ({ run_id }: Shown) => pair.has(run_id)],
        ['blueprint_id=pair&types=NodeStarted,RunCompleted', (each: Shown) => isEnd(each) && pair.has(each.run_id)],
      ] as const) {
        const wanted = record.slice(at + 1).filter(isWanted);
        const stream = follow(`?${from}${query}`);
        await untilTrue(() => stream.events.length >= wanted.length);
        expect(shownIn(stream), query).to.deep.equal(wanted);
      }
    }
  });

  it('answers 422 to an invalid cursor and to an unknown event type', async () => {
    const stream = follow();
    const { id } = await stream.until(() => true);
    const spoilt = (id.startsWith('0') ? '1' : '0') + id.slice(1);
    for (const cursor of ['', 'x', '0', 'HEAD', '-1', `${id}0`, id.slice(0, -1), spoilt, 'é', 'x'.repeat(300)]) {
      const { errors } = rest.problem(await rest.get(`/api/feed?from=${encodeURIComponent(cursor)}`), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['query', 'from']);
    }
    const headers = { 'Last-Event-ID': '12' };
    const { errors } = rest.problem(await rest.send('GET', '/api/feed?from=head', { headers }), 422);
    expect(errors?.[0]?.loc).to.deep.equal(['header', 'Last-Event-ID']);
    for (const query of ['types=', 'types=RunEnded', 'types=RunCompleted,', 'types=KeyAdded', 'from=head&from=head'])
      rest.problem(await rest.get(`/api/feed?${query}`), 422);
  });

  it('answers 409 to a cursor of another log', async () => {
    const other = await startService({ model: instantModel() });
    try {
      const { run_id: runId } = rest.read(
        await rest.post('/api/councils/run', { input_topic: 'Trees' }),
        202,
        'run-start.json',
      );
      await rest.until(runId, isOver);
      const { id } = await follow().until(({ event }) => event === 'RunCompleted');
      const refused = await restClient(other.url).get(`/api/feed?from=${id}`);
      expect(rest.problem(refused, 409).detail).to.contain('of another log');
    } finally {
      await other.stop();
    }
  });

  it('serves a hundred readers, refuses one more, and accepts another after one disconnects', async () => {
    for (let count = 0; count < 100; count += 1) follow('?from=head');
    await Promise.all(open.map(({ answered }) => answered));
    const refused = await rest.get('/api/feed?from=head');
    rest.problem(refused, 503);
    expect(refused.headers.get('Retry-After')).not.to.equal(null);
    open[0]?.leave();
    let status = 503;
    await untilTrue(async () => {
      const next = follow('?from=head');
      ({ status } = await next.answered);
      return status === 200;
    });
  });
});

describe('A feed', () => {
  it('sends its cursor with its beats while no event matches', async () => {
    const { after } = nodeSystem();
    const beats: (() => void)[] = [];
    const system: System = {
      ...nodeSystem(),
      after: (ms, callback) => (ms === BEAT_MS ? (beats.push(callback), () => undefined) : after(ms, callback)),
    };
    const service = await startService({ model: instantModel(), system });
    try {
      const rest = restClient(service.url);
      const stream = openEventStream(service.url, '/api/feed?types=RunPaused');
      const places = (): readonly string[] => stream.others.flatMap((each) => /^id: (.+)$/.exec(each)?.[1] ?? []);
      // A log reports its position about once every thousand events that the filter skips.
      const runIds = await Promise.all(Array.from({ length: 100 }, () => rest.start()));
      for (const runId of runIds) await rest.until(runId, isOver);
      const record = await recorded(service);
      const all = openEventStream(service.url, '/api/feed');
      await untilTrue(() => all.events.length >= record.length);
      const ids = all.events.map(({ id }) => id);
      await untilTrue(() => {
        beats.splice(0).forEach((beat) => beat());
        return places().length > 0;
      });
      expect(places().every((place) => ids.indexOf(place) >= 900)).to.equal(true);
      const told = places().length;
      const others = stream.others.length;
      beats.splice(0).forEach((beat) => beat());
      await untilTrue(() => stream.others.length > others);
      expect(stream.others.at(-1)).to.equal(':');
      expect(places()).to.have.length(told);
      stream.leave();
      all.leave();
    } finally {
      await service.stop();
    }
  });

  it('ends when the service stops', async () => {
    const service = await startService({ model: scriptedModel(() => 'hold') });
    await restClient(service.url).start();
    const stream = openEventStream(service.url, '/api/feed');
    await stream.until(({ event }) => event === 'NodeStarted');
    await service.stop();
    expect(await stream.over).to.equal('ended');
    expect(service.faults).to.deep.equal([]);
  });

  it('omits a run with a corrupt record and sends the others', async () => {
    const service = await startService({ model: instantModel() });
    const rest = restClient(service.url);
    const runId = await startGodRun(service.context, graphOf('one -> two'));
    await pausedBefore(service.context, runId, 'one');
    const stream = openEventStream(service.url, '/api/feed');
    await stream.until(({ event }) => event === 'RunReleased');
    const shown = stream.events.length;
    await corruptRecord(service.context, runId);
    const other = await rest.start();
    await rest.until(other, isOver);
    await stream.until(({ event }) => event === 'RunCompleted');
    expect(
      new Set(
        shownIn(stream)
          .slice(shown)
          .map((each) => each.run_id),
      ),
    ).to.deep.equal(new Set([other]));
    const late = openEventStream(service.url, '/api/feed');
    await late.until(({ event }) => event === 'RunCompleted');
    expect(new Set(shownIn(late).map((each) => each.run_id))).to.deep.equal(new Set([other]));
    stream.leave();
    late.leave();
    await service.stop();
  });
});

describe(`A feed of one log on two instances (SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  let dir: TempDir;
  let shared: SharedLog;
  let lines: LogLine[];
  let services: RunningService[];

  beforeEach(async () => {
    dir = tempDir();
    shared = await openSharedLog(dir.path);
    lines = [shared.line(), shared.line()];
    services = await Promise.all(
      lines.map(({ log }) =>
        startService({ model: instantModel(), decorate: (own) => changedLog(log, { close: () => own.close() }) }),
      ),
    );
  });
  afterEach(async () => {
    await Promise.all(services.map((each) => each.stop()));
    await shared.close();
    dir.remove();
  });

  it(`yields the events of the log in order, over ${CUTS} broken connections`, async () => {
    const proxies: CuttingProxy[] = await Promise.all(
      services.map(({ url }) => openCuttingProxy(url, () => 1 + Math.floor(random() * MAX_PIECE_BYTES))),
    );
    const cuts = (): number => proxies.reduce((sum, proxy) => sum + proxy.cuts, 0);
    let goal = Number.POSITIVE_INFINITY;

    async function joined(): Promise<readonly Shown[]> {
      const all: Shown[] = [];
      for (let last = ''; all.length < goal;) {
        const { url = '' } = proxies[random() < 0.5 ? 0 : 1] ?? {};
        const stream = openEventStream(url, '/api/feed', last === '' ? {} : { 'Last-Event-ID': last });
        let isOver = false;
        void stream.over.then(() => (isOver = true));
        await untilTrue(() => isOver || all.length + stream.events.length >= goal);
        all.push(...shownIn(stream));
        last = stream.events.at(-1)?.id ?? last;
        stream.leave();
      }
      return all;
    }

    const readers = [joined(), joined(), joined()];
    const clients = services.map(({ url }) => restClient(url));
    while (cuts() < CUTS) {
      await Promise.all(clients.map(async (rest) => rest.until(await rest.start(), isOver)));
    }
    const record = await Promise.all(services.map(recorded));
    goal = record[0]?.length ?? 0;
    for (const each of await Promise.all(readers)) expect(each).to.deep.equal(record[0]);
    await Promise.all(proxies.map((proxy) => proxy.close()));
  });

  it('continues without a gap or a repeat when its subscription drops', async () => {
    const [one, two] = services.map(({ url }) => restClient(url));
    const [line, other] = [lines[0] ?? expect.fail(), services[1] ?? expect.fail()];
    const stream = openEventStream(services[0]?.url ?? '', '/api/feed');
    await one?.until(await one.start(), isOver);
    for (let round = 0; round < 3; round += 1) {
      line.turn('down');
      await two?.until(await two.start(), isOver);
      line.turn('up');
      await two?.until(await two.start(), isOver);
    }
    const record = await recorded(other);
    await untilTrue(() => stream.events.length >= record.length);
    expect(shownIn(stream)).to.deep.equal(record);
    stream.leave();
  });

  it('answers 409 to a cursor past the end of the log, as after restoring an older copy', async () => {
    const [one, two] = services;
    if (one === undefined || two === undefined) return expect.fail();
    const rest = restClient(one.url);
    await rest.until(await rest.start(), isOver);
    const stream = openEventStream(one.url, '/api/feed');
    const { id } = await stream.until(({ event }) => event === 'RunCompleted');
    stream.leave();
    const head = (await shared.log.head()) ?? expect.fail();
    const older = changedLog(lines[1]?.log ?? shared.log, {
      head: () => Promise.resolve(String(Number(head) - 1).padStart(head.length, '0') as Position),
      close: () => Promise.resolve(),
    });
    const restored = await startService({
      model: instantModel(),
      decorate: (own) => changedLog(older, { close: () => own.close() }),
    });
    const refused = await restClient(restored.url).get(`/api/feed?from=${id}`);
    expect(rest.problem(refused, 409).detail).to.contain('past the end');
    await restored.stop();
  });
});

/** The events of all runs in the log, in the form in which the feed must send them. */
async function recorded({ context }: RunningService): Promise<readonly (Shown & { readonly data: object })[]> {
  const all = [];
  for await (const event of context.log.readAll(null, { categories: ['run'] })) {
    const { revision: seq, id, type, metadata } = event;
    const runId = runIdOf(event.stream) ?? expect.fail(event.stream);
    const data = JSON.parse(event.data) as object;
    all.push({ run_id: runId, seq, id, type, at: metadata['occurredAt'], data, hash: metadata['hash'] });
  }
  return all;
}

function shownIn({ events }: EventStreamClient): readonly Shown[] {
  return events.map(({ data }) => JSON.parse(data) as Shown);
}
