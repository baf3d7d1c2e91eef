import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, isOver, restClient } from '../support/rest-client.js';
import { saveReadingCouncil, startReading } from '../support/reading-council.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { asks, scriptedModel } from '../support/scripted-model.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const TREES = pdfWith(['Oaks are trees.'], ['Elms are tall.']);
const ID = idOf(TREES);
const MARK = ID.slice(0, 8);
const DRAFT = `Oaks [${MARK}:1] and elms [${MARK.toUpperCase()}:2, deadbeef:9], again [${MARK}:1] and [${MARK}:7].`;

describe('GET /api/runs/{run_id}/sources', () => {
  let service: RunningService;
  let rest: RestClient;
  let runId: string;

  before(async () => {
    service = await startService({
      model: scriptedModel([asks(['pdf_reader', { query: 'trees that are tall', top_k: 5 }]), { text: DRAFT }]),
    });
    rest = restClient(service.url);
    await uploaded(service.url, TREES, 'trees.pdf');
    await saveReadingCouncil(service.url);
    runId = await startReading(service.url);
    await rest.until(runId, isOver);
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const expected = (filename: string | null) => [
    { mark: `${MARK}:1`, document: ID, filename, page: 1, chunks: [0] },
    { mark: `${MARK.toUpperCase()}:2`, document: ID, filename, page: 2, chunks: [1] },
    { mark: 'deadbeef:9', document: null, filename: null, page: 9, chunks: [] },
    { mark: `${MARK}:7`, document: null, filename: null, page: 7, chunks: [] },
  ];

  it('names the document, page and chunks of each citation that the tools of the run have found', async () => {
    const sources = rest.read(await rest.get(`/api/runs/${runId}/sources`), 200, 'source-list.json');
    expect(sources).to.deep.equal(expected('trees.pdf'));
    expect(await new CouncilClient({ url: service.url }).run(runId).sources()).to.deep.equal(sources);
  });

  it('has what the parent of a fork had found, and keeps the citations of a deleted document', async () => {
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const fork = await new CouncilClient({ url: service.url }).run(runId).fork({ at: events.length - 2 });
    await fork.result();
    expect(await fork.sources()).to.deep.equal(expected('trees.pdf'));
    expect((await rest.send('DELETE', `/api/documents/${ID}`)).status).to.equal(204);
    expect(await fork.sources()).to.deep.equal(expected(null));
  });

  it('is empty for a draft without citations, and 404 for an unknown run', async () => {
    const plain = await new CouncilClient({ url: service.url }).runs.start({ topic: 'Plain' });
    expect(await plain.sources()).to.deep.equal([]);
    await plain.cancel().catch(() => undefined);
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/sources`), 404);
  });
});
