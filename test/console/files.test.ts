import { expect } from 'chai';
import { gzipSync } from 'node:zlib';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

/** The most bytes, as gzip, that a browser loads before the first page is interactive. */
const MOST_AT_ONCE = 110 * 1024;

/** The modules that a page loads when they are first needed, by the start of their name, and the most bytes as gzip. */
const PAGES = {
  // Over the 60 KB that a page may load: the deliberation of a run came on top of Markdown and the layout of graphs.
  run: { modules: ['markdown', 'graph-layout', 'view'], most: 63 * 1024 },
  editor: { modules: ['graph-layout', 'page'], most: 60 * 1024 },
};

/** An import in a minified module. */
const [AT_ONCE, LATER] = [/(?:from|import)"(\.\/[^"]+)"/g, /import\("(\.\/[^"]+)"\)/g];

describe('The files of the console', () => {
  let service: RunningService;

  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  const ask = (path: string, options: RequestInit = {}): Promise<Response> =>
    fetch(service.url + path, { redirect: 'manual', ...options });

  for (const path of ['/console', '/console/', '/console/runs/some-id', '/console/inbox', '/console/blueprints/a/']) {
    it(`include the page at ${path}, with a strict content security policy`, async () => {
      const answer = await ask(path);
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('Content-Type')).to.equal('text/html; charset=utf-8');
      expect(answer.headers.get('Content-Security-Policy')).to.equal(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
          "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      );
      expect(answer.headers.get('X-Frame-Options')).to.equal('DENY');
      expect(answer.headers.get('X-Content-Type-Options')).to.equal('nosniff');
    });
  }

  it('have at most 110 KB before the first page is interactive, and more only when it is needed', async () => {
    const page = await (await ask('/console/')).text();
    const named = [...page.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path]) => path ?? '');
    const files = new Map<string, string>();
    const load = async (paths: readonly string[]): Promise<void> => {
      for (const path of paths.filter((each) => !files.has(each))) {
        const answer = await ask(path);
        expect(answer.status, path).to.equal(200);
        expect(answer.headers.get('Cache-Control'), path).to.include('immutable');
        expect(answer.headers.get('Content-Encoding'), path).to.equal('gzip');
        files.set(path, await answer.text());
      }
    };
    const importedBy = (path: string, way: RegExp): readonly string[] =>
      [...(files.get(path) ?? '').matchAll(way)].map(([, name = '']) => new URL(name, service.url + path).pathname);
    const bytes = (paths: Iterable<string>): number =>
      [...paths].reduce((sum, path) => sum + gzipSync(files.get(path) ?? '', { level: 9 }).length, 0);

    await load(named);
    const atOnce = bytes(named) + gzipSync(page, { level: 9 }).length;
    for (const path of named) expect(named, 'what main.js imports').to.include.members([...importedBy(path, AT_ONCE)]);
    const later = named.flatMap((path) => importedBy(path, LATER));
    await load(later);
    for (const path of later) expect(named, `what ${path} imports`).to.include.members([...importedBy(path, AT_ONCE)]);
    expect(atOnce, `${atOnce} bytes`).to.be.at.most(MOST_AT_ONCE);
    const sizeOf = (name: string): number => {
      const [found = '', ...others] = later.filter((path) => path.split('/').at(-1)?.startsWith(`${name}-`));
      expect(others, name).to.deep.equal([]);
      expect(files.get(found), name).to.be.a('string');
      return gzipSync(files.get(found) ?? '', { level: 9 }).length;
    };
    for (const [page, { modules, most }] of Object.entries(PAGES)) {
      const size = modules.map(sizeOf).reduce((sum, each) => sum + each, 0);
      expect(size, `${page}: ${size} bytes`).to.be.at.most(most);
    }
    expect(later).to.have.lengthOf(new Set(Object.values(PAGES).flatMap(({ modules }) => modules)).size);
  });

  it('are not sent again to a browser that has cached them', async () => {
    const { headers } = await ask('/console/');
    const again = await ask('/console/', { headers: { 'If-None-Match': headers.get('ETag') ?? '' } });
    expect(again.status).to.equal(304);
    expect(await again.text()).to.equal('');
  });

  it('answer other paths with 404 and other methods with 405', async () => {
    for (const path of [
      '/console/nope',
      '/console/runs/a/b',
      '/console/assets/x.js',
      '/console/..%2f..%2fpackage.json',
    ]) {
      const answer = await ask(path);
      expect(answer.status, path).to.equal(404);
      expect(await answer.json(), path).to.have.property('detail');
    }
    const posted = await ask('/console/', { method: 'POST' });
    expect(posted.status).to.equal(405);
    expect(posted.headers.get('Allow')).to.equal('GET, HEAD');
  });

  it("answer a browser's visit of an unknown path with 404 and the page", async () => {
    const visit = await ask('/console/nope', { headers: { Accept: 'text/html,application/xhtml+xml' } });
    expect(visit.status).to.equal(404);
    expect(visit.headers.get('Content-Type')).to.equal('text/html; charset=utf-8');
    expect(visit.headers.get('Content-Security-Policy')).to.include("default-src 'none'");
    expect(await visit.text()).to.equal(await (await ask('/console/')).text());
  });

  it("redirect a browser's visit of the root, and no other request", async () => {
    const visit = await ask('/', { headers: { Accept: 'text/html,application/xhtml+xml' } });
    expect(visit.status).to.equal(302);
    expect(visit.headers.get('Location')).to.equal('/console/');
    expect((await ask('/')).status).to.equal(404);
  });
});
