import { expect } from 'chai';
import { searxng } from '../../../src/websearch/provider.js';
import { tavily } from '../../../src/websearch/provider.js';
import type { Tool, ToolOutcome } from '../../../src/council/tools/tool.js';
import type { SearchProvider } from '../../../src/council/tools/web-search.js';
import { webSearch } from '../../../src/council/tools/web-search.js';
import type { FakeServer, Reply } from '../../support/fake-server.js';
import { answersStatus, endsMidBody, fakeServer, hangs, resets, sends } from '../../support/fake-server.js';
import { rejectionOf } from '../../support/rejection.js';

const KEY = 'tvly-secret-key-of-this-test';
const RESULTS = {
  results: [
    { url: 'https://example.org/a', title: 'A', content: 'About A.', score: 0.9, raw_content: 'never' },
    { url: 'https://example.org/b', title: 'B', content: 'About B.' },
  ],
};

const PROVIDERS: readonly [name: string, build: (baseUrl: string) => SearchProvider][] = [
  ['Tavily', (baseUrl) => tavily({ apiKey: KEY, baseUrl })],
  ['SearXNG', (baseUrl) => searxng({ baseUrl })],
];

for (const [name, build] of PROVIDERS) {
  describe(`Web search through ${name}`, () => {
    let server: FakeServer<unknown>;
    let tool: Tool;

    const search = (signal = new AbortController().signal): Promise<ToolOutcome> =>
      tool.run({ query: 'oaks & elms' }, { signal, maxBytes: 10_000 });
    const faultOn = async (reply: Reply): Promise<string> => {
      server.answerBy([reply]);
      const outcome = await search();
      if (outcome.isFound) throw new Error('Something was found');
      expect(outcome.fault)
        .to.match(new RegExp(`^${name} gave no results: `))
        .and.not.include(KEY);
      return outcome.fault;
    };

    beforeEach(async () => {
      server = await fakeServer([sends(RESULTS)]);
      tool = webSearch(build(`${server.url}/base`));
    });
    afterEach(() => server.stop());

    it('returns title, address and quotation of each page, with its score if there is one', async () => {
      expect(await search()).to.deep.equal({
        isFound: true,
        text:
          '<page cite="https://example.org/a" title="A">\nAbout A.\n</page>\n\n' +
          '<page cite="https://example.org/b" title="B">\nAbout B.\n</page>',
        hits: [
          { url: 'https://example.org/a', title: 'A', score: 0.9, text: 'About A.' },
          { url: 'https://example.org/b', title: 'B', score: null, text: 'About B.' },
        ],
      });
    });

    it('asks the provider once and opens no page', async () => {
      server.answerBy([sends({ results: [{ url: `${server.url}/secret`, title: 'x', content: 'y' }] })]);
      await search();
      expect(server.calls).to.have.length(1);
    });

    it('returns the other pages when one address is too long in normalized form', async () => {
      const long = `https://example.org/${'\u6728'.repeat(900)}`;
      server.answerBy([sends({ results: [long, 'https://example.org/b'].map((url) => ({ url, title: 'x' })) })]);
      const outcome = await tool.run({ query: 'oaks' }, { signal: new AbortController().signal, maxBytes: 8_000 });
      expect(outcome).to.deep.include({ hits: [{ url: 'https://example.org/b', title: 'x', score: null, text: '' }] });
    });

    it('ignores entries without a web address or with wrong types', async () => {
      const entries = [
        null,
        'x',
        { title: 'no address' },
        ...['javascript:alert(1)', 'file:///etc/passwd', 'nonsense', `https://x/${'y'.repeat(2000)}`].map((url) => ({
          url,
        })),
        { url: 'http://example.org', title: 7, content: {}, score: 'high' },
      ];
      server.answerBy([sends({ results: entries })]);
      const outcome = await search();
      expect(outcome).to.deep.include({ hits: [{ url: 'http://example.org/', title: '', score: null, text: '' }] });
    });

    it('says that nothing was found', async () => {
      server.answerBy([sends({ results: [] })]);
      expect(await search()).to.deep.equal({ isFound: true, text: 'Nothing was found.', hits: [] });
    });

    it('returns the reason when there is no answer', async () => {
      expect(await faultOn(answersStatus(401, KEY))).to.include('refused the request (401)');
      expect(await faultOn(answersStatus(429))).to.include('limits requests');
      expect(await faultOn(answersStatus(500))).to.include('answered 500');
      expect(await faultOn(sends('<html>'))).to.include('not JSON');
      expect(await faultOn(sends('"'.padEnd(3 * 1024 * 1024, 'x')))).to.include('too large');
      expect(await faultOn(sends({ results: 'x' }))).to.include('no list');
      expect(await faultOn(sends('null'))).to.include('no list');
      expect(await faultOn(resets)).to.include('could not be reached');
      expect(await faultOn(endsMidBody)).to.include('could not be reached');
    });

    it('follows no redirect', async () => {
      const other = await fakeServer([sends(RESULTS)]);
      try {
        expect(await faultOn((response) => response.writeHead(307, { Location: other.url }).end())).to.include(
          'redirect',
        );
        expect(other.calls).to.have.length(0);
      } finally {
        await other.stop();
      }
    });

    it('closes its request to the server when aborted', async () => {
      server.answerBy([hangs]);
      const abort = new AbortController();
      const call = rejectionOf(search(abort.signal));
      await server.until(() => server.calls.length === 1);
      abort.abort();
      await call;
      await server.until(() => server.abandoned() === 1);
    });
  });
}

describe('A web search', () => {
  it('sends Tavily the key in a header, and SearXNG no key', async () => {
    const server = await fakeServer<object | null>([sends(RESULTS)]);
    try {
      const signal = new AbortController().signal;
      for (const [, build] of PROVIDERS) await build(server.url).search('oaks & elms', signal);
      const [posted, got] = server.calls;
      expect(posted).to.include({ method: 'POST', path: '/search' });
      expect(posted?.headers.authorization).to.equal(`Bearer ${KEY}`);
      expect(posted?.body).to.deep.equal({ query: 'oaks & elms', max_results: 8, search_depth: 'basic' });
      expect(got).to.include({ method: 'GET', path: '/search?q=oaks+%26+elms&format=json' });
    } finally {
      await server.stop();
    }
  });

  it('reads only a query, in one line of at most 400 characters', () => {
    const tool = webSearch({ name: 'none', search: async () => ({ isFound: true, results: [] }) });
    expect(tool.read({ query: ' a\n\tb\u0000c ', site: 'x' })).to.deep.equal({
      isUsable: true,
      arguments: { query: 'a b c' },
    });
    const long = tool.read({ query: '🌳'.repeat(1000) });
    expect(long.isUsable && [...String(long.arguments['query'])].length).to.equal(400);
    for (const query of ['', ' ', 7, null, undefined, ['x']]) expect(tool.read({ query }).isUsable).to.equal(false);
  });
});
