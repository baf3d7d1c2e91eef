import { expect } from 'chai';
import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ClientSystem, RunEvent } from '../../src/client/client.js';
import { CouncilClient, ServerError, UnreachableError } from '../../src/client/client.js';
import { allOf } from '../support/all-of.js';
import { systemWithoutBackoff } from '../support/client-system.js';
import type { CuttingProxy } from '../support/cutting-proxy.js';
import { openCuttingProxy } from '../support/cutting-proxy.js';
import type { FakeServer, Reply } from '../support/fake-server.js';
import { answersStatus, fakeServer, hangs, resets, sends } from '../support/fake-server.js';
import { graphOf } from '../support/given.js';
import { approveAll, pausedBefore, startGodRun } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import { manualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260108);
const CUTS = IS_SOAK ? 1_000 : 30;
/** The most bytes of an answer before a cut; the complete record of a run is about twice as long. */
const MAX_PIECE_BYTES = 8_000;
const WATCHERS = 100;

describe(`The client's stream of a run (SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService({ model: instantModel() });
    council = new CouncilClient({ url: service.url, system: systemWithoutBackoff() });
  });
  after(() => service.stop());

  const exported = async (runId: string): Promise<readonly unknown[]> => {
    const rest = restClient(service.url);
    return rest.read(await rest.get(`/api/runs/${runId}/events?limit=1000`), 200, 'run-events-page.json').events;
  };
  const pausedRun = async (): Promise<string> => {
    const runId = await startGodRun(service.context, graphOf('write -> polish'));
    await pausedBefore(service.context, runId, 'write');
    return runId;
  };

  it(`yields exactly the events of the export, over ${CUTS} broken connections`, async () => {
    const proxy: CuttingProxy = await openCuttingProxy(service.url, () => 1 + Math.floor(random() * MAX_PIECE_BYTES));
    const through = new CouncilClient({ url: proxy.url, system: systemWithoutBackoff() });
    while (proxy.cuts < CUTS) {
      const { id } = await council.runs.start({ topic: 'Trees' });
      const followed = await Promise.all(Array.from({ length: 4 }, () => allOf(through.run(id).events())));
      const recorded = await exported(id);
      for (const events of followed) expect(events).to.deep.equal(recorded);
    }
    await proxy.close();
    expect(service.faults).to.deep.equal([]);
  });

  it('begins after `from`, exposes `lastSeq`, and continues where a loop ended', async () => {
    const run = await council.runs.start({ topic: 'Trees' });
    await run.result();
    const recorded = await exported(run.id);
    const stream = run.events({ from: 3 });
    expect(stream.lastSeq).to.equal(3);
    const first: RunEvent[] = [];
    for await (const event of stream) if (first.push(event) === 2) break;
    expect(stream.lastSeq).to.equal(5);
    expect([...first, ...(await allOf(stream))]).to.deep.equal(recorded.slice(4));
    expect(stream.lastSeq).to.equal(recorded.length - 1);
    expect(await allOf(stream)).to.deep.equal([]);
  });

  it('narrows the type of each event by its name', async () => {
    const run = await council.runs.start({ topic: 'Trees' });
    let draft: string | null = null;
    for await (const event of run.events()) if (event.type === 'RunCompleted') draft = event.data.finalDraft;
    expect(draft).to.equal((await run.result()).final_draft);
  });

  it(`serves ${WATCHERS} concurrent readers to the end`, async () => {
    const runId = await pausedRun();
    const watched = Array.from({ length: WATCHERS }, () => allOf(council.run(runId).events()));
    const results = Array.from({ length: WATCHERS }, () => council.run(runId).result());
    await approveAll(service.context, runId);
    const recorded = await exported(runId);
    for (const events of await Promise.all(watched)) expect(events).to.deep.equal(recorded);
    for (const { status } of await Promise.all(results)) expect(status).to.equal('completed');
  });

  it('ends a pending wait for an event on return or abort', async () => {
    const runId = await pausedRun();
    const waiting = council.run(runId).events({ from: 100 })[Symbol.asyncIterator]();
    const next = waiting.next();
    await waiting.return?.();
    expect(await next).to.deep.equal({ done: true, value: undefined });
    const reason = new Error('Not any more');
    const abort = new AbortController();
    const result = council.run(runId).result({ signal: abort.signal });
    setImmediate(() => abort.abort(reason));
    expect(await rejectionOf(result)).to.equal(reason);
    expect(getEventListeners(abort.signal, 'abort')).to.deep.equal([]);
  });

  it('sends no request if its signal has already aborted', async () => {
    const server = await fakeServer([resets]);
    const client = new CouncilClient({ url: server.url });
    expect(await allOf(client.run(NO_RUN).events({ signal: AbortSignal.abort() }))).to.deep.equal([]);
    expect(server.calls).to.deep.equal([]);
    await server.stop();
  });
});

describe("The client's stream from a faulty service", () => {
  const RECORD = [
    { seq: 0, type: 'RunRequested', data: {} },
    { seq: 1, type: 'RunStarted', data: {} },
    { seq: 2, type: 'RunFailed', data: {} },
  ];
  const blocks = (...seqs: readonly number[]): string =>
    seqs.map((seq) => `id: ${seq}\nevent: x\ndata: ${JSON.stringify(RECORD[seq])}\n\n`).join('');
  const told =
    (text: string): Reply =>
    (response) =>
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(text);
  let server: FakeServer<unknown>;

  const followed = async (
    replies: readonly Reply[],
    system: ClientSystem = systemWithoutBackoff(),
  ): Promise<readonly unknown[]> => {
    server = await fakeServer(replies);
    return await allOf(new CouncilClient({ url: server.url, system }).run(NO_RUN).events());
  };
  afterEach(() => server.stop());

  it('reconnects when an answer ends without a terminal event', async () => {
    expect(await followed([told(blocks(0)), told(''), told(blocks(1)), told(blocks(2))])).to.deep.equal(RECORD);
    expect(server.calls.map(({ headers }) => headers['last-event-id'])).to.deep.equal([undefined, '0', '0', '1']);
  });

  it('ends at 204 even without a terminal event', async () => {
    expect(await followed([told(blocks(0)), answersStatus(204)])).to.deep.equal(RECORD.slice(0, 1));
    expect(server.calls).to.have.lengthOf(2);
  });

  const cut: Reply = (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(blocks(0), () => response.socket?.resetAndDestroy());
  };

  it('continues after temporary faults: resets, cuts, 429 and 5xx', async () => {
    const faults = [resets, cut, ...[429, 500, 502, 503, 504].map((status) => answersStatus(status))];
    expect(await followed([...faults, told(blocks(0, 1, 2))])).to.deep.equal(RECORD);
  });

  it('drops a repeated event and an incomplete event', async () => {
    const half = blocks(2).slice(0, -1);
    expect(await followed([told(blocks(0, 1, 1) + half), told(blocks(0, 1, 2))])).to.deep.equal(RECORD);
  });

  it('reconnects when an event is missing', async () => {
    expect(await followed([told(blocks(0, 2)), told(blocks(1, 2))])).to.deep.equal(RECORD);
  });

  it('parses CRLF, comments and chunks that end inside a character', async () => {
    const text = `:\r\n\r\nid: 0\r\ndata: {"seq":0,"type":"RunFailed","data":{"error":"größer"}}\r\n\r\n`;
    const bytes = Buffer.from(text);
    const sent: Reply = (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
      const at = bytes.indexOf('ö') + 1;
      response.write(bytes.subarray(0, at), () => setImmediate(() => response.end(bytes.subarray(at))));
    };
    expect(await followed([sent])).to.deep.equal([{ seq: 0, type: 'RunFailed', data: { error: 'größer' } }]);
  });

  it('fails at once on a permanent error, and after repeated 500 answers', async () => {
    for (const [status, name] of [
      [401, 'UnauthorizedError'],
      [403, 'ForbiddenError'],
      [404, 'NotFoundError'],
      [410, 'NotFoundError'],
      [422, 'InvalidError'],
      [418, 'CouncilError'],
    ] as const) {
      const error = await rejectionOf(followed([answersStatus(status, '{"detail":"No"}'), told(blocks(0, 1, 2))]));
      expect(error).to.include({ name, status, detail: 'No', message: 'No' });
      await server.stop();
    }
    expect(await rejectionOf(followed([answersStatus(500, '{"detail":"Damaged"}')]))).to.be.instanceOf(ServerError);
    expect(server.calls).to.have.lengthOf(4);
  });

  it('fails when several answers in a row are not event streams', async () => {
    for (const wrong of [sends('<html>Sign in'), told('data: what\n\n')]) {
      expect(await followed([wrong, wrong, wrong, told(blocks(0, 1, 2))])).to.deep.equal(RECORD);
      await server.stop();
      expect(await rejectionOf(followed([wrong]))).to.have.property('name', 'UnexpectedAnswerError');
      expect(server.calls).to.have.lengthOf(4);
      await server.stop();
    }
  });

  it('waits for Retry-After, or else for a random and growing time', async () => {
    const waits: number[] = [];
    const system: ClientSystem = {
      ...systemWithoutBackoff(),
      random: () => 0.5,
      after: (delayMs, callBack) => {
        if (delayMs === 60_000) return () => undefined;
        waits.push(delayMs);
        setImmediate(callBack);
        return () => undefined;
      },
    };
    const busy: Reply = (response) => response.writeHead(429, { 'Retry-After': '7' }).end();
    await followed(
      [busy, ...Array.from({ length: 7 }, () => answersStatus(503)), told(blocks(0)), told(blocks(1, 2))],
      system,
    );
    expect(waits).to.deep.equal([7_250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 250]);
  });

  it('leaves no connection, timer or listener wherever it is aborted or returned', async () => {
    const endless: Reply = (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(blocks(0));
    };
    server = await fakeServer((_, index) => [hangs, endless, answersStatus(503), told(blocks(0))][index % 4] ?? hangs);
    const { system, open } = countedTimers();
    const client = new CouncilClient({ url: server.url, system });
    for (let turns = 0; turns < 40; turns += 1) {
      const abort = new AbortController();
      const reading = allOf(client.run(NO_RUN).events({ signal: abort.signal }));
      const status = client
        .run(NO_RUN)
        .status({ signal: abort.signal })
        .catch((error: unknown) => error);
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
      abort.abort(new Error('Enough'));
      await reading;
      await status;
      expect(getEventListeners(abort.signal, 'abort')).to.deep.equal([]);
      expect(open()).to.equal(0);
    }
    server.answerBy([endless]);
    for await (const { seq } of client.run(NO_RUN).events()) if (seq === 0) break;
    expect(open()).to.equal(0);
    await server.until(() => server.open() === 0);
  });

  it('closes a connection that is silent for a minute', async () => {
    const clock = manualSystem();
    server = await fakeServer([hangs, told(blocks(0, 1, 2))]);
    const system = { ...clock, random: () => 0 };
    const following = allOf(new CouncilClient({ url: server.url, system }).run(NO_RUN).events());
    await server.until(() => server.calls.length === 1);
    clock.advance(60_000);
    await untilTrue(() => {
      clock.advance(1);
      return server.calls.length === 2;
    });
    expect(await following).to.deep.equal(RECORD);
  });

  it('fails when the service is unreachable for longer than the configured time', async () => {
    server = await fakeServer([told(blocks(0)), resets]);
    let nowMs = 0;
    const system = { ...systemWithoutBackoff(), monotonicMs: () => (nowMs += 10_000) };
    const waits: number[] = [];
    const retry = { streamMs: 35_000, onWait: ({ failures }: { failures: number }) => void waits.push(failures) };
    const client = new CouncilClient({ url: server.url, system, retry });
    const error = await rejectionOf(allOf(client.run(NO_RUN).events()));
    expect(error).to.be.instanceOf(UnreachableError);
    expect(error).to.have.property('message', `Cannot reach the service at ${server.url}: is it running?`);
    expect(waits).to.deep.equal([1, 2, 3, 4]);
  });
});

/** An environment that counts active timers. */
function countedTimers(): { readonly system: ClientSystem; open(): number } {
  const host = systemWithoutBackoff();
  const running = new Set<object>();
  return {
    system: {
      ...host,
      after(delayMs, callBack) {
        const timer = {};
        running.add(timer);
        const cancel = host.after(delayMs, () => {
          running.delete(timer);
          callBack();
        });
        return () => {
          running.delete(timer);
          cancel();
        };
      },
    },
    open: () => running.size,
  };
}
