import { expect } from 'chai';
import { answersStatus, fakeServer, hangs, resets, sends } from '../support/fake-server.js';
import type { FakeServer } from '../support/fake-server.js';
import type { OtlpRequest } from '../support/otlp-traces.js';
import { attributesOf, spansIn } from '../support/otlp-traces.js';
import { parseMetrics, valueOf } from '../support/prometheus-text.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { sample, soakIt } from '../support/soak.js';

const ACCEPTED = sends({ partialSuccess: {} });

describe('The export of traces', () => {
  let collector: FakeServer<OtlpRequest>;
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    collector = await fakeServer<OtlpRequest>([ACCEPTED]);
    const headers = { Authorization: 'Bearer collect' };
    service = await startService({ traces: { endpoint: collector.url, headers, delayMs: 500 } });
    rest = restClient(service.url);
  });
  afterEach(async () => {
    await service.stop();
    await collector.stop();
  });

  const run = async (): Promise<string> => {
    const runId = await rest.start('Should our town build a sauna?');
    await rest.until(runId, isOver);
    return runId;
  };
  /** The traces in a request. */
  const tracesIn = ({ body }: Pick<(typeof collector.calls)[number], 'body'>): readonly string[] =>
    spansIn(body).flatMap(({ traceId, parentSpanId }) => (parentSpanId === undefined ? [traceId] : []));
  const traced = (): readonly string[] => collector.calls.flatMap(tracesIn);
  const outcomes = async (): Promise<Readonly<Record<string, number>>> => {
    const metrics = parseMetrics(await (await fetch(`${service.url}/metrics`)).text());
    const count = (outcome: string): number => valueOf(metrics, 'council_traces_total', { outcome });
    return {
      exported: count('exported'),
      refused: count('refused'),
      queued: valueOf(metrics, 'council_traces_queued'),
    };
  };

  it('sends one trace for each ended run, which the protocol accepts', async () => {
    const runs = [await run(), await run()];
    await collector.until(() => traced().length === 2);
    expect(traced()).to.have.members(runs.map((id) => id.replaceAll('-', '')));
    const [call] = collector.calls;
    expect(call).to.deep.include({ method: 'POST', path: '/v1/traces' });
    expect(call?.headers).to.include({ 'content-type': 'application/json', authorization: 'Bearer collect' });
    const [root, ...others] = (call === undefined ? [] : spansIn(call.body)).filter(
      ({ traceId }) => traceId === traced()[0],
    );
    expect(root?.name).to.equal('invoke_workflow council');
    expect(attributesOf(root ?? { attributes: [] })).to.include({ 'council.run.status': 'completed' });
    expect(others.length).to.be.above(2);
    await untilTrue(async () => (await outcomes())['exported'] === 2);
  });

  it('keeps traces while the collector is away, slows no run, and sends them in one request when it is back', async () => {
    await collector.goAway();
    const runs = [await run(), await run(), await run()];
    await untilTrue(() => service.faults.length > 0);
    expect((await outcomes())['queued']).to.equal(3);
    await collector.comeBack();
    await collector.until(() => traced().length === 3);
    expect(traced()).to.deep.equal(runs.map((id) => id.replaceAll('-', '')));
    expect(collector.calls).to.have.lengthOf(1);
    await untilTrue(async () => (await outcomes())['queued'] === 0);
    expect(service.lines.map(({ msg }) => msg)).to.include('traces: the collector answers again');
  });

  it('sends a trace again that a busy collector has not taken, and waits as long as it asks', async () => {
    const busy = (status: number) => (response: Parameters<typeof hangs>[0]) =>
      void response.writeHead(status, { 'Retry-After': '0' }).end();
    collector.answerBy([busy(429), busy(503), ACCEPTED]);
    await run();
    await collector.until(() => collector.calls.length === 3);
    expect(new Set(traced()).size).to.equal(1);
  });

  soakIt('asks less and less often, though a busy collector asks for the next request at once', async () => {
    collector.answerBy([(response) => void response.writeHead(503, { 'Retry-After': '0' }).end()]);
    await run();
    await collector.until(() => collector.calls.length === 4);
    const [first = 0, , , fourth = 0] = collector.calls.map(({ atMs }) => atMs);
    // At least half of 500, 1,000 and 2,000 ms.
    expect(fourth - first).to.be.at.least(1_700);
  });

  soakIt('waits until the date that a busy collector names', async () => {
    const date = new Date(Date.now() + 5_000).toUTCString();
    collector.answerBy([(response) => void response.writeHead(429, { 'Retry-After': date }).end(), ACCEPTED]);
    await run();
    await collector.until(() => collector.calls.length === 2);
    expect(Date.now()).to.be.at.least(Date.parse(date) - 5);
  });

  it('sends no span again of a request of which the collector has rejected a part', async () => {
    await collector.goAway();
    const runs = [await run(), await run()];
    collector.answerBy([sends({ partialSuccess: { rejectedSpans: '1', errorMessage: 'no' } }), ACCEPTED]);
    await collector.comeBack();
    await untilTrue(async () => (await outcomes())['queued'] === 0);
    expect(traced()).to.have.members(runs.map((id) => id.replaceAll('-', '')));
    expect(await outcomes()).to.deep.equal({ exported: 0, refused: 2, queued: 0 });
    expect(service.faults.at(-1)).to.deep.equal({ runs: 2, reason: 'it rejected 1 spans' });
  });

  const failing = [
    ['resets', resets],
    ['answers 504 to', answersStatus(504)],
  ] as const;
  for (const [how, fails] of sample(failing, 1)) {
    it(`sends each trace alone once the collector ${how} a request of many, so that none repeats for ever`, async () => {
      await collector.goAway();
      const runs = [await run(), await run(), await run()];
      collector.answerBy((call) => (tracesIn(call).length > 1 ? fails : ACCEPTED));
      await collector.comeBack();
      await untilTrue(async () => (await outcomes())['queued'] === 0);
      expect(await outcomes()).to.deep.equal({ exported: 3, refused: 0, queued: 0 });
      for (const runId of runs)
        expect(traced().filter((id) => id === runId.replaceAll('-', ''))).to.have.length.within(1, 2);
    });
  }

  soakIt('sends the later traces although the collector never answers to one, and that one when it does', async () => {
    await collector.goAway();
    const [first] = [await run(), await run(), await run()];
    const poison = first.replaceAll('-', '');
    collector.answerBy((call) => (tracesIn(call).includes(poison) ? resets : ACCEPTED));
    await collector.comeBack();
    await untilTrue(async () => (await outcomes())['exported'] === 2);
    expect(await outcomes()).to.deep.equal({ exported: 2, refused: 0, queued: 1 });
    collector.answerBy([ACCEPTED]);
    await untilTrue(async () => (await outcomes())['exported'] === 3);
  });

  it('sends one request for many traces to a collector that accepts none, and logs one line', async () => {
    for (const status of sample([401, 307, 404, 415], 1)) {
      const before = collector.calls.length;
      await collector.goAway();
      await Promise.all([run(), run(), run()]);
      collector.answerBy([answersStatus(status)]);
      await collector.comeBack();
      await untilTrue(async () => (await outcomes())['queued'] === 0);
      expect(collector.calls.length - before, `${status}`).to.equal(1);
      expect(service.faults.at(-1)).to.deep.equal({ runs: 3, reason: `it answered ${status}` });
    }
  });

  it('gives up a trace that the collector refuses, logs why, and sends the next', async () => {
    const rejects = sends({ partialSuccess: { rejectedSpans: '3', errorMessage: 'no' } });
    collector.answerBy([answersStatus(400), rejects, ACCEPTED]);
    const first = await run();
    await untilTrue(async () => (await outcomes())['refused'] === 1);
    const second = await run();
    await untilTrue(async () => (await outcomes())['refused'] === 2);
    await run();
    await untilTrue(async () => (await outcomes())['exported'] === 1);
    expect(await outcomes()).to.deep.equal({ exported: 1, refused: 2, queued: 0 });
    expect(service.faults).to.deep.equal([
      { runId: first, reason: 'it answered 400' },
      { runId: second, reason: 'it rejected 3 spans' },
    ]);
  });

  it('finds the trace that a collector refuses among others, and sends the others', async () => {
    await collector.goAway();
    const runs = [await run(), await run(), await run()];
    const refused = runs[1]?.replaceAll('-', '') ?? '';
    collector.answerBy(({ body }) =>
      spansIn(body).some(({ traceId }) => traceId === refused) ? answersStatus(400) : ACCEPTED,
    );
    await collector.comeBack();
    await untilTrue(async () => (await outcomes())['queued'] === 0);
    expect(await outcomes()).to.deep.equal({ exported: 2, refused: 1, queued: 0 });
    expect(service.faults.at(-1)).to.deep.equal({ runId: runs[1], reason: 'it answered 400' });
  });

  soakIt('looks once for a trace that is at fault if the collector refuses all of them', async () => {
    const requestsOfThree = async (): Promise<number> => {
      const before = collector.calls.length;
      await collector.goAway();
      await Promise.all([run(), run(), run()]);
      await collector.comeBack();
      await untilTrue(async () => (await outcomes())['queued'] === 0);
      return collector.calls.length - before;
    };
    collector.answerBy([answersStatus(400)]);
    expect([await requestsOfThree(), await requestsOfThree()]).to.deep.equal([4, 1]);
    expect(service.faults.at(-1)).to.deep.equal({ runs: 3, reason: 'it answered 400' });
    collector.answerBy([ACCEPTED, answersStatus(400)]);
    expect([await requestsOfThree(), await requestsOfThree()]).to.deep.equal([1, 4]);
  });

  it('sends what is queued when the service stops', async () => {
    const runId = await run();
    await service.stop();
    expect(traced()).to.deep.equal([runId.replaceAll('-', '')]);
  });

  it('stops in time while the collector hangs', async () => {
    collector.answerBy([hangs]);
    await run();
    await collector.until(() => collector.open() === 1);
    await service.stop();
    expect(service.faults).to.deep.equal([{ runs: 1 }]);
  });
});
