import { expect } from 'chai';
import { join } from 'node:path';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import { readDocument } from '../../src/documents/events.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import type { TestEngine } from '../support/open-engine.js';
import { hideDocument } from '../support/hide-document.js';
import { openTestEngine } from '../support/open-engine.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';
import { soakIt } from '../support/soak.js';

const PDF = pdfWith(...Array.from({ length: 100 }, (_, page) => [`Page ${page} tells of oaks.`]));
const { sha256 } = nodeSystem();
/** An upload may wait for its turn without limit, however busy the machine is. */
const WAIT_FOR_ROOM_MS = 10_000;
const { after, ...rests } = nodeSystem();
const patient: System = {
  ...rests,
  after: (ms, callback) => (ms === WAIT_FOR_ROOM_MS ? () => undefined : after(ms, callback)),
};

async function typesOf(log: EventLog): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { type } of readDocument(log, idOf(PDF), { sha256 })) types.push(type);
  return types;
}

describe('Uploads of the same bytes', () => {
  let provider: FakeProvider;

  beforeEach(async () => {
    provider = await fakeProvider('oaks');
  });
  afterEach(() => provider.stop());

  describe('at one instance', () => {
    let service: RunningService;

    beforeEach(async () => {
      service = await startService({ embeddings: provider.embeddings(), system: patient });
    });
    afterEach(() => service.stop());

    it('create one document, extracted and embedded once, from twenty concurrent uploads with different names', async () => {
      const names = Array.from({ length: 20 }, (_, index) => `copy ${index}.pdf`);
      const results = await Promise.all(names.map((name) => uploaded(service.url, PDF, name)));
      expect(results.map(({ filename }) => filename)).to.deep.equal(names);
      expect(new Set(results.map(({ chunks_ingested: chunks }) => chunks))).to.deep.equal(new Set([100]));
      expect(results.filter(({ message }) => !message.startsWith('Nothing was added'))).to.have.lengthOf(1);
      expect(provider.embedded()).to.have.lengthOf(100);
      expect(await typesOf(service.context.log)).to.deep.equal([
        ...['DocumentReceived', 'ChunksAdded', 'ChunksEmbedded', 'ChunksEmbedded', 'DocumentIngested'],
      ]);
      const rest = restClient(service.url);
      expect(rest.read(await rest.get('/api/documents'), 200, 'document-list.json')).to.have.lengthOf(1);
    });

    soakIt('create a new document with the new name after a deletion', async () => {
      const rest = restClient(service.url);
      const path = `/api/documents/${idOf(PDF)}`;
      await uploaded(service.url, PDF, 'old.pdf');
      expect((await rest.send('DELETE', path)).status).to.equal(204);
      rest.problem(await rest.get(path), 404);
      rest.problem(await rest.send('DELETE', path), 404);
      expect(rest.read(await rest.get('/api/documents'), 200, 'document-list.json')).to.deep.equal([]);
      expect((await uploaded(service.url, PDF, 'new.pdf')).message).to.equal('100 chunks of new.pdf ingested');
      expect(rest.read(await rest.get(path), 200, 'document.json')).to.include({ filename: 'new.pdf', chunks: 100 });
    });
  });

  describe('at two instances', () => {
    let dir: TempDir;
    let shared: SharedLog;
    let engines: TestEngine[];

    beforeEach(async () => {
      dir = tempDir();
      shared = await openSharedLog(dir.path);
      engines = [];
    });
    afterEach(async () => {
      await Promise.all(engines.map((engine) => engine.stop()));
      await shared.close();
      dir.remove();
    });

    const open = async (
      name: string,
      { embeddings = provider.embeddings(), decorate = (log: EventLog): EventLog => log } = {},
    ): Promise<TestEngine> => {
      const engine = await openTestEngine({
        path: join(dir.path, name),
        model: scriptedModel(),
        embeddings,
        openLog: async () => decorate(shared.line().log),
      });
      await engine.recovery.unfinished();
      engines.push(engine);
      return engine;
    };
    const ingest = (engine: TestEngine) =>
      engine.documents.ingest({
        id: idOf(PDF),
        filename: 'x.pdf',
        bytes: PDF.length,
        read: async () => new Uint8Array(PDF),
      });

    soakIt('are ingested once, by the first instance at each step, and searchable at both', async () => {
      const both = await Promise.all([open('one'), open('two')]);
      const results = await Promise.all(both.map(ingest));
      expect(results.map(({ chunks }) => chunks)).to.deep.equal([100, 100]);
      expect(results.filter(({ isNew }) => isNew)).to.have.lengthOf(1);
      expect(await typesOf(shared.log)).to.deep.equal([
        ...['DocumentReceived', 'ChunksAdded', 'ChunksEmbedded', 'ChunksEmbedded', 'DocumentIngested'],
      ]);
      for (const engine of both) {
        await untilTrue(() => engine.readiness.isReady());
        expect(await engine.documents.find(idOf(PDF))).to.include({ filename: 'x.pdf', chunks: 100 });
        expect(await engine.documentList({ limit: 10, offset: 0 })).to.have.lengthOf(1);
      }
    });

    it('disappear at both instances after a deletion of an earlier version, and return after the next upload', async () => {
      const [one, other] = [await open('one'), await open('other')];
      await ingest(one);
      await hideDocument(shared.log, idOf(PDF));
      expect(await one.documents.find(idOf(PDF))).to.equal(null);
      expect(await one.documentList({ limit: 10, offset: 0 })).to.deep.equal([]);
      expect(await ingest(one)).to.include({ chunks: 100, isNew: true });
      expect(await other.documents.find(idOf(PDF))).to.include({ filename: 'x.pdf', chunks: 100 });
      expect(await other.documentList({ limit: 10, offset: 0 })).to.have.lengthOf(1);
    });

    soakIt('stay deleted when that deletion happens while another model computes their vectors', async () => {
      const one = await open('one');
      await ingest(one);
      let deleted: Promise<unknown> | null = null;
      const other = await open('other', {
        embeddings: provider.embeddings('vectors-2'),
        decorate: (log) =>
          changedLog(log, {
            async append(stream, events, expected) {
              if (stream.startsWith('document-')) await (deleted ??= hideDocument(shared.log, idOf(PDF)));
              return await log.append(stream, events, expected);
            },
          }),
      });
      await untilTrue(() => deleted !== null && other.faults.length > 0);
      expect(await typesOf(shared.log)).to.have.property('5', 'DocumentDeleted');
      expect(await typesOf(shared.log)).to.have.lengthOf(6);
      expect(await other.documents.find(idOf(PDF))).to.equal(null);
    });
  });
});
