import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { filesWith } from '../support/files-with.js';
import { hideDocument } from '../support/hide-document.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const WORD = 'zyxcanaryword';
const PDF = pdfWith([`The ${WORD} of the town.`, 'Trees along the road.']);

describe('The erasure of a document', () => {
  let dir: TempDir;
  let service: RunningService;
  let rest: RestClient;

  const serve = async (): Promise<void> => {
    service = await startService({ dataDir: dir.path });
    rest = restClient(service.url);
    await untilTrue(async () => (await rest.get('/api/health/ready')).status === 200);
  };
  beforeEach(async () => {
    dir = tempDir();
    await serve();
    await uploaded(service.url, pdfWith(['Another document about rivers.']), 'rivers.pdf');
    await uploaded(service.url, PDF, `${WORD}.pdf`);
  });
  afterEach(async () => {
    await service.stop();
    dir.remove();
  });

  const id = idOf(PDF);
  const remove = async (): Promise<number> => (await rest.send('DELETE', `/api/documents/${id}`)).status;
  const found = async (): Promise<number> => {
    const reply = await rest.get(`/api/documents/search?q=${WORD}`);
    return reply.text.split(id).length - 1;
  };

  it('adds a leaf, and the document is unknown then', async () => {
    expect(await remove()).to.equal(204);
    expect(await remove()).to.equal(404);
    expect((await rest.get(`/api/documents/${id}`)).status).to.equal(404);
    const leaves: object[] = [];
    for await (const { data } of service.context.log.readStream('ledger')) leaves.push(JSON.parse(data) as object);
    expect(leaves).to.have.length(1);
    expect(leaves[0]).to.deep.include({ kind: 'erasure', what: 'document', id, actor: null });
  });

  it('takes the reason of a request, at most 500 characters, into the leaf', async () => {
    const send = (reason: string) => rest.send('DELETE', `/api/documents/${id}`, { body: { reason } });
    rest.problem(await send('x'.repeat(501)), 422);
    expect((await send('asked')).status).to.equal(204);
    for await (const { data } of service.context.log.readStream('ledger'))
      expect(JSON.parse(data)).to.include({ what: 'document', reason: 'asked' });
  });

  it('lets the same file be uploaded and erased again, also after restarts', async () => {
    for (let round = 0; round < 3; round += 1) {
      expect(await remove()).to.equal(204);
      if (round === 1) {
        await service.stop();
        rmSync(join(dir.path, 'views'), { recursive: true });
        await serve();
      }
      expect((await rest.get(`/api/documents/${id}`)).status).to.equal(404);
      expect(await found()).to.equal(0);
      await uploaded(service.url, PDF, `${WORD}.pdf`);
      expect((await rest.get(`/api/documents/${id}`)).status).to.equal(200);
      expect(
        rest.read(await rest.get(`/api/documents/${id}/verify`), 200, 'document-verification.json'),
      ).to.deep.include({
        first_difference: null,
      });
      expect(await found()).to.be.greaterThan(0);
      await service.stop();
      await serve();
      expect(await found()).to.be.greaterThan(0);
    }
  });

  onEmbeddedLog(() =>
    it('leaves no byte of its texts or its name in the data directory', async () => {
      expect(filesWith(dir.path, WORD)).not.to.deep.equal([]);
      expect(await remove()).to.equal(204);
      expect(filesWith(dir.path, WORD)).to.deep.equal([]);
      expect((await rest.get('/api/documents/')).text).to.include('rivers.pdf');
    }),
  );

  onEmbeddedLog(() =>
    it('erases the texts of a document that an earlier version only hid', async () => {
      await hideDocument(service.context.log, id);
      expect((await rest.get(`/api/documents/${id}`)).status).to.equal(404);
      expect(filesWith(dir.path, WORD)).not.to.deep.equal([]);
      expect(await remove()).to.equal(204);
      expect(filesWith(dir.path, WORD)).to.deep.equal([]);
    }),
  );
});
