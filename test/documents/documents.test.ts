import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Document } from '../../src/generated/schemas.js';
import { damageEvent } from '../support/damaged-log.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const FILES = ['one', 'two', 'three'].map((name) => ({ name: `${name}.pdf`, bytes: pdfWith([`The ${name}.`], []) }));
const NO_DOCUMENT = '0'.repeat(64);

describe('/api/documents', () => {
  let dir: TempDir;
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    dir = tempDir();
    await serve();
    for (const { name, bytes } of FILES) await uploaded(service.url, bytes, name);
  });
  afterEach(async () => {
    await service.stop();
    dir.remove();
  });

  const serve = async (): Promise<void> => {
    service = await startService({ dataDir: dir.path });
    rest = restClient(service.url);
    await untilTrue(async () => (await rest.get('/api/health/ready')).status === 200);
  };
  const list = async (query = ''): Promise<readonly Document[]> =>
    rest.read(await rest.get(`/api/documents${query}`), 200, 'document-list.json');
  const remove = (id: string): Promise<Reply> => rest.send('DELETE', `/api/documents/${id}`);

  it('lists documents newest first, in pages, with and without a trailing slash', async () => {
    const all = await list();
    expect(all.map(({ filename }) => filename)).to.deep.equal(['three.pdf', 'two.pdf', 'one.pdf']);
    for (const [index, document] of all.entries()) {
      expect(document).to.deep.include({ id: idOf(FILES[2 - index]?.bytes ?? Buffer.alloc(0)), pages: 2, chunks: 1 });
      expect(document.ingested_at).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
    expect(await list('/')).to.deep.equal(all);
    expect(await list('?limit=1&offset=1')).to.deep.equal(all.slice(1, 2));
    expect(await list('?offset=3')).to.deep.equal([]);
    for (const query of ['?limit=0', '?limit=1001', '?offset=-1', '?limit=x']) {
      rest.problem(await rest.get(`/api/documents${query}`), 422);
    }
  });

  it('returns a document, or 404', async () => {
    for (const document of await list()) {
      expect(rest.read(await rest.get(`/api/documents/${document.id}`), 200, 'document.json')).to.deep.equal(document);
    }
    for (const id of [NO_DOCUMENT, 'x', 'A'.repeat(64), '%00', '../councils', `${NO_DOCUMENT}0`]) {
      expect((await rest.get(`/api/documents/${encodeURIComponent(id)}`)).status, id).to.equal(404);
      expect((await remove(encodeURIComponent(id))).status, id).to.equal(404);
    }
    expect(rest.problem(await rest.get(`/api/documents/${NO_DOCUMENT}`), 404).detail).to.include(NO_DOCUMENT);
  });

  it('deletes a document with 204, and answers 404 to a second deletion', async () => {
    const [newest] = await list();
    const replies = await Promise.all(Array.from({ length: 5 }, () => remove(newest?.id ?? '')));
    expect(replies.map(({ status }) => status).sort()).to.deep.equal([204, 404, 404, 404, 404]);
    expect((await list()).map(({ filename }) => filename)).to.deep.equal(['two.pdf', 'one.pdf']);
    expect(service.faults).to.deep.equal([]);
  });

  it('answers the same after a restart and after the deletion of views/', async () => {
    await remove((await list())[1]?.id ?? '');
    const told = await list();
    expect(told).to.have.lengthOf(2);
    for (const isDeleted of [false, true]) {
      await service.stop();
      if (isDeleted) rmSync(join(dir.path, 'views'), { recursive: true });
      await serve();
      expect(await list()).to.deep.equal(told);
      for (const { id, ...rests } of told) {
        expect(rest.read(await rest.get(`/api/documents/${id}`), 200, 'document.json')).to.deep.equal({ id, ...rests });
      }
    }
  });

  onEmbeddedLog(() => {
    it('reports a document with a corrupt record, and accepts it again after a deletion', async () => {
      const id = idOf(FILES[0]?.bytes ?? Buffer.alloc(0));
      const ids: string[] = [];
      for await (const event of service.context.log.readStream(`document-${id}`)) ids.push(event.id);
      await service.stop();
      damageEvent(dir.path, ids[1] ?? '', ['The one.', 'The ten.']);
      rmSync(join(dir.path, 'views'), { recursive: true });
      await serve();
      expect(service.faults.map((fault) => 'err' in fault && String(fault.err))).to.deep.equal([
        `DocumentCorrupt: The record of document "${id}" is damaged at seq 1: its hash does not follow from the event before it and its own fields`,
      ]);
      expect((await remove(id)).status).to.equal(204);
      expect(await list()).to.have.lengthOf(2);
      expect(await uploaded(service.url, FILES[0]?.bytes ?? Buffer.alloc(0))).to.include({ chunks_ingested: 1 });
      expect(service.faults).to.have.lengthOf(1);
    });
  });
});
