import { expect } from 'chai';
import { join } from 'node:path';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import type { FakeServer } from '../support/fake-server.js';
import { answersStatus, fakeServer, sends } from '../support/fake-server.js';
import type { OtlpRequest } from '../support/otlp-traces.js';
import { spansIn } from '../support/otlp-traces.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';

describe('council traces', () => {
  let bench: CouncilBench;
  let collector: FakeServer<OtlpRequest>;

  beforeEach(async () => {
    bench = councilBench();
    collector = await fakeServer<OtlpRequest>([sends({})]);
  });
  afterEach(async () => {
    await collector.stop();
    await bench.clear();
  });

  const exported = (words: readonly string[], env = {}) =>
    bench.council(['traces', ...words], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env } });
  /** The traces in all requests: the spans of each. */
  const sent = (): readonly string[] =>
    collector.calls
      .flatMap(({ body }) => {
        const spans = spansIn(body);
        const ids = new Set(spans.map(({ traceId }) => traceId));
        return [...ids].map((id) => JSON.stringify(spans.filter(({ traceId }) => traceId === id)));
      })
      .sort();

  it('exports the ended runs of a time, the same from a service, from its folder, and by the service itself', async () => {
    const dataDir = join(bench.path, 'service');
    const traces = { endpoint: collector.url, headers: {}, delayMs: 500 };
    const service = await startService({ dataDir, eventStore: null, traces });
    const rest = restClient(service.url);
    for (const topic of ['Trees', 'Rivers']) await rest.until(await rest.start(topic), isOver);
    const nodes = [{ id: 'a', type: 'agent', label: 'A' }];
    rest.read(await rest.post('/api/councils/', { id: 'one', name: 'One', nodes, edges: [] }), 201, 'blueprint.json');
    const paused = await rest.post('/api/councils/one/run', { input_topic: 'Seas', god_mode: true });
    await rest.until(rest.read(paused, 202, 'run-start.json').run_id, ({ status }) => status === 'paused');
    await collector.until(() => sent().length === 2);
    const own = sent();

    const summary = 'Exported 2 runs; not ended: 1, not exported: 0\n';
    const here = await exported(['--from', '2026-01-01', '--url', service.url]);
    expect(here).to.deep.include({ code: 0, stdout: summary });
    expect(sent().length).to.equal(4);
    await service.stop();
    const stopped = await exported(['--from', '2026-01-01'], { DATA_DIR: dataDir });
    expect(stopped).to.deep.include({ code: 0, stdout: summary });
    expect(sent()).to.deep.equal([...own, ...own, ...own].sort());
    const before = await exported(['--from', '2020-01-01', '--to', '2020-12-31'], { DATA_DIR: dataDir });
    expect(before.stdout).to.equal('Exported 0 runs; not ended: 0, not exported: 0\n');
  });

  it('says which runs the collector has refused, and exits with 1', async () => {
    const run = await bench.run(['Trees']);
    expect(run.code).to.equal(0);
    collector.answerBy([answersStatus(413)]);
    const { code, stdout, stderr } = await exported(['--from', '2026-01-01']);
    expect([code, stdout]).to.deep.equal([1, 'Exported 0 runs; not ended: 0, not exported: 1\n']);
    expect(stderr).to.match(/^Cannot export run [0-9a-f-]{36}: it answered 413$/m);
  });

  it('stops at the first run if the collector is away, and says so once', async () => {
    for (const topic of ['Trees', 'Rivers']) expect((await bench.run([topic])).code).to.equal(0);
    await collector.goAway();
    const { code, stdout, stderr } = await exported(['--from', '2026-01-01']);
    await collector.comeBack();
    expect([code, stdout]).to.deep.equal([1, 'Exported 0 runs; not ended: 0, not exported: 1\n']);
    expect(
      stderr.match(/Cannot export run .*; stopping here, because the collector is away or busy/g),
    ).to.have.lengthOf(1);
  });

  it('refuses a missing or unusable time, and a missing collector', async () => {
    for (const [words, fault] of [
      [[], '--from is missing'],
      [['--from', 'yesterday'], '--from takes a day or a time; not "yesterday"'],
      [['--from', '2026-01-01', 'x'], 'Too many words'],
    ] as const) {
      const { code, stderr } = await exported(words);
      expect(code).to.equal(2);
      expect(stderr).to.include(fault);
    }
    const { code, stderr } = await exported(['--from', '2026-01-01'], { OTEL_EXPORTER_OTLP_ENDPOINT: '' });
    expect([code, stderr.includes('OTEL_EXPORTER_OTLP_ENDPOINT')]).to.deep.equal([2, true]);
  });
});
