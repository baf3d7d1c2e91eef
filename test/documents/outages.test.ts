import { expect } from 'chai';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startServiceProcess } from '../support/service-process.js';
import { ModelFailed } from '../../src/errors.js';
import type { PdfExtractor } from '../../src/pdf/extract.js';
import { EXTRACT_LIMITS, pdfExtractor } from '../../src/pdf/extract.js';
import { nodeSystem } from '../../src/system/system.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import { answersStatus } from '../support/fake-server.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { openSocket } from '../support/raw-exchange.js';
import { restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { eventStoreEnvironment } from '../support/test-event-store.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import {
  BOUNDARY,
  fileHead,
  formOf,
  idOf,
  partOf,
  pdfWith,
  UPLOAD,
  upload,
  uploaded,
} from '../support/upload-client.js';
import { soakIt } from '../support/soak.js';

const PDF = pdfWith(['Oaks.']);
/** An extraction may take long on a busy machine. */
const PATIENT = { ...EXTRACT_LIMITS, timeoutMs: 300_000 };

describe('An upload during an outage', () => {
  it('gets 503 while the log is unreachable, and succeeds when the log is back', async () => {
    const dir = tempDir();
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const service = await startService({ eventStore: { url: server.url, prefix: 'down' } });
    await server.kill();
    const reply = await upload(service.url, PDF);
    expect(restClient(service.url).problem(reply, 503).detail).to.match(/event log/);
    expect(reply.headers.get('Retry-After')).to.match(/^\d+$/);
    expect(readdirSync(join(service.dataDir, 'tmp'))).to.deep.equal([]);
    await server.restart();
    await untilTrue(async () => (await upload(service.url, PDF)).status === 200);
    await service.stop();
    await server.stop();
    dir.remove();
  });

  soakIt('recreates a deleted temporary folder, and gets 503 if that is impossible', async () => {
    const service = await startService();
    const folder = join(service.dataDir, 'tmp');
    rmSync(folder, { recursive: true });
    expect((await upload(service.url, PDF)).status).to.equal(200);
    rmSync(folder, { recursive: true });
    writeFileSync(folder, 'no folder');
    const reply = await upload(service.url, pdfWith(['Elms.']));
    expect(restClient(service.url).problem(reply, 503).detail).to.match(/^The file cannot be stored/);
    expect(reply.headers.get('Retry-After')).to.match(/^\d+$/);
    rmSync(folder);
    expect((await upload(service.url, pdfWith(['Elms.']))).status).to.equal(200);
    await service.stop();
  });

  // More than the eight places for forms. The service refuses the files that are not PDFs in order, without a child process.
  soakIt('succeeds for each of nine concurrent files, whose texts are extracted one after the other', async () => {
    const real = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits: PATIENT });
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    let asked = 0;
    const extract: PdfExtractor['extract'] = (read) => {
      asked += 1;
      return real.extract(() => begun.then(read));
    };
    const service = await startService({ extractor: { ...real, extract } });
    const others = Array.from({ length: 8 }, (_, index) => Buffer.from(`No PDF, number ${index}`));
    const answered = Promise.all([PDF, ...others].map((bytes) => upload(service.url, bytes)));
    await untilTrue(() => asked >= 8);
    begin();
    expect((await answered).map(({ status }) => status)).to.deep.equal([200, ...others.map(() => 422)]);
    expect(readdirSync(join(service.dataDir, 'tmp'))).to.deep.equal([]);
    await service.stop();
  });

  describe('of the embedding provider', () => {
    let provider: FakeProvider;

    beforeEach(async () => {
      provider = await fakeProvider('oaks');
    });
    afterEach(() => provider.stop());

    soakIt(
      'gets 503, creates no visible document, and resumes from the extracted text when it is repeated',
      async () => {
        const service = await startService({ embeddings: provider.embeddings() });
        const rest = restClient(service.url);
        provider.answerBy([answersStatus(401)]);
        const reply = await upload(service.url, PDF);
        expect(rest.problem(reply, 503).detail).to.match(/^Cannot get vectors of model "vectors-1": it answered 401/);
        expect((await rest.get(`/api/documents/${idOf(PDF)}`)).status).to.equal(404);
        expect(rest.read(await rest.get('/api/documents'), 200, 'document-list.json')).to.deep.equal([]);
        expect(readdirSync(join(service.dataDir, 'tmp'))).to.deep.equal([]);
        provider.answerBy(provider.usual);
        expect((await uploaded(service.url, PDF)).message).to.equal('1 chunk of trees.pdf ingested');
        const types: string[] = [];
        for await (const { type } of service.context.log.readStream(`document-${idOf(PDF)}`)) types.push(type);
        expect(types).to.deep.equal(['DocumentReceived', 'ChunksAdded', 'ChunksEmbedded', 'DocumentIngested']);
        await service.stop();
      },
    );
  });

  it('waits for the model once, not once per client, when several clients send the same bytes', async () => {
    const provider = await fakeProvider('oaks');
    const service = await startService({ embeddings: provider.embeddings() });
    provider.answerBy([answersStatus(401)]);
    const file = { id: idOf(PDF), filename: 'trees.pdf', bytes: PDF.length, read: () => Promise.resolve(PDF) };
    const ingest = (): Promise<unknown> => service.context.documents.ingest(file);
    const failures = await Promise.all([1, 2, 3, 4].map(() => rejectionOf(ingest())));
    for (const failure of failures) expect(failure).to.be.instanceOf(ModelFailed);
    expect(provider.calls).to.have.length(1);
    provider.answerBy(provider.usual);
    expect(await ingest()).to.deep.include({ chunks: 1, isNew: true });
    await service.stop();
    await provider.stop();
  });

  it('gets 503 with Retry-After if its extraction takes longer than PDF_TIMEOUT_MS, and leaves no files', async () => {
    const dir = tempDir();
    const environment = { ...eventStoreEnvironment(dir.path), PDF_TIMEOUT_MS: '1' };
    const service = await startServiceProcess(dir.path, { environment });
    const rest = restClient(service.url);
    const reply = await upload(service.url, PDF);
    expect(rest.problem(reply, 503).detail).to.match(/processor time.*PDF_TIMEOUT_MS/);
    expect(reply.headers.get('Retry-After')).to.equal('60');
    expect((await rest.get(`/api/documents/${idOf(PDF)}`)).status).to.equal(404);
    expect(readdirSync(join(dir.path, 'tmp'))).to.deep.equal([]);
    await service.stop();
    dir.remove();
  });

  soakIt('leaves no files after the next start when the process is killed', async () => {
    const dir = tempDir();
    const service = await startServiceProcess(dir.path, { environment: eventStoreEnvironment(dir.path) });
    const form = formOf(partOf([fileHead('x.pdf'), 'Content-Type: application/pdf'], PDF));
    const socket = await openSocket(service.url);
    socket.on('error', () => undefined);
    socket.write(
      `POST ${UPLOAD} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: 9999\r\n\r\n`,
    );
    socket.write(form.subarray(0, -30));
    const left = (): readonly string[] => readdirSync(join(dir.path, 'tmp'));
    await untilTrue(() => left().length === 1);
    service.child.kill('SIGKILL');
    await service.stop();
    expect(left()).to.have.lengthOf(1);
    mkdirSync(join(dir.path, 'tmp', 'folder'));
    writeFileSync(join(dir.path, 'tmp', 'folder', 'file'), 'x');
    const next = await startService({ dataDir: dir.path });
    expect(left()).to.deep.equal([]);
    await next.stop();
    socket.destroy();
    dir.remove();
  });
});
