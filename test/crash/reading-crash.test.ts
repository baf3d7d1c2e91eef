import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startServiceProcess } from '../bench/service-process.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import { hangs } from '../support/fake-server.js';
import { documentsIn, readingOf, saveReadingCouncil, startReading } from '../support/reading-council.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { eventStoreEnvironment } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const IS_SOAK = process.env['SOAK'] !== undefined;
const TREES = pdfWith(['Oaks grow slowly in the shade.']);
const STONES = pdfWith(['Granite is hard.']);

describe('An agent that reads while its process is killed', () => {
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

  // A part of the views being lost is told in documents/reading.test.ts, after a stop.
  for (const lost of ['nothing', 'views', ...(IS_SOAK ? ['views/passages.sqlite', 'views/views.sqlite'] : [])]) {
    it(`has its reader again and finds all chunks at the next start, ${lost} being lost`, async () => {
      const environment = {
        ...eventStoreEnvironment(dir.path),
        ...{ GEMINI_API_KEY: 'k', GEMINI_BASE_URL: provider.url },
      };
      const first = await startServiceProcess(dir.path, { environment });
      await saveReadingCouncil(first.url);
      for (const bytes of [TREES, STONES]) await uploaded(first.url, bytes);
      let isAsked = false;
      provider.answerBy(() => {
        isAsked = true;
        return hangs;
      });
      const runId = await startReading(first.url);
      await untilTrue(() => isAsked);
      first.child.kill('SIGKILL');
      await first.stop();
      if (lost !== 'nothing') rmSync(join(dir.path, lost), { recursive: true });
      provider.answerBy(provider.usual);
      const next = await startServiceProcess(dir.path, { environment });
      const reading = await readingOf(next.url, runId, provider);
      expect(reading).to.deep.include({ tools: ['pdfReader'], error: null });
      expect(documentsIn(reading.hits)).to.deep.equal([idOf(TREES), idOf(STONES)].sort());
      await next.stop();
    });
  }
});
