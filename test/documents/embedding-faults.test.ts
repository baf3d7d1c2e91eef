import { providerSettings } from '../support/provider-models.js';
import { expect } from 'chai';
import type { EmbeddingRequest } from '../support/fake-embeddings.js';
import { embeds, fakeEmbeddings } from '../support/fake-embeddings.js';
import { refuses } from '../support/fake-openai.js';
import type { FakeServer, Reply, Script } from '../support/fake-server.js';
import { sends } from '../support/fake-server.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { copyOf, pdfWith, upload, uploaded } from '../support/upload-client.js';
import { sample } from '../support/soak.js';

/** Five pages of one chunk each. */
const PAGES = Array.from({ length: 5 }, (_, page) =>
  Array.from({ length: 20 }, (_, line) => `Oak number ${20 * page + line} grows slowly in the garden.`),
);

const OAKS = pdfWith(['Oaks.']);

describe('A misconfigured embedding server', () => {
  let server: FakeServer<EmbeddingRequest>;
  let service: RunningService;

  before(async () => {
    server = await fakeEmbeddings([]);
    const provider = providerSettings('openai', { apiKey: null, baseUrl: `${server.url}/v1`, model: 'embed-x' });
    const embeddings = { ...provider, settings: { ...provider.settings, model: 'OPENAI_EMBEDDING_MODEL' } };
    service = await startService({ embeddings });
  });
  after(async () => {
    await service.stop();
    await server.stop();
  });

  const rows: readonly (readonly [title: string, reply: Reply, detail: RegExp])[] = [
    [
      'that returns vectors of other dimensions',
      sends({ data: [{ index: 0, embedding: [1, 2, 3] }] }),
      /model "embed-x": a vector has 3 dimensions, not 768 \(check OPENAI_EMBEDDING_MODEL\)$/,
    ],
    [
      'that does not support embeddings',
      refuses(501, { message: 'This server does not support embeddings. Start it with `--embeddings`' }),
      /answered 501 \(check OPENAI_EMBEDDING_MODEL\): This server does not support embeddings/,
    ],
    [
      'that accepts almost no text',
      refuses(500, { message: 'input is too large to process. increase the physical batch size' }),
      /answered 500: input is too large to process/,
    ],
    [
      'that does not have the model',
      refuses(400, { message: 'Invalid model name passed in model=embed-x' }),
      /answered 400 \(check OPENAI_EMBEDDING_MODEL and OPENAI_BASE_URL\): Invalid model name/,
    ],
  ];
  for (const [title, reply, detail] of sample(rows, 1)) {
    it(`${title} fails uploads at once with its reason, and is logged once`, async () => {
      server.answerBy([reply]);
      const [calls, faults] = [server.calls.length, service.faults.length];
      for (const name of ['one', 'another']) {
        const reply = await upload(service.url, copyOf(OAKS, `${name} ${title}`));
        const problem = restClient(service.url).problem(reply, 503);
        expect(problem.detail).to.match(detail);
      }
      expect(server.calls.length - calls).to.equal(2);
      expect(service.faults.slice(faults).map((fault) => String(Reflect.get(fault, 'err')))).to.have.lengthOf(1);
      expect(String(Reflect.get(service.faults.at(-1) ?? {}, 'err'))).to.match(detail);
    });
  }

  it('that accepts less text than a chunk gets chunks in pieces, and the upload succeeds', async () => {
    const taken = { texts: 0, refused: 0 };
    const small: Script<EmbeddingRequest> = (call, index) => {
      const { input = [] } = call.body;
      if (input.some((text) => text.length > 500)) {
        taken.refused += 1;
        return refuses(500, {
          message: 'input (600 tokens) is too large to process. increase the physical batch size',
        });
      }
      taken.texts += input.length;
      return embeds(call, index);
    };
    server.answerBy(small);
    const [calls, faults] = [server.calls.length, service.faults.length];
    const { chunks_ingested: chunks } = await uploaded(service.url, pdfWith(...PAGES));
    expect(chunks).to.be.within(4, 20);
    expect(taken.texts).to.be.at.least(2 * chunks);
    expect(taken.refused, 'the size that fits is learnt').to.be.lessThan(12);
    expect(server.calls.length - calls).to.be.lessThan(30);
    expect(service.faults.slice(faults)).to.deep.equal([]);
    const again = server.calls.length;
    await uploaded(service.url, pdfWith(...PAGES, ['An elm.']));
    expect(server.calls.length - again, 'and remembered').to.equal(1);
  });

  it('that accepts fewer texts per request gets smaller batches', async () => {
    server.answerBy((call, index) =>
      (call.body.input?.length ?? 0) > 2
        ? refuses(422, { message: 'batch size 9 > maximum allowed batch size 2' })
        : embeds(call, index),
    );
    const { chunks_ingested: chunks } = await uploaded(service.url, pdfWith(...PAGES, ['A beech.']));
    expect(chunks).to.be.at.least(4);
  });
});
