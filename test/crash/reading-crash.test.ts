import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { routedModel } from '../../src/models/providers.js';
import { nodeSystem } from '../../src/system/system.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import { hangs } from '../support/fake-server.js';
import { documentsIn, readingOf, saveReadingCouncil, startReading } from '../support/reading-council.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { eventStoreEnvironment } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';
import { sample, soakIt } from '../support/soak.js';

/** The files that are deleted at each kill. documents/reading.test.ts tests deleted files after a stop. */
const LOST = sample(['views', 'nothing', 'views/passages.sqlite', 'views/views.sqlite'], 1);
const TREES = pdfWith(['Oaks grow slowly in the shade.']);
const STONES = pdfWith(['Granite is hard.']);

describe('An agent that reads documents when its process is killed', () => {
  let dir: TempDir;
  let provider: FakeProvider;

  beforeEach(async () => {
    dir = tempDir();
    provider = await fakeProvider('oaks and hard granite');
  });
  afterEach(async () => {
    await provider.stop();
    dir.remove();
  });

  soakIt('has its tool at the next start and finds all chunks, whichever file of the views is lost', async () => {
    const environment = {
      ...eventStoreEnvironment(dir.path),
      GEMINI_API_KEY: 'k',
      GEMINI_BASE_URL: provider.url,
    };
    const open = (): Promise<ServiceProcess> => startServiceProcess(dir.path, { environment });
    // The last service runs in this process and is not killed.
    const openHere = async (): Promise<RunningService> => {
      const config = { ...readConfig(environment), port: 0, dataDir: dir.path };
      return startService({
        ...config,
        model: routedModel(config.providers, { ...config, system: nodeSystem() }),
      });
    };
    let service = await open();
    await saveReadingCouncil(service.url);
    for (const bytes of [TREES, STONES]) await uploaded(service.url, bytes);
    for (const [at, lost] of LOST.entries()) {
      let isAsked = false;
      provider.answerBy(() => {
        isAsked = true;
        return hangs;
      });
      const runId = await startReading(service.url);
      await untilTrue(() => isAsked);
      service.child.kill('SIGKILL');
      await service.stop();
      if (lost !== 'nothing') rmSync(join(dir.path, lost), { recursive: true });
      provider.answerBy(provider.usual);
      const isLast = at === LOST.length - 1;
      const next = isLast ? await openHere() : (service = await open());
      const reading = await readingOf(next.url, runId, provider);
      expect(reading, lost).to.deep.include({ tools: ['pdfReader'], error: null });
      expect(documentsIn(reading.hits), lost).to.deep.equal([idOf(TREES), idOf(STONES)].sort());
      if (isLast) await next.stop();
    }
  });
});
