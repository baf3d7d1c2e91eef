import { expect } from 'chai';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { pdfWith, uploaded } from '../support/upload-client.js';

const IN_ALL = 5;

describe('A list of several pages', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService({ model: scriptedModel(() => 'hold') });
    rest = restClient(service.url);
    for (let at = 0; at < IN_ALL; at += 1) {
      await rest.start();
      rest.read(await rest.post('/api/councils/', { name: `Council ${at}`, nodes: [] }), 201, 'blueprint.json');
      await uploaded(service.url, pdfWith([`Document ${at}`]));
    }
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const idsIn = ({ text }: Reply): readonly string[] =>
    (JSON.parse(text) as readonly { readonly id: string }[]).map(({ id }) => id);
  /** The target of `Link: <…>; rel="next"` on the same service, or null without one. */
  const nextOf = ({ headers }: Reply): string | null => {
    const link = headers.get('Link');
    return link === null ? null : (/^<(\/[^<>]*)>; rel="next"$/.exec(link)?.[1] ?? expect.fail(link));
  };

  for (const path of ['/api/runs', '/api/councils/', '/api/documents']) {
    it(`links the next page of ${path} until the last one, and shows each item once`, async () => {
      const found: string[] = [];
      const pages: string[] = [];
      for (let next: string | null = `${path}?limit=2`; next !== null;) {
        pages.push(next);
        const reply = await rest.get(next);
        expect(reply.status).to.equal(200);
        found.push(...idsIn(reply));
        next = nextOf(reply);
      }
      expect(pages).to.have.length(3);
      // New runs start all the time, and an offset would repeat some.
      for (const page of pages.slice(1)) expect(page).to.include(path.startsWith('/api/runs') ? 'cursor=' : 'offset=');
      expect(found).to.deep.equal(idsIn(await rest.get(path)));
      expect(found).to.have.length(IN_ALL);
    });

    it(`has no link after the end of ${path}`, async () => {
      for (const query of ['', `?limit=${IN_ALL}`, '?limit=2&offset=3', '?offset=9007199254740991']) {
        const reply = await rest.get(path + query);
        expect(reply.status).to.equal(200);
        expect(nextOf(reply), query).to.equal(null);
      }
    });
  }

  it('keeps the other parameters of the query in the link, also for HEAD', async () => {
    const target = '/api/documents?status=pending&q=a%20b%3E%22&limit=1';
    const expected = '/api/documents?status=pending&q=a+b%3E%22&limit=1&offset=1';
    expect(nextOf(await rest.get(target))).to.equal(expected);
    expect(nextOf(await rest.send('HEAD', target))).to.equal(expected);
    const runs = '/api/runs/?status=running&q=trees&limit=1&offset=1&unknown=a%20b%3E%22';
    expect(nextOf(await rest.get(runs))).to.match(
      /^\/api\/runs\/\?status=running&q=trees&limit=1&unknown=a\+b%3E%22&cursor=[\w-]+$/,
    );
  });

  it('has at most a thousand documents or blueprints per page', async () => {
    for (const path of ['/api/documents', '/api/councils/']) {
      expect((await rest.get(`${path}?limit=1000`)).status).to.equal(200);
      rest.problem(await rest.get(`${path}?limit=1001`), 422);
    }
  });
});
