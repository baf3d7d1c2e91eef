import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { boundedModel } from '../../src/models/bounded.js';
import type { LanguageModel } from '../../src/models/port.js';
import { providerModel } from '../../src/models/sdk-model.js';
import { modelTransport } from '../../src/models/transport.js';
import { NO_PROXIES } from '../support/no-proxies.js';
import { nodeSystem } from '../../src/system/system.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { fakeOpenAi, says, saysInPieces } from '../support/fake-openai.js';
import type { FakeProxy } from '../support/fake-proxy.js';
import { fakeProxy } from '../support/fake-proxy.js';
import { hangs } from '../support/fake-server.js';
import { REQUEST } from '../support/model-requests.js';
import { providerSettings } from '../support/provider-models.js';
import { rejectionOf } from '../support/rejection.js';
import { CERTIFICATE, PRIVATE_KEY } from '../support/test-certificate.js';

describe('Requests to providers', () => {
  let server: FakeOpenAi;
  let proxy: FakeProxy;

  beforeEach(async () => {
    server = await fakeOpenAi([says('Sea')]);
    proxy = await fakeProxy();
  });
  afterEach(async () => {
    await server.stop();
    await proxy.stop();
  });

  const modelAt = (url: string, proxies = NO_PROXIES): Promise<LanguageModel> =>
    providerModel(providerSettings('openai', { baseUrl: `${url}/v1`, apiKey: 'key', model: 'sea' }), {
      transport: modelTransport(proxies),
      system: nodeSystem(),
    });
  const call = { signal: new AbortController().signal };

  describe('with proxies', () => {
    it('of http: go through HTTP_PROXY as plain requests, whole and streamed', async () => {
      const model = await modelAt(server.url, { ...NO_PROXIES, http: proxy.url });

      const whole = await model.ask(REQUEST, call);
      server.answerBy([saysInPieces(['S', 'ea'])]);
      const streamed = await model.ask({ ...REQUEST, onToken: () => undefined }, call);

      expect([whole.text, streamed.text]).to.deep.equal(['Sea', 'Sea']);
      const sent = `POST ${server.url}/v1/chat/completions`;
      expect(proxy.requests).to.deep.equal([sent, sent]);
    });

    it('of https: go through a tunnel of HTTPS_PROXY and check the certificate of the server behind it', async () => {
      const secure = createServer({ cert: CERTIFICATE, key: PRIVATE_KEY });
      await once(secure.listen(0, '127.0.0.1'), 'listening');
      const { port } = secure.address() as AddressInfo;
      const model = await modelAt(`https://localhost:${port}`, { ...NO_PROXIES, https: proxy.url });

      const failure = await rejectionOf(model.ask(REQUEST, call));
      secure.close();

      expect(failure).to.have.nested.property('data.kind', 'tls_failed');
      expect(failure).to.have.property('message').that.includes('DEPTH_ZERO_SELF_SIGNED_CERT');
      expect(proxy.requests).to.deep.equal([`CONNECT localhost:${port}`]);
    });

    it('name the proxy when it refuses a tunnel', async () => {
      const model = await modelAt('https://localhost:9', { ...NO_PROXIES, https: proxy.url });
      for (const status of [407, 403, 502]) {
        proxy.refuseTunnels(status);
        const failure = await rejectionOf(model.ask(REQUEST, call));
        expect(failure).to.have.nested.property('data.kind', 'unreachable');
        expect(failure).to.have.property('message').that.includes('the proxy (HTTPS_PROXY) refused to connect to it');
      }
    });

    it('of https: go past HTTP_PROXY, and of http: past HTTPS_PROXY', async () => {
      const secure = await modelAt('https://localhost:9', { ...NO_PROXIES, http: proxy.url });
      expect(await rejectionOf(secure.ask(REQUEST, call))).to.have.nested.property('data.kind', 'connection_refused');
      const plain = await modelAt(server.url, { ...NO_PROXIES, https: proxy.url });
      expect(await plain.ask(REQUEST, call)).to.have.property('text', 'Sea');
      expect(proxy.requests).to.deep.equal([]);
    });

    it('print no warning', async () => {
      const warnings: Error[] = [];
      const onWarning = (warning: Error): void => void warnings.push(warning);
      process.on('warning', onWarning);
      const model = await modelAt(server.url, { http: proxy.url, https: proxy.url, none: '' });
      await model.ask(REQUEST, call);
      process.off('warning', onWarning);
      expect(warnings).to.deep.equal([]);
    });

    for (const none of ['*', 'example.com,127.0.0.1', 'example.com 127.0.0.1', '127.0.0.1:PORT', '.0.0.1', '*.0.0.1']) {
      it(`go past the proxies to the hosts of NO_PROXY=${none}`, async () => {
        const own = none.replace('PORT', new URL(server.url).port);
        const model = await modelAt(server.url, { http: proxy.url, https: proxy.url, none: own });
        expect(await model.ask(REQUEST, call)).to.have.property('text', 'Sea');
        expect(proxy.requests).to.deep.equal([]);
      });
    }

    for (const none of ['', '.', 'example.com', '27.0.0.1', '127.0.0.1:1', '127.0.0']) {
      it(`go through the proxy to a host that NO_PROXY=${none} does not name`, async () => {
        const model = await modelAt(server.url, { ...NO_PROXIES, http: proxy.url, none });
        await model.ask(REQUEST, call);
        expect(proxy.requests).to.have.length(1);
      });
    }
  });

  for (const [title, isProxied] of [
    ['directly', false],
    ['through a proxy', true],
  ] as const) {
    describe(title, () => {
      let model: LanguageModel;

      beforeEach(async () => {
        model = await modelAt(server.url, isProxied ? { ...NO_PROXIES, http: proxy.url } : NO_PROXIES);
      });

      it('wait for the first byte of an answer past the 300 s of undici', async () => {
        let answer = (): void => undefined;
        server.answerBy([(response) => (answer = () => says('Sea')(response))]);
        const asked = model.ask(REQUEST, call);
        // Proves that the clock below ends a request that has undici's limits.
        const limited = rejectionOf(request(server.url, { dispatcher: new Agent(), method: 'POST', body: '{}' }));
        await server.until(() => server.calls.length === 2);

        passUndiciSeconds(900);
        expect(await limited).to.have.property('code', 'UND_ERR_HEADERS_TIMEOUT');
        answer();
        expect(await asked).to.have.property('text', 'Sea');
      });

      it('end on the server when their deadline passes', async () => {
        server.answerBy([hangs]);
        const bounded = boundedModel(model, { maxCalls: 1, outageMs: 0, system: nodeSystem() });

        const failure = await rejectionOf(
          bounded.ask(REQUEST, { runId: 'run', timeoutMs: 300, outage: null, signal: call.signal }),
        );
        expect(failure).to.have.nested.property('data.kind', 'timeout');
        await server.until(() => server.open() === 0);
      });

      it('end on the server when they are aborted', async () => {
        server.answerBy([hangs]);
        const abort = new AbortController();
        const asked = rejectionOf(model.ask(REQUEST, { signal: abort.signal }));
        await server.until(() => server.calls.length === 1);
        abort.abort();

        expect(await asked).to.have.nested.property('data.kind', 'aborted');
        await server.until(() => server.abandoned() === 1);
      });
    });
  }
});

/** Moves the clock by which undici measures its timeouts: once to start the pending timers, once to let them end. */
function passUndiciSeconds(seconds: number): void {
  const timers: unknown = createRequire(import.meta.url)('undici/lib/util/timers.js');
  const { tick } = timers as { readonly tick: (ms: number) => void };
  tick(1_000);
  tick(seconds * 1_000);
}
