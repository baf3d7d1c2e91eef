import { geminiModel } from '../support/provider-models.js';
import { expect } from 'chai';
import type { Document, DocumentVerification } from '../../src/generated/schemas.js';
import { GENESIS_HASH } from '../../src/eventsourcing/hash-chain.js';
import type { RecordedEvent } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { changeViews, damageEvent, dropEvent } from '../support/damaged-log.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import { documentsIn, read, saveReadingCouncil } from '../support/reading-council.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, upload, uploaded } from '../support/upload-client.js';
import { sample, soakIt } from '../support/soak.js';

const DETAIL = 'The record of this document is damaged';
const TREES = pdfWith(['Oaks grow slowly in the shade.']);
const STONES = pdfWith(['Granite is hard.']);
const [trees, stones] = [idOf(TREES), idOf(STONES)];
const NONE = { valid: true, first_difference: null };

describe('Documents with a corrupt record', () => {
  let dir: TempDir;
  let provider: FakeProvider;
  let service: RunningService;
  let rest: RestClient;

  const serve = async (overrides: ServiceOverrides = {}): Promise<void> => {
    const model = geminiModel({ apiKey: 'k', baseUrl: provider.url, model: 'gemini-x' });
    service = await startService({ dataDir: dir.path, model, embeddings: null, ...overrides });
    rest = restClient(service.url);
  };
  const whileStopped = async (change: () => void): Promise<void> => {
    await service.stop();
    change();
    await serve();
  };
  const verify = async (id: string): Promise<DocumentVerification> =>
    rest.read(await rest.get(`/api/documents/${id}/verify`), 200, 'document-verification.json');
  const list = async (): Promise<readonly Document[]> =>
    rest.read(await rest.get('/api/documents'), 200, 'document-list.json');
  const recordOf = async (id: string): Promise<readonly RecordedEvent[]> => {
    const events: RecordedEvent[] = [];
    for await (const event of service.context.log.readStream(`document-${id}`)) events.push(event);
    return events;
  };
  const idAt = async (id: string, seq: number): Promise<string> => (await recordOf(id)).at(seq)?.id ?? '';
  const found = async (): Promise<readonly string[]> => documentsIn((await read(service.url, provider)).hits);
  const remove = async (id: string): Promise<number> => (await rest.send('DELETE', `/api/documents/${id}`)).status;
  /** Waits until the background check after a start has found the corrupt documents. */
  const untilReported = (): Promise<void> =>
    untilTrue(async () => (await list()).some(({ error }) => error === DETAIL));
  const expectReported = async (id: string): Promise<void> => {
    expect(rest.problem(await rest.get(`/api/documents/${id}`), 500).detail).to.include(DETAIL);
    const listed = await list();
    expect(listed.find((each) => each.id === id)).to.include({ error: DETAIL });
    expect(listed.filter((each) => each.id !== id && each.error !== undefined)).to.deep.equal([]);
    expect((await verify(id)).valid).to.equal(false);
    expect(await found()).not.to.include(id);
  };

  beforeEach(async () => {
    dir = tempDir();
    provider = await fakeProvider('oaks and hard granite');
    await serve();
    await saveReadingCouncil(service.url);
    await uploaded(service.url, TREES, 'trees.pdf');
    await uploaded(service.url, STONES, 'stones.pdf');
  });
  afterEach(async () => {
    await service.stop();
    await provider.stop();
    dir.remove();
  });

  it('verification of an intact document returns its number of events and the hash of the last event', async () => {
    const events = await recordOf(trees);
    const head = { events: events.length, head_hash: events.at(-1)?.metadata['hash'] };
    expect(await verify(trees)).to.deep.equal({ document_id: trees, ...head, ...NONE });
    expect(await remove(trees)).to.equal(204);
    for (const id of [trees, '0'.repeat(64), 'x', trees.toUpperCase()]) {
      expect(rest.problem(await rest.get(`/api/documents/${id}/verify`), 404).detail).to.include(id);
    }
    expect(service.faults).to.deep.equal([]);
  });

  soakIt('the view always equals the record during uploads and deletions', async () => {
    const over = new AbortController();
    const changing = (async () => {
      for (let turn = 0; turn < 2; turn += 1) {
        await remove(trees);
        await uploaded(service.url, TREES);
      }
    })().finally(() => over.abort());
    while (!over.signal.aborted) {
      const reply = await rest.get(`/api/documents/${trees}/verify`);
      // Between its erasure and the next upload it is unknown.
      if (reply.status !== 404) expect(rest.read(reply, 200, 'document-verification.json')).to.include(NONE);
    }
    await changing;
    expect(await found()).to.deep.equal([trees, stones].sort());
  });

  onEmbeddedLog(() => {
    it('a corrupt record is found at the start and is omitted from list and search', async () => {
      expect(await found()).to.deep.equal([trees, stones].sort());
      const changed = await idAt(trees, 1);
      await whileStopped(() => damageEvent(dir.path, changed, ['Oaks grow', 'Oaks glow']));
      await untilReported();
      expect(service.faults).to.have.length(1);
      await expectReported(trees);
      expect((await verify(trees)).first_difference).to.have.property('seq', 1);
      expect(await verify(stones)).to.include(NONE);
      expect(await found()).to.deep.equal([stones]);
      await whileStopped(() => undefined);
      await untilReported();
      await expectReported(trees);
    });

    soakIt('a corrupt document can be deleted and uploaded again, and nothing of the corruption is left', async () => {
      const changed = await idAt(trees, 1);
      await whileStopped(() => damageEvent(dir.path, changed, ['Oaks grow', 'Oaks glow']));
      await untilReported();
      await expectReported(trees);
      expect(rest.problem(await upload(service.url, TREES), 500).detail).to.include(DETAIL);
      expect(await remove(trees)).to.equal(204);
      rest.problem(await rest.get(`/api/documents/${trees}`), 404);
      expect(await uploaded(service.url, TREES)).to.include({ chunks_ingested: 1 });
      for (const isRestarted of [false, true]) {
        if (isRestarted) await whileStopped(() => undefined);
        expect(await verify(trees)).to.include(NONE);
        expect(rest.read(await rest.get(`/api/documents/${trees}`), 200, 'document.json')).to.have.property(
          'id',
          trees,
        );
        expect((await list()).filter(({ error }) => error !== undefined)).to.deep.equal([]);
        expect(await found()).to.deep.equal([trees, stones].sort());
      }
    });

    soakIt('a document whose data is not JSON can be deleted', async () => {
      const last = await idAt(trees, -1);
      await whileStopped(() => damageEvent(dir.path, last, ['{', '[']));
      await untilReported();
      await expectReported(trees);
      expect(await remove(trees)).to.equal(204);
      expect(await remove(trees)).to.equal(404);
      expect((await list()).map(({ id }) => id)).to.deep.equal([stones]);
    });

    it('a document is corrupt if some or all of its events are missing', async () => {
      const [hole, tail, all] = [await idAt(trees, 1), await idAt(stones, -1), await recordOf(stones)];
      // Adds later events, because otherwise the log would be shorter than its views.
      await found();
      await whileStopped(() => [hole, tail].forEach((id) => dropEvent(dir.path, id)));
      expect((await verify(trees)).first_difference).to.have.property('seq', 1);
      const cut = await verify(stones);
      expect(cut.first_difference).to.deep.include({ seq: all.length - 1 });
      expect(cut.first_difference?.what).to.include('the record ends before it');
      expect(await found()).to.deep.equal([]);
      rest.problem(await rest.get(`/api/documents/${stones}`), 500);
      await whileStopped(() => all.forEach(({ id }) => dropEvent(dir.path, id)));
      expect(await verify(stones)).to.deep.include({ valid: false, events: 0, head_hash: GENESIS_HASH });
      // A new upload continues from the remaining events, or starts again.
      expect(await remove(trees)).to.equal(204);
      expect(await uploaded(service.url, STONES)).to.include({ chunks_ingested: 1 });
      rest.read(await rest.get(`/api/documents/${stones}`), 200, 'document.json');
      expect(await found()).to.deep.equal([stones]);
    });

    it('a stored view that differs from the fold is reported once and replaced', async () => {
      const told = await list();
      const where = `WHERE id = '${trees}'`;
      const changes = [
        `UPDATE documents SET record = json_set(record, '$.filename', 'other.pdf') ${where}`,
        `UPDATE documents SET record = json_set(record, '$.seq', 0) ${where}`,
        `UPDATE documents SET record = json_set(record, '$.seq', 99) ${where}`,
        `DELETE FROM documents ${where}`,
      ];
      for (const sql of sample(changes, 2)) {
        await whileStopped(() => changeViews(dir.path, sql));
        const { valid, first_difference: difference } = await verify(trees);
        expect(valid, sql).to.equal(false);
        expect(difference?.what).to.include('stored view');
        expect(service.faults, sql).to.have.length(1);
        expect(await list(), sql).to.deep.equal(told);
        expect(await verify(trees), sql).to.include(NONE);
      }
    });
  });

  it('a document found to be corrupt during a search is not given to agents', async () => {
    await service.stop();
    let isSpoilt = false;
    await serve({
      decorate: (log) =>
        changedLog(log, {
          async *readStream(stream, range) {
            for await (const event of log.readStream(stream, range)) {
              const isMeant = isSpoilt && stream === `document-${trees}`;
              yield isMeant ? { ...event, data: event.data.replace('Oaks', 'Elms') } : event;
            }
          },
        }),
    });
    expect(await found()).to.deep.equal([trees, stones].sort());
    isSpoilt = true;
    expect((await verify(trees)).valid).to.equal(false);
    await expectReported(trees);
    expect(await found()).to.deep.equal([stones]);
  });
});
