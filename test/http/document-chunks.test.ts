import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { FoundPassage, NumberedChunk, RunFacts } from '../../src/generated/schemas.js';
import { allOf } from '../support/all-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import { saveReadingCouncil, startReading } from '../support/reading-council.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { asks, scriptedModel } from '../support/scripted-model.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

/** A text of more than one chunk. */
const LONG_PAGE = Array.from({ length: 40 }, (_, line) => `Line ${line} says that oaks grow slowly, and elms do not.`);
const TREES = pdfWith(['Oaks are trees.'], LONG_PAGE, ['Elms are tall.'], []);
const SEA = pdfWith(['The sea is deep.']);
const [TREES_ID, SEA_ID] = [idOf(TREES), idOf(SEA)];
const NO_DOCUMENT = '0'.repeat(64);
const QUERY = { query: ' oaks that\ngrow   slowly', top_k: 3 };

describe('The chunks of documents', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  let council: CouncilClient;

  before(async () => {
    model = scriptedModel([asks(['pdf_reader', QUERY]), { text: 'A draft' }]);
    service = await startService({ model });
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
    await uploaded(service.url, TREES, 'trees.pdf');
    await uploaded(service.url, SEA, 'sea.pdf');
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const chunks = async (query = ''): Promise<readonly NumberedChunk[]> =>
    rest.read(await rest.get(`/api/documents/${TREES_ID}/chunks${query}`), 200, 'document-chunk-list.json');
  const search = async (query: string): Promise<readonly FoundPassage[]> =>
    rest.read(await rest.get(`/api/documents/search?${query}`), 200, 'document-search.json');

  it('are listed in order, for all pages or for one page of the document', async () => {
    const all = await chunks();
    expect(all.map(({ chunk }) => chunk)).to.deep.equal(all.map((_, index) => index));
    expect(all.map(({ page }) => page)).to.deep.equal([1, 2, 2, 3]);
    expect(all[0]).to.deep.equal({ page: 1, chunk: 0, from: 0, to: 15, text: 'Oaks are trees.' });
    for (const page of [1, 2, 3, 4, 5]) {
      expect(await chunks(`?page=${page}`)).to.deep.equal(all.filter((each) => each.page === page));
    }
  });

  it('are listed in pages with limit and offset', async () => {
    const all = await chunks();
    expect(await chunks('?limit=2&offset=1')).to.deep.equal(all.slice(1, 3));
    const pages = await allOf(council.documents.chunks(TREES_ID, { page: 2, limit: 1 }).pages());
    expect(pages).to.deep.equal(all.slice(1, 3).map((each) => [each]));
    expect(await allOf(council.documents.chunks(TREES_ID))).to.deep.equal(all);
  });

  it('get 404 for an unknown document, and 422 for an invalid page', async () => {
    for (const id of [NO_DOCUMENT, 'search', 'x', '%00']) {
      rest.problem(await rest.get(`/api/documents/${id}/chunks`), 404);
    }
    for (const query of ['page=0', 'page=x', 'page=1.5', 'page=1&page=2', 'limit=0', 'limit=1001', 'offset=-1']) {
      rest.problem(await rest.get(`/api/documents/${TREES_ID}/chunks?${query}`), 422);
    }
  });

  it('are found as an agent receives them, with their citation', async () => {
    await saveReadingCouncil(service.url);
    const runId = await startReading(service.url);
    await rest.until(runId, isOver);
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const called: unknown = events.find(({ type }) => type === 'ToolCalled')?.data;
    const { hits } = called as RunFacts['ToolCalled'];
    const told = model.requests.at(-1)?.rounds?.[0]?.exchanges[0]?.result ?? '';

    const found = await search(new URLSearchParams({ q: QUERY.query, top_k: '3' }).toString());
    expect(found).to.have.lengthOf(3);
    expect(found.map(({ document, page, chunk, score }) => ({ document, page, chunk, score }))).to.deep.equal(hits);
    const marks = [...told.matchAll(/cite="(.*?)" document="(.*?)"/g)].map(([, cite, filename]) => [cite, filename]);
    expect(found.map(({ cite, filename }) => [cite, filename])).to.deep.equal(marks);
    const all = await chunks();
    for (const { document, chunk, text } of found) {
      if (document === TREES_ID) expect(text).to.equal(all[chunk]?.text);
    }
    expect(await council.documents.search(QUERY.query, { topK: 3 })).to.deep.equal(found);
  });

  it('get 422 for a search without words or with an invalid limit', async () => {
    expect(await search('q=sea')).to.have.nested.property('[0].document', SEA_ID);
    expect(await search(`q=${'x'.repeat(1000)}`)).to.be.an('array');
    for (const query of ['', 'q=', 'q=%20%0A', `q=${'x'.repeat(1001)}`, 'q=a&top_k=0', 'q=a&top_k=21', 'q=a&top_k=x']) {
      rest.problem(await rest.get(`/api/documents/search?${query}`), 422);
    }
  });

  it('are neither listed nor found after their document was deleted', async () => {
    await council.documents.delete(SEA_ID);
    rest.problem(await rest.get(`/api/documents/${SEA_ID}/chunks`), 404);
    const found = await search('q=sea');
    expect(found.filter(({ document }) => document === SEA_ID)).to.deep.equal([]);
  });
});
