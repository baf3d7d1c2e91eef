import { expect } from 'chai';
import { WebSocket } from 'ws';
import { CouncilClient } from '../../src/client/client.js';
import { readConfig } from '../../src/config.js';
import { present } from '../../src/system/element.js';
import { openChannel } from '../support/channel-client.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import { addFirstKey, bearer, restWith, signIn } from '../support/keys.js';
import { mcpClient } from '../support/mcp-client.js';
import { NO_NGINX, PATH_PROXIES } from '../support/path-proxy.js';
import type { PathProxy } from '../support/path-proxy.js';
import { rawExchange } from '../support/raw-exchange.js';
import type { RestClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const PATH = '/tools/council';

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

describe('A service below a path', () => {
  for (const { title, removesPath, open } of PATH_PROXIES) {
    describe(`behind ${title}`, () => {
      if (open === null) {
        it(NO_NGINX);
        return;
      }
      let service: RunningService;
      let proxy: PathProxy;
      let bench: CouncilBench;
      let key: string;
      let rest: RestClient;

      before(async () => {
        service = await startService({ basePath: PATH });
        proxy = await open({ serviceUrl: service.url, path: PATH, removesPath });
        bench = councilBench();
        key = await addFirstKey(service.url);
        rest = restWith(proxy.url, key);
      });
      after(async () => {
        await bench.clear();
        await proxy.close();
        await service.stop();
      });
      afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

      const origin = (): string => new URL(proxy.url).origin;
      const ask = (path: string, init: Asked = {}): Promise<Response> =>
        fetch(origin() + path, { redirect: 'manual', ...init, headers: { ...bearer(key), ...init.headers } });

      it('names its saved blueprints, documents and next pages by addresses that a client can follow', async () => {
        const created = await rest.post('/api/councils/', { name: 'Pair', nodes: [{ id: 'a' }], edges: [] });
        rest.read(created, 201, 'blueprint.json');
        await rest.post('/api/councils/', { name: 'Other', nodes: [{ id: 'a' }], edges: [] });
        const saved = present(created.headers.get('Location'), 'Location');
        expect(saved).to.match(/^\/tools\/council\/api\/councils\//);
        expect((await ask(saved)).status).to.equal(200);
        const list = await rest.get('/api/councils/?limit=1');
        const next = present(/^<([^>]+)>; rel="next"$/.exec(list.headers.get('Link') ?? '')?.[1], 'Link');
        expect(next).to.match(/^\/tools\/council\/api\/councils\/\?/);
        expect(await (await ask(next)).json()).to.have.length(1);
      });

      it('has a cookie of its path, with which a session and its socket work', async () => {
        const answer = await ask(`${PATH}/api/session`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ key }),
        });
        const attributes = answer.headers.getSetCookie().flatMap((cookie) => cookie.split('; '));
        expect(attributes).to.include(`Path=${PATH}`);
        const own = { Cookie: await signIn(proxy.url, key), Origin: origin() };
        const started = await fetch(`${proxy.url}/api/councils/run`, {
          method: 'POST',
          headers: { ...own, 'Content-Type': 'application/json' },
          body: JSON.stringify({ input_topic: 'Trees' }),
        });
        expect(started.status).to.equal(202);
        const { run_id: runId } = (await started.json()) as { run_id: string };
        const channel = openChannel(proxy.url, `/ws/council/${runId}`, own);
        await channel.until(({ event }) => event === 'run_complete');
        expect(await channel.closed).to.equal(1000);
        const left = await fetch(`${proxy.url}/api/session`, { method: 'DELETE', headers: own });
        expect(left.headers.get('Set-Cookie')).to.include(`Path=${PATH};`).and.include('Max-Age=0');
      });

      it('describes itself at its path', async () => {
        const openApi = (await (await ask(`${PATH}/api/openapi.json`)).json()) as { servers: unknown };
        expect(openApi.servers).to.deep.equal([{ url: PATH }]);
        const asyncApi = (await (await ask(`${PATH}/api/asyncapi.json`)).json()) as {
          servers: Record<string, { pathname?: string }>;
        };
        expect(Object.values(asyncApi.servers).map(({ pathname }) => pathname)).to.deep.equal([PATH, PATH]);
      });

      it('leads browsers from its root to the console, whose page names assets at its path', async () => {
        const root = await ask(`${PATH}/`, { headers: { Accept: 'text/html' } });
        expect([root.status, root.headers.get('Location')]).to.deep.equal([302, `${PATH}/console/`]);
        const page = await (await ask(`${PATH}/console/runs/x`, { headers: { Accept: 'text/html' } })).text();
        const assets = [...page.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path = '']) => path);
        for (const kind of ['.js', '.css', '.webmanifest']) expect(assets.join(' ')).to.include(kind);
        for (const path of assets) expect((await ask(path)).status, path).to.equal(200);
        const manifest = present(
          assets.find((path) => path.endsWith('.webmanifest')),
          'manifest',
        );
        const { start_url: start } = (await (await ask(manifest)).json()) as { start_url: string };
        expect(new URL(start, origin() + manifest).pathname).to.equal(`${PATH}/console/`);
      });

      it('has the doors of other protocols, with errors in their form', async () => {
        const models = (await (await ask(`${PATH}/v1/models`)).json()) as { data: readonly unknown[] };
        expect(models.data).not.to.deep.equal([]);
        expect(await (await ask(`${PATH}/v1/nothing`)).json()).to.have.nested.property('error.message');
        expect(await (await ask(`${PATH}/api/nothing`)).json()).to.have.property('detail');
        const mcp = await mcpClient(proxy.url, { key });
        expect((await mcp.tools()).length).to.be.greaterThan(3);
        await mcp.close();
        expect((await ask(`${PATH}/metrics`)).status).to.equal(200);
      });

      it('serves the client library and the terminal', async () => {
        const client = new CouncilClient({ url: `${proxy.url}/`, key, webSocket: WebSocket });
        const run = await client.runs.start({ topic: 'Trees' });
        const types: string[] = [];
        for await (const { type } of run.events()) types.push(type);
        expect(types.at(-1)).to.equal('RunCompleted');
        for await (const message of run.tokens()) expect(message).to.be.an('object');
        const env = { COUNCIL_KEY: key };
        const ran = await bench.council(['run', 'Trees', '--url', proxy.url], { env });
        expect(ran.code, ran.stderr).to.equal(0);
        const listed = await bench.council(['runs', '--url', proxy.url], { env });
        expect(listed.code, listed.stderr).to.equal(0);
      });
    });
  }

  describe('asked directly', () => {
    let service: RunningService;

    before(async () => {
      service = await startService({ basePath: PATH });
    });
    after(() => service.stop());

    const status = async (path: string): Promise<number> =>
      (await fetch(service.url + path, { redirect: 'manual' })).status;

    it('answers every path with and without its own, so that probes need not know it', async () => {
      for (const path of ['/api/health', '/api/health/ready', '/metrics', '/api/runs/?limit=1', '/console/']) {
        expect(await status(path), path).to.equal(200);
        expect(await status(PATH + path), PATH + path).to.equal(200);
      }
      for (const path of ['/tools/council-2/api/health', '/tools/api/health', `${PATH}${PATH}/api/health`])
        expect(await status(path), path).to.equal(404);
      expect(await status(`${PATH}?x=1`), 'its path alone').to.equal(404);
      expect(service.lines.map(({ msg }) => msg).join('\n')).to.include(`${service.url}${PATH}/console/`);
    });

    it('reads its path in a target of absolute form, and in a request that cannot be read', async () => {
      const { host } = new URL(service.url);
      const absolute = `GET http://${host}${PATH}/api/health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      expect((await rawExchange(service.url, [absolute])).body).to.include('"status":"ok"');
      const start = (line: string): string => `${line} HTTP/1.1\r\nHost: ${host}\r\n`;
      const unreadable = `${start(`POST ${PATH}/v1/responses`)}Content-Length: x\r\n\r\n`;
      const refused = await rawExchange(service.url, [unreadable]);
      expect(refused.status).to.equal(400);
      expect(refused.body, 'in the form of /v1').to.include('"error"');
      const expecting = await rawExchange(service.url, [`${start(`GET ${PATH}/v1/models`)}Expect: tea\r\n\r\n`]);
      expect(expecting.status).to.equal(417);
      expect(expecting.body, 'in the form of /v1').to.include('"error"');
      const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
      const noChannel = await rawExchange(service.url, [`${start(`GET ${PATH}/v1/models`)}${upgrade}\r\n`]);
      expect(noChannel.status).to.equal(404);
      expect(noChannel.body, 'in the form of /v1').to.include('"error"');
    });
  });

  it('has no path that begins like one of the service', async () => {
    const service = await startService();
    try {
      const { paths } = (await (await fetch(`${service.url}/api/openapi.json`)).json()) as { paths: object };
      const firsts = new Set(Object.keys(paths).map((path) => path.split('/')[1] ?? ''));
      for (const first of [...firsts, 'console', 'ws', 'favicon.ico'])
        expect(() => readConfig({ BASE_PATH: `/${first}` }), first).to.throw('BASE_PATH');
    } finally {
      await service.stop();
    }
  });
});
