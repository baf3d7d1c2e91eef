import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { nodeSystem } from '../../../src/system/system.js';
import { exitOfError } from '../../../src/cli/commands/exit-codes.js';
import { serviceRecords } from '../../../src/cli/records/service-records.js';
import { ServiceLost } from '../../../src/cli/service-faults.js';
import { offlineModel } from '../../../src/models/offline.js';
import type { CouncilBench } from '../../support/council-command.js';
import { COUNCIL, councilBench } from '../../support/council-command.js';
import { openCuttingProxy } from '../../support/cutting-proxy.js';
import { graphOf } from '../../support/given.js';
import { approveAll, pausedBefore, corruptRecord, startGodRun } from '../../support/god-run.js';
import { rejectionOf } from '../../support/rejection.js';
import { NO_RUN, isOver, restClient } from '../../support/rest-client.js';
import type { RunningService } from '../../support/running-service.js';
import { startService } from '../../support/running-service.js';
import { seededRandom } from '../../support/seeded-random.js';

const SEED = Number(process.env['SEED'] ?? 20260108);
/** Most bytes of an answer before the proxy cuts it; the stream of a run has about 14,000 bytes. */
const MAX_PIECE_BYTES = 6_000;
const PAIR = graphOf('write -> polish');

describe(`council tail (SEED=${SEED})`, () => {
  let bench: CouncilBench;
  let service: RunningService;

  beforeEach(() => {
    bench = councilBench();
  });

  afterEach(async () => {
    await bench.clear();
    await service.stop();
  });

  const tail = (...words: readonly string[]) => bench.program(process.execPath, [COUNCIL, 'tail', ...words], {});
  const exported = async (runId: string): Promise<string> => {
    const headers = { Accept: 'application/x-ndjson' };
    return (await restClient(service.url).send('GET', `/api/runs/${runId}/events`, { headers })).text;
  };

  it('shows events as the service records them, and ends with the run', async () => {
    service = await startService({ eventStore: null });
    const runId = await startGodRun(service.context, PAIR);
    const seq = await pausedBefore(service.context, runId, 'write');
    const following = tail(runId, '--url', service.url);
    await following.waitFor((lines) => lines.length === seq + 2);
    expect(following.lines[seq]).to.match(/RunPaused .*before write$/);
    await approveAll(service.context, runId);
    const { code, stdout, stderr } = await following.exit;
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/RunCompleted [^\n]*\n$/);
  });

  it('prints every event once over connections that break', async () => {
    const random = seededRandom(SEED);
    service = await startService({
      eventStore: null,
      model: offlineModel({ latencyMs: 200, system: nodeSystem() }),
    });
    const proxy = await openCuttingProxy(service.url, () => 500 + Math.floor(random() * MAX_PIECE_BYTES));
    const runId = await restClient(service.url).start('Trees');
    const ended = await bench.council(['tail', runId, '--json', '--url', proxy.url]);
    await proxy.close();
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stdout).to.equal(await exported(runId));
    expect(proxy.cuts).to.be.greaterThan(1);
    expect(ended.stderr).to.match(/^(Connection to the service lost, trying again\n)+$/);
  });

  it('continues after the last event when the service restarts', async () => {
    const dataDir = join(bench.path, 'service');
    service = await startService({ dataDir, eventStore: null });
    const runId = await startGodRun(service.context, PAIR);
    await pausedBefore(service.context, runId, 'write');
    const following = tail(runId, '--json', '--url', service.url);
    await following.waitFor((lines) => lines.length > 3);
    await service.stop();
    service = await startService({ dataDir, eventStore: null, port: Number(new URL(service.url).port) });
    await approveAll(service.context, runId);
    const ended = await following.exit;
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stdout).to.equal(await exported(runId));
    expect(ended.stderr).to.equal('Connection to the service lost, trying again\n');
  });

  it('exits 1 with the reason if the record becomes corrupt meanwhile', async () => {
    service = await startService({ eventStore: null });
    const runId = await startGodRun(service.context, PAIR);
    const seq = await pausedBefore(service.context, runId, 'write');
    const following = tail(runId, '--url', service.url);
    await following.waitFor((lines) => lines.length > seq);
    await corruptRecord(service.context, runId);
    const ended = await following.exit;
    expect(ended.code, ended.stderr).to.equal(1);
    expect(ended.stderr).to.include('damaged');
  });

  it('gives up on a service that is unreachable for half a minute', async () => {
    service = await startService({ eventStore: null });
    const runId = await startGodRun(service.context, PAIR);
    const paused = await pausedBefore(service.context, runId, 'write');
    const system = nodeSystem();
    // This clock runs 100 times as fast: half a minute takes 300 ms.
    const hasty = { ...system, monotonicMs: () => 100 * system.monotonicMs() };
    const notices: string[] = [];
    const { signal } = new AbortController();
    const options = {
      key: null,
      system: hasty,
      notify: (text: string) => void notices.push(text),
      signal,
    };
    const events = serviceRecords(service.url, options).follow(runId);
    const follow = async (): Promise<void> => {
      for await (const { seq } of events) if (seq === paused + 1) await service.stop();
    };
    const lost = await rejectionOf(follow());
    expect(lost).to.be.instanceOf(ServiceLost);
    expect(lost).to.have.property(
      'message',
      `Cannot follow run "${runId}", which may continue: the service was unreachable for 30 s`,
    );
    expect(notices).to.deep.equal(['Connection to the service lost, trying again']);
    expect(exitOfError(lost)).to.equal(3);
  });

  it('exits 3 at an address that has never answered, and speaks of no lost connection', async () => {
    service = await startService({ eventStore: null });
    const cut = createServer(({ socket }) => socket.destroy());
    await new Promise<void>((resolve) => cut.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(cut.address() as AddressInfo).port}`;
    const ended = await bench.council(['tail', NO_RUN, '--url', url]);
    cut.close();
    expect(ended).to.include({
      code: 3,
      stdout: '',
      stderr: `Cannot reach the service at ${url}: is it running?\n`,
    });
  });

  it('does not count the time of a silent connection as an outage', async () => {
    service = await startService({ eventStore: null });
    const rest = restClient(service.url);
    const runId = await rest.start('Trees');
    await rest.until(runId, isOver);
    const lines = (await exported(runId)).trimEnd().split('\n');
    const blocks = lines.map((line, seq) => `id: ${seq}\nevent: x\ndata: ${line}\n\n`);
    let nowMs = 0;
    let connections = 0;
    const still = createServer((_, answer) => {
      connections += 1;
      answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
      if (connections === 1) return void answer.end(blocks[0]);
      if (connections > 2) return void answer.end(blocks.slice(1).join(''));
      answer.write('retry: 1000\n\n', () => {
        nowMs += 60_000;
        setImmediate(() => answer.end());
      });
    });
    await new Promise<void>((resolve) => still.listen(0, '127.0.0.1', resolve));
    const system = { ...nodeSystem(), monotonicMs: () => nowMs };
    const { signal } = new AbortController();
    const url = `http://127.0.0.1:${(still.address() as AddressInfo).port}`;
    const options = { key: null, system, notify: () => undefined, signal };
    const seqs: number[] = [];
    for await (const { seq } of serviceRecords(url, options).follow(runId)) seqs.push(seq);
    still.close();
    expect(seqs).to.deep.equal([...lines.keys()]);
  });

  it('prints texts with line and paragraph separators unchanged', async () => {
    service = await startService({ eventStore: null });
    const rest = restClient(service.url);
    const runId = await rest.start('Trees\u2028and\u2029bushes');
    await rest.until(runId, isOver);
    const ended = await bench.council(['tail', runId, '--json', '--url', service.url]);
    expect(ended).to.include({ code: 0, stdout: await exported(runId), stderr: '' });
  });

  it('ends at once for a run that has ended, and exits 130 on Ctrl-C', async () => {
    service = await startService({ eventStore: null });
    const rest = restClient(service.url);
    const runId = await rest.start('Trees');
    await rest.until(runId, isOver);
    const ended = await tail(runId, '--json', '--url', service.url).exit;
    expect(ended).to.include({ code: 0, stdout: await exported(runId), stderr: '' });
    const waiting = await startGodRun(service.context, PAIR);
    const following = tail(waiting, '--url', service.url);
    await following.waitFor((lines) => lines.length > 3);
    following.signal('SIGINT');
    expect(await following.exit).to.include({ code: 130, stderr: '' });
  });
});
