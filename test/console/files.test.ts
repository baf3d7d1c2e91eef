import { expect } from 'chai';
import { gzipSync } from 'node:zlib';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

/** The most bytes, as gzip, that a browser loads before the first page is interactive. */
const MOST_AT_ONCE = 110 * 1024;

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
          "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      );
      expect(answer.headers.get('X-Frame-Options')).to.equal('DENY');
      expect(answer.headers.get('X-Content-Type-Options')).to.equal('nosniff');
    });
  }

  it('have at most 110 KB before the first page is interactive, and load more only when it is needed', async () => {
    const page = await (await ask('/console/')).text();
    const named = [...page.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path]) => path ?? '');
    const textOf = async (path: string): Promise<string> => {
      const answer = await ask(path);
      expect(answer.status, path).to.equal(200);
      expect(answer.headers.get('Cache-Control'), path).to.include('immutable');
      expect(answer.headers.get('Content-Encoding'), path).to.equal('gzip');
      return await answer.text();
    };
    const texts = new Map<string, string>();
    for (const path of named) texts.set(path, await textOf(path));
    const bytes = [page, ...texts.values()].reduce((sum, text) => sum + gzipSync(text, { level: 9 }).length, 0);
    expect(bytes, `${bytes} bytes`).to.be.at.most(MOST_AT_ONCE);

    const imports = (way: RegExp): readonly string[] =>
      [...texts].flatMap(([path, text]) =>
        [...text.matchAll(way)].map(([, name = '']) => new URL(name, service.url + path).pathname),
      );
    expect(named, 'the page names all that it loads at once').to.include.members([...imports(AT_ONCE)]);
    const later = imports(LATER);
    expect(later).to.not.deep.equal([]);
    for (const path of later) expect(named, path).to.not.include(path);
  });

  it('include an icon and a manifest, and a way from the root for programs that request its head', async () => {
    const page = await (await ask('/console/')).text();
    const [, path = ''] = /rel="manifest" href="([^"]+)"/.exec(page) ?? [];
    const manifest = await ask(path);
    expect(manifest.headers.get('Content-Type')).to.equal('application/manifest+json; charset=utf-8');
    const { start_url: start, icons } = (await manifest.json()) as { start_url: string; icons: { src: string }[] };
    expect(new URL(start, service.url + path).pathname).to.equal('/console/');
    for (const icon of [new URL(icons[0]?.src ?? '', service.url + path).pathname, '/favicon.ico']) {
      const answer = await ask(icon);
      expect(answer.headers.get('Content-Type'), icon).to.equal('image/svg+xml; charset=utf-8');
      expect(await answer.text(), icon).to.include('<svg');
    }
    expect((await ask('/favicon.ico')).headers.get('Cache-Control')).to.equal('public, max-age=86400');
    const head = await ask('/', { method: 'HEAD' });
    expect([head.status, head.headers.get('Location')]).to.deep.equal([302, '/console/']);
    expect((await ask('/favicon.ico', { method: 'HEAD' })).status).to.equal(200);
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
