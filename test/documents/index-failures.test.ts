import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { nodeSystem } from '../../src/system/system.js';
import { startThread } from '../../src/system/thread.js';
import { geminiModel } from '../../src/models/gemini/client.js';
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

const TREES = pdfWith(['Oaks grow slowly in the shade.']);
const STONES = pdfWith(['Granite is hard.']);

describe('A search index of chunks that fails', () => {
  const system = nodeSystem();
  let dir: TempDir;
  let provider: FakeProvider;
  let service: RunningService;

  const serve = async (overrides: ServiceOverrides = {}): Promise<void> => {
    const model = geminiModel({ apiKey: 'k', baseUrl: provider.url, model: 'gemini-x', system: system });
    service = await startService({ dataDir: dir.path, model, embeddings: { name: 'offline' }, ...overrides });
  };
  /** Keeps the index from being written, until it is called. */
  const lockIndex = (): (() => void) => {
    const database = new DatabaseSync(join(dir.path, 'views', 'passages.sqlite'));
    database.exec('BEGIN IMMEDIATE');
    return () => database.close();
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

  it('is opened again and still finds every document that came since the start', async () => {
    await uploaded(service.url, TREES);
    const unlock = lockIndex();
    const second = upload(service.url, STONES);
    await untilTrue(() => service.faults.length > 0);
    unlock();
    expect((await second).status).to.equal(200);
    expect(documentsIn((await read(service.url, provider)).hits)).to.deep.equal([idOf(TREES), idOf(STONES)].sort());
  });

  it('makes searches of agents wait, but loses nothing and lets the instance go on working', async () => {
    await uploaded(service.url, TREES);
    const unlock = lockIndex();
    const second = upload(service.url, STONES);
    await untilTrue(() => service.faults.length > 0);
    expect((await restClient(service.url).get('/api/health/ready')).status, 'ready').to.equal(200);
    const runId = await startReading(service.url);
    await untilTrue(async () => (await restClient(service.url).poll(runId)).status === 'running');
    unlock();
    expect((await second).status).to.equal(200);
    const reading = await readingOf(service.url, runId, provider);
    expect(reading).to.deep.include({ tools: ['pdfReader'], error: null });
    expect(documentsIn(reading.hits)).to.include(idOf(TREES));
  });

  it('for long has uploads answered 503 that free their slot and file, until it works again', async () => {
    await uploaded(service.url, TREES);
    await service.stop();
    // What is waited for ten seconds is waited for half of one; a PDF has all its time.
    await serve({ system: { ...system, after: (ms, call) => system.after(ms === 10_000 ? 500 : ms, call) } });
    const unlock = lockIndex();
    // More of them than have room at a time.
    for (let turn = 0; turn < 9; turn += 1) {
      const reply = await upload(service.url, STONES);
      expect(restClient(service.url).problem(reply, 503).detail).to.match(/cannot be searched yet/);
      expect(reply.headers.get('Retry-After')).to.match(/^\d+$/);
      expect(readdirSync(join(dir.path, 'tmp'))).to.deep.equal([]);
    }
    unlock();
    await untilTrue(async () => (await upload(service.url, STONES)).status === 200);
    expect((await uploaded(service.url, STONES)).message).to.match(/^Nothing was added/);
  });

  it('by itself, without being written, is opened again', async () => {
    await service.stop();
    await serve({ startThread });
    const spawned = new Promise<Worker>((resolve) => process.once('worker', resolve));
    await uploaded(service.url, TREES);
    const worker = await spawned;
    await worker.terminate();
    const reading = await read(service.url, provider);
    expect(reading).to.deep.include({ tools: ['pdfReader'], error: null });
    expect(documentsIn(reading.hits)).to.deep.equal([idOf(TREES)]);
    expect(service.faults.map((fault) => 'err' in fault && String(fault.err))).to.deep.equal([
      'Error: The passage index has stopped: its thread has ended',
    ]);
  });
});
