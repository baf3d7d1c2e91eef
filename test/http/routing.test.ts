import { expect } from 'chai';
import { rawExchange } from '../support/raw-exchange.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

describe('Routing', () => {
  let service: RunningService;
  let rest: RestClient;
  let runId: string;

  before(async () => {
    service = await startService({ model: scriptedModel() });
    rest = restClient(service.url);
    runId = await rest.start();
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  for (const path of [
    '/',
    '/api/nothing',
    '/API/health',
    '/api/runs//',
    '/api/runs/x/y/z',
    '/api/runs/x%2Fevents/y',
    '/%zz',
  ]) {
    it(`answers 404 for ${path}`, async () => {
      rest.problem(await rest.get(path), 404);
      rest.problem(await rest.post(path, {}), 404);
    });
  }

  const gets = (): readonly string[] => [
    '/api/health',
    '/api/health/ready',
    `/api/councils/run/${runId}`,
    '/api/runs',
    `/api/runs/${runId}`,
    `/api/runs/${runId}/events`,
    `/api/runs/${runId}/genealogy`,
    `/api/runs/${runId}/deliberation`,
    `/api/runs/${runId}/chart`,
    '/api/openapi.json',
  ];

  it('serves every path with and without its trailing slash', async () => {
    for (const path of gets()) {
      expect((await rest.get(path)).status, path).to.equal(200);
      expect((await rest.get(`${path}/`)).status, `${path}/`).to.equal(200);
    }
    rest.read(await rest.post('/api/councils/run/', { input_topic: 'x' }), 202, 'run-start.json');
    rest.problem(await rest.post(`/api/councils/run/${NO_RUN}/cancel/`), 404);
  });

  it('serves every operation of the OpenAPI document in both forms of its path', async () => {
    const { paths } = JSON.parse((await rest.get('/api/openapi.json')).text) as { paths: Record<string, object> };
    const operations = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, NO_RUN)] as const),
    );
    expect(operations).to.deep.include.members([['GET', '/api/documents']]);
    for (const [method, path] of operations) {
      const [bare, slashed] = [path.replace(/\/$/, ''), `${path.replace(/\/$/, '')}/`];
      // Sends an invalid cursor, so that the service does not begin an endless stream.
      const headers = { 'Last-Event-ID': 'none' };
      const replies = [await rest.send(method, bare, { headers }), await rest.send(method, slashed, { headers })];
      expect(replies[1]?.status, `${method} ${slashed}`).to.equal(replies[0]?.status);
      for (const { status, text } of replies) {
        expect(status, `${method} ${path}`).not.to.be.oneOf([301, 302, 307, 308, 405]);
        expect(text, `${method} ${path}`).not.to.include('No such route');
      }
    }
  });

  it('answers HEAD with the headers of GET and no body', async () => {
    for (const path of [...gets(), `/api/runs/${NO_RUN}`, '/api/runs?limit=0', '/api/nothing']) {
      const head = await rest.send('HEAD', path);
      const get = await rest.get(path);
      expect(head.status, path).to.equal(get.status);
      expect(head.text).to.equal('');
      expect(head.headers.get('Content-Type')).to.equal(get.headers.get('Content-Type'));
      expect(Number(head.headers.get('Content-Length')), path).to.be.greaterThan(0);
    }
  });

  it('answers 405 with the methods of the path', async () => {
    for (const path of gets()) {
      for (const method of ['POST', 'PROPFIND']) {
        const reply = await rest.send(method, path);
        expect(rest.problem(reply, 405).detail).to.include(method);
        // An ended run can be erased by its id.
        const erasing = path === `/api/runs/${runId}` ? 'DELETE, ' : '';
        expect(reply.headers.get('Allow')).to.equal(`${erasing}GET, HEAD, OPTIONS`);
      }
    }
    for (const path of ['/api/councils/run', `/api/councils/run/${runId}/cancel/`]) {
      const reply = await rest.get(path);
      rest.problem(reply, 405);
      expect(reply.headers.get('Allow')).to.equal('OPTIONS, POST');
    }
  });

  it('answers OPTIONS with the methods of the path, and no body', async () => {
    const reply = await rest.send('OPTIONS', '/api/runs/');
    expect(reply.status).to.equal(204);
    expect(reply.headers.get('Allow')).to.equal('GET, HEAD, OPTIONS');
    rest.problem(await rest.send('OPTIONS', '/api/nothing'), 404);
  });

  for (const [sent, shown] of [
    ['%00', '\u0000'],
    ['%ff', '%ff'],
    ['a%2Fb', 'a/b'],
    ['x'.repeat(10_000), 'x'.repeat(10_000)],
    ['__proto__', '__proto__'],
  ] as const) {
    it(`answers 404 for ${sent.slice(0, 30)} as a run id`, async () => {
      for (const path of [`/api/councils/run/${sent}`, `/api/runs/${sent}`, `/api/runs/${sent}/events`]) {
        expect(rest.problem(await rest.get(path), 404).detail).to.include(shown);
      }
      expect(rest.problem(await rest.post(`/api/councils/run/${sent}/cancel`), 404).detail).to.include(shown);
    });
  }

  for (const [what, heads, status] of [
    ['without a Host', [], 400],
    ['with two of them', ['Host: localhost', 'Host: evil.example'], 400],
    ['that expects what nobody knows', ['Host: localhost', 'Expect: miracles'], 417],
  ] as const) {
    it(`answers ${status} with a detail to a request ${what}`, async () => {
      const head = ['GET /api/health HTTP/1.1', ...heads, 'Connection: close', '', ''].join('\r\n');
      const reply = await rawExchange(service.url, [head]);
      expect(reply.status).to.equal(status);
      expect(JSON.parse(reply.body)).to.have.all.keys('detail');
    });
  }

  it('ignores an offer of HTTP/2', async () => {
    const offer = 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAA';
    const ask = (start: string, ...rest: readonly string[]): ReturnType<typeof rawExchange> =>
      rawExchange(service.url, [`${start} HTTP/1.1\r\nHost: localhost\r\n${offer}\r\n`, ...rest]);
    expect((await ask('GET /api/health', '\r\n')).status).to.equal(200);
    expect((await ask('GET /api/nothing', '\r\n')).status).to.equal(404);
    const body = JSON.stringify({ input_topic: 'x'.repeat(9_000) });
    const fields = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    for (const split of [0, 10, body.length]) {
      const parts = [fields + body.slice(0, split), body.slice(split)];
      expect((await ask('POST /api/councils/run', ...parts)).status).to.equal(202);
    }
  });

  it('accepts an absolute target, and answers 400 to one that is not a URL', async () => {
    const ask = (target: string): ReturnType<typeof rawExchange> =>
      rawExchange(service.url, [`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`]);
    expect((await ask('http://localhost/api/health')).status).to.equal(200);
    for (const target of ['http://a]b/api/health', 'http://']) {
      expect((await ask(target)).status, target).to.equal(400);
    }
  });
});
