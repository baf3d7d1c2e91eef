import { geminiModel } from '../support/provider-models.js';
import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { AppendOutcomeUnknown, LogUnavailable } from '../../src/eventlog/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { answersStatus } from '../support/fake-server.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import type { Reading } from '../support/reading-council.js';
import { read as readBy, saveReadingCouncil } from '../support/reading-council.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';
import { sample, soakIt } from '../support/soak.js';

const TREES = pdfWith(['Oaks grow slowly in the shade.'], ['Elms are tall and like rivers.']);
const STONES = pdfWith(['Granite is hard.'], ['No plant grows on it.']);

/** A word from each page. */
const QUERY = 'oaks, elms, hard granite, plant';

describe('Agents that read uploaded documents', () => {
  const system = nodeSystem();
  /** Shortens the minute between two attempts to a second; shorter timeouts stay. */
  const hasty = {
    ...system,
    after: (ms: number, call: () => void) => system.after(ms >= 60_000 ? ms / 60 : ms, call),
  };
  let dir: TempDir;
  let provider: FakeProvider;
  let service: RunningService;

  const serve = async (overrides: ServiceOverrides = {}): Promise<void> => {
    const model = geminiModel({ apiKey: 'k', baseUrl: provider.url, model: 'gemini-x' });
    service = await startService({ dataDir: dir.path, model, embeddings: provider.embeddings(), ...overrides });
    await untilReady();
  };
  const untilReady = (): Promise<void> =>
    untilTrue(async () => (await restClient(service.url).get('/api/health/ready')).status === 200);
  const read = (): Promise<Reading> => readBy(service.url, provider);

  beforeEach(async () => {
    dir = tempDir();
    provider = await fakeProvider(QUERY);
    await serve();
    await saveReadingCouncil(service.url);
  });
  afterEach(async () => {
    await service.stop();
    await provider.stop();
    dir.remove();
  });

  it('find chunks and cite pages, also after a restart and after the deletion of views/', async () => {
    await uploaded(service.url, STONES, 'stones.pdf');
    await uploaded(service.url, TREES, 'Bäume.pdf');
    const first = await read();
    expect(first.tools).to.deep.equal(['pdfReader']);
    expect(first.hits).to.have.lengthOf(4);
    expect(first.hits?.map((hit) => 'page' in hit && [hit.document, hit.page, hit.chunk])).to.deep.include.members([
      [idOf(TREES), 1, 0],
      [idOf(STONES), 2, 1],
    ]);
    expect(first.lastResult)
      .to.include('Oaks grow slowly in the shade.')
      .and.include(`[${idOf(TREES).slice(0, 8)}:1]`);
    expect(first.lastResult).to.include('document="Bäume.pdf"');
    for (const isDeleted of sample([true, false, 'passages.sqlite', 'views.sqlite'] as const, 2)) {
      await service.stop();
      if (isDeleted === true) rmSync(join(dir.path, 'views'), { recursive: true });
      else if (isDeleted !== false) rmSync(join(dir.path, 'views', isDeleted));
      await serve();
      expect(await read()).to.deep.equal(first);
    }
    expect(provider.embedded()).to.have.lengthOf(4);
    expect(service.faults).to.deep.equal([]);
  });

  soakIt('find the same with locally computed vectors, which are not recorded', async () => {
    await service.stop();
    await serve({ embeddings: null });
    await uploaded(service.url, TREES);
    const first = await read();
    expect(first.hits).to.have.lengthOf(2);
    await service.stop();
    rmSync(join(dir.path, 'views'), { recursive: true });
    await serve({ embeddings: null });
    expect(await read()).to.deep.equal(first);
    expect(provider.embedded()).to.deep.equal([]);
  });

  it('have no reader while no document exists', async () => {
    expect((await read()).tools).to.deep.equal(['pdfReader: unavailable']);
    await uploaded(service.url, TREES);
    const { hits } = await read();
    const rest = restClient(service.url);
    expect((await rest.send('DELETE', `/api/documents/${idOf(TREES)}`)).status).to.equal(204);
    expect((await read()).tools).to.deep.equal(['pdfReader: unavailable']);
    expect(await uploaded(service.url, TREES, 'again.pdf')).to.include({ chunks_ingested: 2 });
    expect((await read()).hits).to.deep.equal(hits);
  });

  soakIt('do not find a deleted document after a restart either', async () => {
    await uploaded(service.url, TREES);
    await uploaded(service.url, STONES);
    await restClient(service.url).send('DELETE', `/api/documents/${idOf(TREES)}`);
    const documents = async (): Promise<readonly (string | undefined)[]> =>
      (await read()).hits?.map((hit) => ('document' in hit ? hit.document : undefined)) ?? [];
    expect(await documents()).to.deep.equal([idOf(STONES), idOf(STONES)]);
    for (const isDeleted of [false, true]) {
      await service.stop();
      if (isDeleted) rmSync(join(dir.path, 'views'), { recursive: true });
      await serve();
      expect(await documents()).to.deep.equal([idOf(STONES), idOf(STONES)]);
    }
  });

  soakIt(
    'find documents after a change of the embedding model, and after a change back without new requests',
    async () => {
      await uploaded(service.url, TREES);
      const { hits } = await read();
      await service.stop();
      await serve({ embeddings: provider.embeddings('vectors-2') });
      await untilTrue(async () => (await read()).hits !== undefined);
      expect((await read()).hits).to.deep.equal(hits);
      expect(provider.embedded()).to.have.lengthOf(4);
      const rest = restClient(service.url);
      expect(rest.read(await rest.get('/api/documents'), 200, 'document-list.json')).to.have.lengthOf(1);
      await service.stop();
      await serve();
      expect((await read()).hits).to.deep.equal(hits);
      expect((await uploaded(service.url, TREES)).message).to.match(/^Nothing was added/);
      expect(provider.embedded()).to.have.lengthOf(4);
    },
  );

  soakIt('find documents after a change of the embedding model when the model fails at first', async () => {
    await uploaded(service.url, TREES);
    const { hits } = await read();
    await service.stop();
    const refused: string[] = [];
    provider.answerBy((call, index) => {
      if (refused.length < 2 && call.path.endsWith(':batchEmbedContents')) {
        refused.push(call.path);
        return answersStatus(403);
      }
      return provider.usual(call, index);
    });
    await serve({ embeddings: provider.embeddings('vectors-2'), system: hasty });
    await untilTrue(async () => (await read()).hits !== undefined);
    expect((await read()).hits).to.deep.equal(hits);
    expect(refused).to.have.lengthOf(2);
    expect(service.faults, 'told once').to.have.lengthOf(1);
  });

  soakIt(
    'find documents after a change of the embedding model when the service stops before the vectors exist',
    async () => {
      await uploaded(service.url, TREES);
      const { hits } = await read();
      await service.stop();
      provider.answerBy((call, index) =>
        call.path.endsWith(':batchEmbedContents') ? answersStatus(403) : provider.usual(call, index),
      );
      await serve({ embeddings: provider.embeddings('vectors-2') });
      await untilTrue(() => service.faults.length > 0);
      await service.stop();
      provider.answerBy(provider.usual);
      await serve({ embeddings: provider.embeddings('vectors-2') });
      await untilTrue(async () => (await read()).hits?.length === 2);
      expect((await read()).hits).to.deep.equal(hits);
    },
  );

  for (const outage of sample([new AppendOutcomeUnknown({ stream: 'document-x' }), new LogUnavailable()], 1)) {
    it(`find documents after a change of the embedding model when the first append of vectors fails: ${outage.code}`, async () => {
      await uploaded(service.url, TREES);
      const { hits } = await read();
      await service.stop();
      let isDown = true;
      const decorate = (log: EventLog): EventLog =>
        changedLog(log, {
          async append(stream, events, expected) {
            if (isDown && stream.startsWith('document-')) throw outage;
            return await log.append(stream, events, expected);
          },
        });
      // The time limit of an append. No request arrives meanwhile.
      const soon = (ms: number, call: () => void) => hasty.after(isDown && ms === 10_000 ? 100 : ms, call);
      await serve({ embeddings: provider.embeddings('vectors-2'), system: { ...hasty, after: soon }, decorate });
      await untilTrue(() => service.faults.length > 0);
      isDown = false;
      await untilTrue(async () => (await read()).hits?.length === 2);
      expect((await read()).hits).to.deep.equal(hits);
      expect(service.faults).to.have.lengthOf(1);
    });
  }
});
