import { geminiModel } from '../support/provider-models.js';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { nodeSystem } from '../../src/system/system.js';
import { damageOpen } from '../support/damaged-file.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import { documentsIn, read, readingOf, saveReadingCouncil, startReading } from '../support/reading-council.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, upload, uploaded } from '../support/upload-client.js';
import { soakIt } from '../support/soak.js';

const TREES = pdfWith(['Oaks grow slowly in the shade.']);
const STONES = pdfWith(['Granite is hard.']);

const SEARCH = '/api/documents/search?q=oaks';

describe('The search index of chunks', () => {
  const system = nodeSystem();
  const recreatedSoon = (ms: number): number => (ms === 30_000 ? 200 : ms);
  const soon = { ...system, after: (ms: number, call: () => void) => system.after(recreatedSoon(ms), call) };
  let dir: TempDir;
  let provider: FakeProvider;
  let service: RunningService;

  const serve = async (overrides: ServiceOverrides = {}): Promise<void> => {
    const model = geminiModel({ apiKey: 'k', baseUrl: provider.url, model: 'gemini-x' });
    service = await startService({
      dataDir: dir.path,
      model,
      embeddings: null,
      system: soon,
      ...overrides,
    });
  };
  const folder = (): string => join(dir.path, 'views');
  const index = (): string => join(folder(), 'passages.sqlite');
  /** Corrupts the index and prevents its recreation until the returned function is called. */
  const loseIndex = (): (() => void) => {
    damageOpen(
      index(),
      (bytes) => bytes.fill(0, 4_096),
      () => 0,
    );
    const aside = join(dir.path, 'aside');
    renameSync(folder(), aside);
    writeFileSync(folder(), 'no folder');
    return () => {
      rmSync(folder());
      renameSync(aside, folder());
    };
  };

  beforeEach(async () => {
    dir = tempDir();
    provider = await fakeProvider('oaks and hard granite');
    await serve();
    await saveReadingCouncil(service.url);
  });
  afterEach(async () => {
    await service.stop();
    await provider.stop();
    dir.remove();
  });

  soakIt('is recreated with every document when another program locks it', async () => {
    await uploaded(service.url, TREES);
    const other = new DatabaseSync(index());
    other.exec('BEGIN IMMEDIATE');
    expect((await upload(service.url, STONES)).status).to.equal(200);
    other.close();
    expect(service.faults).to.have.length(1);
    expect(documentsIn((await read(service.url, provider)).hits)).to.deep.equal([idOf(TREES), idOf(STONES)].sort());
  });

  it('delays searches of agents while it fails, and loses nothing; the instance stays ready', async () => {
    await uploaded(service.url, TREES);
    const restore = loseIndex();
    const second = upload(service.url, STONES);
    await untilTrue(() => service.faults.length > 1);
    expect((await restClient(service.url).get('/api/health/ready')).status, 'ready').to.equal(200);
    const runId = await startReading(service.url);
    await untilTrue(async () => (await restClient(service.url).poll(runId)).status === 'running');
    restore();
    expect((await second).status).to.equal(200);
    const reading = await readingOf(service.url, runId, provider);
    expect(reading).to.deep.include({ tools: ['pdfReader'], error: null });
    expect(documentsIn(reading.hits)).to.include(idOf(TREES));
  });

  soakIt('makes uploads and searches end with 503 and free their slot and file while it fails for long', async () => {
    await uploaded(service.url, TREES);
    await service.stop();
    // Shortens timeouts of 5 and 10 seconds to half a second. The timeout of an extraction stays.
    const shorter = (ms: number): number => (ms === 5_000 || ms === 10_000 ? 500 : recreatedSoon(ms));
    await serve({ system: { ...system, after: (ms, call) => system.after(shorter(ms), call) } });
    const rest = restClient(service.url);
    await untilTrue(async () => (await rest.get(SEARCH)).status === 200);
    const restore = loseIndex();
    expect(rest.problem(await rest.get(SEARCH), 503)).to.have.property('detail');
    // More uploads than the service has places.
    for (let turn = 0; turn < 9; turn += 1) {
      const reply = await upload(service.url, STONES);
      expect(rest.problem(reply, 503).detail).to.match(/not searchable yet/);
      expect(reply.headers.get('Retry-After')).to.match(/^\d+$/);
      expect(readdirSync(join(dir.path, 'tmp'))).to.deep.equal([]);
    }
    restore();
    await untilTrue(async () => (await upload(service.url, STONES)).text.includes('Nothing was added'));
    await untilTrue(async () => (await rest.get(SEARCH)).status === 200);
  });

  soakIt('is recreated when its thread ends while idle', async () => {
    await service.stop();
    await serve();
    const spawned = new Promise<Worker>((resolve) => process.once('worker', resolve));
    await uploaded(service.url, TREES);
    const worker = await spawned;
    await worker.terminate();
    const reading = await read(service.url, provider);
    expect(reading).to.deep.include({ tools: ['pdfReader'], error: null });
    expect(documentsIn(reading.hits)).to.deep.equal([idOf(TREES)]);
    expect(service.faults.map((fault) => 'err' in fault && String(fault.err))).to.deep.equal([
      'Error: The chunk index has stopped: its thread has ended',
    ]);
  });
});
