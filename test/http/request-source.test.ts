import { expect } from 'chai';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openChannel, refusedUpgrade } from '../support/channel-client.js';
import { openSocket, rawExchange } from '../support/raw-exchange.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { BOUNDARY, fileHead, formOf, partOf, pdfWith, UPLOAD } from '../support/upload-client.js';

const LISTED = 'https://app.example';
const EVIL = 'https://evil.example';
const START = '/api/councils/run';
const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const FORM = formOf(partOf([fileHead('planted.pdf')], pdfWith(['Planted'])));

type Sent = Readonly<Record<string, string>>;

interface Reply {
  readonly status: number;
  readonly text: string;
}

describe('The source of a request', () => {
  let service: RunningService;
  let rest: RestClient;
  let runId: string;
  /** The host and port of the service. */
  let own: string;

  before(async () => {
    service = await startService({ model: scriptedModel(() => 'hold'), corsOrigins: [LISTED] });
    rest = restClient(service.url);
    own = new URL(service.url).host;
    runId = await rest.start();
    rest.read(await rest.post('/api/councils/', { id: 'kept', name: 'Kept', nodes: [] }), 201, 'blueprint.json');
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  /** Sends any header, including those that fetch does not send. */
  const ask = async (method: string, path: string, headers: Sent, body?: string | Buffer): Promise<Reply> => {
    const asking = request(service.url + path, { method, headers, agent: false });
    const answered = once(asking, 'response');
    asking.end(body);
    const [reply] = (await answered) as [IncomingMessage];
    return { status: reply.statusCode ?? 0, text: await text(reply) };
  };
  const start = (headers: Sent): Promise<Reply> =>
    ask('POST', START, { 'Content-Type': 'application/json', ...headers }, '{"input_topic":"Trees"}');
  const detailOf = ({ text: body }: Reply): unknown => (JSON.parse(body) as { readonly detail?: unknown }).detail;
  const runs = async (): Promise<number> => (JSON.parse((await rest.get('/api/runs/')).text) as unknown[]).length;

  /** Requests that would change something. */
  const mutations = (): readonly (readonly [method: string, path: string, headers: Sent, body: string | Buffer])[] => [
    ['POST', START, { 'Content-Type': 'application/json' }, '{"input_topic":"Trees"}'],
    ['POST', START, { 'Content-Type': 'text/plain' }, '{"input_topic":"Trees"}'],
    ['POST', UPLOAD, { 'Content-Type': FORM_TYPE }, FORM],
    ['POST', `/api/councils/run/${runId}/cancel`, {}, ''],
    ['POST', `/api/councils/run/${runId}/approve/`, { 'Content-Type': 'application/json' }, '{"action":"reject"}'],
    ['POST', `/api/runs/${runId}/fork?dry_run=1`, { 'Content-Type': 'application/json' }, '{"at":1}'],
    ['POST', '/api/councils/', { 'Content-Type': 'application/json' }, '{"name":"Planted","nodes":[]}'],
    ['PUT', '/api/councils/kept', { 'Content-Type': 'application/json' }, '{"name":"Planted"}'],
    ['DELETE', '/api/councils/kept', {}, ''],
    ['DELETE', `/api/documents/${'0'.repeat(64)}`, {}, ''],
  ];
  const expectNoEffect = async (runsBefore: number): Promise<void> => {
    expect(await runs()).to.equal(runsBefore);
    expect((await rest.poll(runId)).status).to.equal('running');
    expect(JSON.parse((await rest.get('/api/documents')).text)).to.deep.equal([]);
    expect(rest.read(await rest.get('/api/councils/kept'), 200, 'blueprint.json').name).to.equal('Kept');
    expect(rest.read(await rest.get('/api/councils/'), 200, 'blueprint-list.json')).to.have.lengthOf(1);
  };

  for (const [what, headers] of [
    ['a page of another host', { Origin: EVIL }],
    ['a page without an origin', { Origin: 'null' }],
    ['another port of this host', { Origin: 'http://127.0.0.1:1' }],
    ['an extension whose name is this host', { Origin: 'app-extension://127.0.0.1' }],
    ['another site, without an origin', { 'Sec-Fetch-Site': 'cross-site' }],
    ['another site that a proxy gives this origin', { Origin: 'own', 'Sec-Fetch-Site': 'cross-site' }],
  ] as const) {
    it(`is refused with 403, without effect, for ${what}`, async () => {
      const before = await runs();
      const sent = 'Origin' in headers && headers.Origin === 'own' ? { ...headers, Origin: service.url } : headers;
      for (const [method, path, others, body] of mutations()) {
        const reply = await ask(method, path, { ...others, ...sent }, body);
        expect(reply.status, `${method} ${path}`).to.equal(403);
        expect(detailOf(reply)).to.include('CORS_ORIGINS');
      }
      await expectNoEffect(before);
    });
  }

  it('may be a page of the service, a listed origin or a client that is not a browser', async () => {
    for (const headers of [
      {},
      { Origin: service.url },
      { Origin: service.url, 'Sec-Fetch-Site': 'same-origin' },
      // A proxy accepts TLS for the service.
      { Origin: service.url.replace('http:', 'https:') },
      { Origin: 'https://localhost', Host: 'localhost' },
      { Origin: 'https://localhost', Host: 'LOCALHOST:443' },
      { Origin: LISTED },
      { Origin: LISTED, 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'none' },
    ]) {
      expect((await start(headers)).status, JSON.stringify(headers)).to.equal(202);
    }
  });

  it('may be any page for GET requests, whose answer the page cannot read', async () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      const reply = await ask(method, '/api/runs/', { Origin: EVIL, 'Sec-Fetch-Site': 'cross-site' });
      expect(reply.status, method).to.be.oneOf([200, 204]);
    }
  });

  it('is checked before the body of an upload is sent', async () => {
    const socket = await openSocket(service.url);
    const head = `POST ${UPLOAD} HTTP/1.1\r\nHost: ${own}\r\nOrigin: ${EVIL}\r\nContent-Type: ${FORM_TYPE}\r\n`;
    socket.write(`${head}Content-Length: ${40 * 1024 * 1024}\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).to.match(/^HTTP\/1\.1 403 /);
    expect(readdirSync(join(service.dataDir, 'tmp'))).to.deep.equal([]);
    socket.destroy();
  });

  it('may have any Host for health, as load balancers and Kubernetes send', async () => {
    for (const host of ['10.1.2.3:8000', 'pod.example', 'evil.example:1', '[fd00::1]:8000', 'a_b']) {
      for (const path of ['/api/health', '/api/health/', '/api/health/ready', '/api/health/ready/']) {
        for (const method of ['GET', 'HEAD']) expect((await ask(method, path, { Host: host })).status).to.equal(200);
      }
      expect((await ask('GET', '/api/runs/', { Host: host })).status).to.equal(421);
    }
  });

  it('gets 421 for a foreign Host in every request, including sockets', async () => {
    const before = await runs();
    for (const host of [
      'evil.example',
      `evil.example:${new URL(service.url).port}`,
      'localhost.evil.example',
      '0.0.0.0',
    ]) {
      for (const [method, path, others, body] of [
        ['GET', '/api/runs/', {}, ''],
        ['GET', '/api/openapi.json', {}, ''],
        ['OPTIONS', '/api/runs/', {}, ''],
        ...mutations(),
      ] as const) {
        const reply = await ask(method, path, { ...others, Host: host, Origin: `http://${host}` }, body);
        expect(reply.status, `${method} ${path} of ${host}`).to.equal(421);
        expect(detailOf(reply)).to.include('ALLOWED_HOSTS');
      }
      for (const query of ['', '?events=all']) {
        const refused = await refusedUpgrade(service.url, `/ws/council/${runId}${query}`, { Host: host });
        expect(refused.status).to.equal(421);
        expect(JSON.parse(refused.body)).to.have.property('detail').that.includes('ALLOWED_HOSTS');
      }
    }
    await expectNoEffect(before);
  });

  it('may have each loopback name as Host, with any port and in any case', async () => {
    for (const host of [
      own,
      'localhost',
      'LOCALHOST:1',
      'localhost.',
      'council.localhost',
      '127.0.0.2',
      '[::1]:8000',
    ]) {
      expect((await ask('GET', '/api/runs/', { Host: host })).status, host).to.equal(200);
      const channel = openChannel(service.url, `/ws/council/${runId}`, { Host: host, Origin: `http://${host}` });
      await channel.until(({ event }) => event === 'connected');
      channel.socket.terminate();
    }
  });

  it('may omit the Host in HTTP/1.0, but may not send an empty one', async () => {
    const statusOf = async (head: string): Promise<number> => (await rawExchange(service.url, [head])).status;
    expect(await statusOf('GET /api/runs/ HTTP/1.0\r\n\r\n')).to.equal(200);
    expect(await statusOf('GET /api/runs/ HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n')).to.equal(421);
  });

  it('has the host of an absolute target as its Host', async () => {
    const statusOf = async (target: string, host: string): Promise<number> =>
      (await rawExchange(service.url, [`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`])).status;
    expect(await statusOf('http://localhost/api/runs/', 'evil.example')).to.equal(200);
    expect(await statusOf('http://evil.example/api/runs/', 'localhost')).to.equal(421);
  });

  it('has the host of an absolute target as its Host also for a socket', async () => {
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ';
    const statusOf = async (target: string, host: string): Promise<number> => {
      const socket = await openSocket(service.url);
      socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${upgrade}${'A'.repeat(22)}==\r\n\r\n`);
      const [bytes] = (await once(socket, 'data')) as [Buffer];
      socket.destroy();
      return Number(bytes.toString('latin1').split(' ')[1]);
    };
    for (const scheme of ['http', 'ws', 'WSS']) {
      expect(await statusOf(`${scheme}://localhost/ws/council/${runId}`, 'evil.example'), scheme).to.equal(101);
      expect(await statusOf(`${scheme}://evil.example/ws/council/${runId}`, own), scheme).to.equal(421);
      expect(await statusOf(`${scheme}://evil.example/ws/nothing`, own), scheme).to.equal(404);
    }
    expect(await statusOf(`/ws/council/${runId}`, `${own}\r\nHost: evil.example`)).to.equal(400);
  });

  it('gets 403 for a socket from a page of another origin or site', async () => {
    const path = `/ws/council/${runId}`;
    for (const headers of [{ Origin: EVIL }, { Origin: 'null' }, { 'Sec-Fetch-Site': 'cross-site' }] as Sent[]) {
      expect((await refusedUpgrade(service.url, path, headers)).status).to.equal(403);
    }
    const channel = openChannel(service.url, path, { Origin: LISTED, 'Sec-Fetch-Site': 'cross-site' });
    await channel.until(({ event }) => event === 'connected');
    channel.socket.terminate();
  });

  it('is checked after route and method, before media type, body and existence, Host first', async () => {
    const foreign = { Host: 'evil.example', Origin: EVIL };
    expect((await ask('POST', '/api/nothing', foreign)).status).to.equal(404);
    expect((await refusedUpgrade(service.url, '/ws/nothing', foreign)).status).to.equal(404);
    expect((await ask('DELETE', START, foreign)).status).to.equal(405);
    expect((await ask('POST', START, foreign)).status).to.equal(421);
    expect((await ask('POST', START, { Origin: EVIL })).status).to.equal(403);
    expect((await ask('POST', `/api/councils/run/${NO_RUN}/cancel`, { Origin: EVIL })).status).to.equal(403);
    expect((await ask('GET', `/api/runs/${NO_RUN}`, { Host: 'evil.example' })).status).to.equal(421);
    expect((await refusedUpgrade(service.url, `/ws/council/${runId}?events=all&from=x`, foreign)).status).to.equal(421);
  });

  it('is checked before an idempotent replay, which a listed origin receives', async () => {
    const key = { 'Idempotency-Key': 'once' };
    const first = await start(key);
    expect(first.status).to.equal(202);
    expect((await start({ ...key, Origin: EVIL })).status).to.equal(403);
    expect((await start({ ...key, Host: 'evil.example' })).status).to.equal(421);
    expect(await start({ ...key, Origin: LISTED })).to.deep.equal(first);
  });
});

describe('A service on every address', () => {
  it('accepts any Host until some are listed, and then only these and loopback names', async () => {
    for (const [allowedHosts, statuses] of [
      [[], [200, 200, 200]],
      [['council.example'], [200, 200, 421]],
    ] as const) {
      const service = await startService({ model: scriptedModel(), host: '0.0.0.0', auth: 'off', allowedHosts });
      try {
        const url = service.url.replace('0.0.0.0', '127.0.0.1');
        const found = ['localhost', 'COUNCIL.example.:443', 'evil.example'].map(async (host) => {
          const head = `GET /api/runs/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
          return (await rawExchange(url, [head])).status;
        });
        expect(await Promise.all(found)).to.deep.equal(statuses);
      } finally {
        await service.stop();
      }
    }
  });
});
