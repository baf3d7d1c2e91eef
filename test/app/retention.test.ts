import { expect } from 'chai';
import { wait } from '../../src/system/async/deadline.js';
import { nodeSystem } from '../../src/system/system.js';
import type { System } from '../../src/system/system.js';
import { filesWith } from '../support/files-with.js';
import { instantModel } from '../support/instant-model.js';
import { runRequest } from '../support/open-engine.js';
import { soakIt } from '../support/soak.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const RUNS = Number(process.env['RUNS'] ?? 100_000);

describe('Retention', () => {
  let dir: TempDir;
  let service: RunningService;
  let client: RestClient;

  const start = async (overrides: ServiceOverrides = {}): Promise<void> => {
    service = await startService({ dataDir: dir.path, ...overrides });
    client = restClient(service.url);
  };
  beforeEach(async () => {
    dir = tempDir();
    await start();
  });
  afterEach(async () => {
    await service.stop();
    dir.remove();
  });

  const restart = async (overrides: ServiceOverrides): Promise<void> => {
    await service.stop();
    await start(overrides);
  };
  const council = async (retentionDays?: number): Promise<string> => {
    const days = retentionDays === undefined ? {} : { retentionDays };
    const reply = await client.post('/api/councils/', { name: 'Kept', nodes: [{ id: 'a', type: 'agent' }], ...days });
    return client.read(reply, 201, 'blueprint.json').id;
  };
  const ended = async (blueprintId?: string): Promise<string> => {
    const path = blueprintId === undefined ? '/api/councils/run' : `/api/councils/${blueprintId}/run`;
    const { run_id: runId } = client.read(await client.post(path, { input_topic: 'Trees' }), 202, 'run-start.json');
    await client.until(runId, ({ status }) => status === 'completed');
    return runId;
  };
  const statusOf = async (runId: string): Promise<number> => (await client.get(`/api/runs/${runId}`)).status;

  it('erases runs that ended earlier, as the actor "retention", and runs of a blueprint by its own days', async () => {
    const [plain, long, short] = [await council(), await council(100), await council(2)];
    const runs = [await ended(), await ended(plain), await ended(long), await ended(short)];
    await restart({ retentionDays: 30, system: inDays(10) });
    await untilTrue(async () => (await statusOf(runs[3] ?? '')) === 410);
    expect(await Promise.all(runs.map(statusOf))).to.deep.equal([200, 200, 200, 410]);
    await restart({ retentionDays: 30, system: inDays(31) });
    await untilTrue(async () => (await statusOf(runs[0] ?? '')) === 410 && (await statusOf(runs[1] ?? '')) === 410);
    expect(await statusOf(runs[2] ?? '')).to.equal(200);
    const { erased } = client.problem(await client.get(`/api/runs/${runs[0]}`), 410);
    expect(erased).to.deep.include({ by: 'retention', reason: null });
  });

  it('keeps runs without RETENTION_DAYS, but for those of blueprints that have their own', async () => {
    const [plain, short] = [await council(), await council(2)];
    const runs = [await ended(), await ended(plain), await ended(short)];
    await restart({ system: inDays(400) });
    await untilTrue(async () => (await statusOf(runs[2] ?? '')) === 410);
    expect(await Promise.all(runs.slice(0, 2).map(statusOf))).to.deep.equal([200, 200]);
  });

  it('follows the blueprint as it is now, also when its days are removed, and refuses others than 1 to 36500', async () => {
    const id = await council(2);
    const runId = await ended(id);
    for (const retentionDays of [0, 36_501, 1.5, '9'])
      client.problem(await client.send('PUT', `/api/councils/${id}`, { body: { retentionDays } }), 422);
    const reply = await client.send('PUT', `/api/councils/${id}`, { body: { retentionDays: null } });
    expect(client.read(reply, 200, 'blueprint.json').retentionDays).to.equal(undefined);
    await restart({ retentionDays: 20, system: inDays(10) });
    expect(await statusOf(runId)).to.equal(200);
    await restart({ retentionDays: 20, system: inDays(21) });
    await untilTrue(async () => (await statusOf(runId)) === 410);
  });

  // Measured on 2 cores: see the figures that it prints.
  soakIt(`erases ${RUNS} runs while others go on, and leaves no byte of them`, async () => {
    await restart({ model: instantModel() });
    const begin = async (topic: string): Promise<void> => {
      const runId = nodeSystem().uuid();
      await service.context.registry.start(runRequest(runId, { topic }));
    };
    const counted = async (): Promise<number> =>
      client.read(await client.get('/api/runs/counts?status=completed'), 200, 'run-counts.json').completed;
    for (let n = 0; n < RUNS; n += 200) {
      await Promise.all(Array.from({ length: 200 }, () => begin('zyxcanaryword')));
      // The service refuses a start while 10,000 runs are pending.
      if (n % 5_000 === 0) await untilTrue(async () => (await counted()) === n + 200);
    }
    await untilTrue(async () => (await counted()) === RUNS);
    const latencies = async (until: () => Promise<boolean>): Promise<number> => {
      const ms: number[] = [];
      for (let n = 0; n % 50 !== 0 || n === 0 || !(await until()); n += 1) {
        const from = performance.now();
        client.read(await client.post('/api/councils/run', { input_topic: 'Trees' }), 202, 'run-start.json');
        ms.push(performance.now() - from);
        await wait(nodeSystem(), Math.max(0, 20 - (performance.now() - from)), new AbortController().signal);
      }
      return ms.sort((a, b) => a - b)[Math.floor(ms.length * 0.99)] ?? 0;
    };
    await restart({ model: instantModel() });
    const from = performance.now();
    const before = await latencies(async () => performance.now() - from > 10_000);
    // The new runs carry the time of the clock that is ahead.
    await restart({ model: instantModel(), retentionDays: 5, system: inDays(10) });
    const isOver = async (): Promise<boolean> => (await client.get('/api/runs/?q=zyxcanaryword&limit=1')).text === '[]';
    const started = performance.now();
    const during = await latencies(isOver);
    const seconds = (performance.now() - started) / 1_000;
    process.stdout.write(
      `      ${RUNS} runs in ${seconds.toFixed(0)} s; p99 of a start ${before.toFixed(1)} ms, then ${during.toFixed(1)} ms\n`,
    );
    expect(during - before).to.be.lessThan(100);
    expect(filesWith(dir.path, 'zyxcanaryword')).to.deep.equal([]);
  });
});

/** A clock that is ahead. */
function inDays(days: number): System {
  const now = (): string => new Date(Date.now() + days * 86_400_000).toISOString();
  return { ...nodeSystem(), now };
}
