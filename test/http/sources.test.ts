import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, isOver, restClient } from '../support/rest-client.js';
import { READING_COUNCIL, startReading } from '../support/reading-council.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { asks, scriptedModel } from '../support/scripted-model.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const TREES = pdfWith(['Oaks are trees that grow slowly in the'], ['cold of the north. Elms are tall and old.']);
const ID = idOf(TREES);
const MARK = ID.slice(0, 8);
const WEB = 'https://example.org/oaks';
const DRAFT = [
  `Oaks "are trees that grow" [${MARK}:1] and “ELMS are tall, and old” [${MARK.toUpperCase()}:2, deadbeef:9].`,
  `Again "are trees that grow fast" [${MARK}:1] as elsewhere [${MARK}:7], "grow slowly in the cold of the north" [${MARK}:1].`,
  `“Oaks live for 500 years” ([Oaks](${WEB})), "and die after 500 years" <${WEB}>, see ${WEB}.`,
].join('\n\n');

describe('GET /api/runs/{run_id}/sources', () => {
  let service: RunningService;
  let rest: RestClient;
  let runId: string;

  before(async () => {
    service = await startService({
      model: scriptedModel([
        asks(['pdf_reader', { query: 'trees that are tall', top_k: 5 }], ['web_search', { query: 'oaks' }]),
        { text: DRAFT },
      ]),
      search: {
        name: 'web',
        search: async () => ({
          isFound: true,
          results: [{ url: WEB, title: 'Oaks', snippet: 'Some oaks live for 500 years.', score: null }],
        }),
      },
    });
    rest = restClient(service.url);
    await uploaded(service.url, TREES, 'trees.pdf');
    const nodes = [{ id: 'reader', tools: { pdfReader: true, webSearch: true } }];
    expect((await rest.post('/api/councils/', { ...READING_COUNCIL, nodes })).status).to.equal(201);
    runId = await startReading(service.url);
    await rest.until(runId, isOver);
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const elms = 'ELMS are tall, and old';
  const nowhere = { url: null, title: null, quotation: null, citations: [{ quoted: null, quotation: null }] };
  const expected = (filename: string | null) => [
    {
      ...{ ...nowhere, mark: `${MARK}:1`, document: ID, filename, page: 1, chunks: [0], quotation: 'missing' },
      citations: [
        { quoted: 'are trees that grow', quotation: 'exact' },
        { quoted: 'are trees that grow fast', quotation: 'missing' },
        { quoted: 'grow slowly in the cold of the north', quotation: 'exact' },
      ],
    },
    {
      ...{
        ...nowhere,
        mark: `${MARK.toUpperCase()}:2`,
        document: ID,
        filename,
        page: 2,
        chunks: [1],
        quotation: 'near',
      },
      citations: [{ quoted: elms, quotation: 'near' }],
    },
    {
      ...{ ...nowhere, mark: 'deadbeef:9', document: null, filename: null, page: 9, chunks: [], quotation: 'missing' },
      citations: [{ quoted: elms, quotation: 'missing' }],
    },
    { ...nowhere, mark: `${MARK}:7`, document: null, filename: null, page: 7, chunks: [] },
    {
      ...{ mark: WEB, document: null, filename: null, page: null, chunks: [], url: WEB, title: 'Oaks' },
      quotation: 'missing',
      citations: [
        { quoted: 'Oaks live for 500 years', quotation: 'near' },
        { quoted: 'and die after 500 years', quotation: 'missing' },
        { quoted: null, quotation: null },
      ],
    },
  ];
  const withoutText = () =>
    expected(null).map((each) =>
      each.document === null
        ? each
        : { ...each, quotation: null, citations: each.citations.map((of) => ({ ...of, quotation: null })) },
    );

  it('names each page that the tools of the run have found, and says whether it has what the draft quotes before it', async () => {
    const sources = rest.read(await rest.get(`/api/runs/${runId}/sources`), 200, 'source-list.json');
    expect(sources).to.deep.equal(expected('trees.pdf'));
    expect(await new CouncilClient({ url: service.url }).run(runId).sources()).to.deep.equal(sources);
  });

  it('has what the parent of a fork had found, and keeps the citations of a deleted document, whose text nobody knows', async () => {
    const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
    const fork = await new CouncilClient({ url: service.url }).run(runId).fork({ at: events.length - 2 });
    await fork.result();
    expect(await fork.sources()).to.deep.equal(expected('trees.pdf'));
    expect((await rest.send('DELETE', `/api/documents/${ID}`)).status).to.equal(204);
    expect(await fork.sources()).to.deep.equal(withoutText());
  });

  it('is empty for a draft without citations, and 404 for an unknown run', async () => {
    const plain = await new CouncilClient({ url: service.url }).runs.start({ topic: 'Plain' });
    expect(await plain.sources()).to.deep.equal([]);
    await plain.cancel().catch(() => undefined);
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/sources`), 404);
  });
});
