import type { AddressInfo, Server } from 'node:net';
import { createServer } from 'node:net';
import { createServer as createHttpsServer } from 'node:https';
import { expect } from 'chai';
import { ModelFailed } from '../../src/errors.js';
import { embeddingsOf } from '../../src/embeddings/provider.js';
import { plainHttpGuard } from '../../src/models/plain-http.js';
import { languageModel } from '../../src/models/provider.js';
import { nodeSystem } from '../../src/system/system.js';
import { REQUEST } from '../support/model-requests.js';
import { rejectionOf } from '../support/rejection.js';
import { CERTIFICATE, PRIVATE_KEY } from '../support/test-certificate.js';

/** First byte of a TLS handshake. */
const HANDSHAKE = 22;

describe('A model server at https://', () => {
  const servers: Server[] = [];
  const ends: (() => void)[] = [];

  afterEach(() => {
    for (const end of ends.splice(0)) end();
    for (const server of servers.splice(0)) server.close();
  });

  async function listening(server: Server): Promise<string> {
    servers.push(server);
    server.on('connection', (socket) => {
      socket.on('error', () => undefined);
      ends.push(() => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return `https://127.0.0.1:${port}`;
  }

  /** How a server takes a greeting in TLS; plain HTTP it answers. */
  type Behaviour = 'closes' | 'is silent' | 'serves one at a time in silence';

  function plainServer(behaviour: Behaviour, status = '404 Not Found'): Promise<string> {
    let served = Promise.resolve();
    const server = createServer((socket) => {
      const turn = behaviour === 'serves one at a time in silence' ? served : Promise.resolve();
      served = new Promise((resolve) => socket.once('close', () => resolve()));
      void turn.then(() =>
        socket.once('data', (bytes) => {
          if (bytes[0] !== HANDSHAKE) socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
          else if (behaviour === 'closes') socket.end();
        }),
      );
    });
    return listening(server);
  }

  const real = nodeSystem();
  /** Waits a second for the handshake. */
  const system = {
    ...real,
    after: (delayMs: number, then: () => void) => real.after(delayMs === 2_500 ? 1_000 : delayMs, then),
  };
  const { signal } = new AbortController();

  for (const behaviour of ['closes', 'is silent', 'serves one at a time in silence'] as const) {
    it(`that speaks plain HTTP and ${behaviour} fails the call for good, with a hint`, async () => {
      const baseUrl = await plainServer(behaviour);
      const openai = await languageModel({ name: 'openai', apiKey: null, baseUrl, model: 'm' }, system);
      const gemini = await languageModel({ name: 'gemini', apiKey: 'k', baseUrl, model: 'm' }, system);
      const embeddings = await embeddingsOf({ name: 'openai', apiKey: null, baseUrl, model: 'm' }, system);
      const failures = await Promise.all([
        rejectionOf(openai.ask(REQUEST, { signal })),
        rejectionOf(gemini.ask(REQUEST, { signal })),
        rejectionOf(embeddings.embed(['text'], { signal, kind: 'query' })),
      ]);
      for (const [at, failure] of failures.entries()) {
        if (!(failure instanceof ModelFailed)) throw failure;
        expect(failure.data).to.deep.equal({ kind: 'tls_failed', retryable: false });
        const setting = at === 1 ? 'GEMINI_BASE_URL' : 'OPENAI_BASE_URL';
        expect(failure.message).to.include(`may speak plain HTTP: check ${setting}, http:// for https://`);
      }
    });
  }

  it('that says nothing at all is left to the call, which may be an outage', async () => {
    const guard = plainHttpGuard({ baseUrl: await listening(createServer()), setting: 'X', system });
    const outage = new Error('unreachable');
    const late = new Promise<never>((_, reject) => real.after(100, () => reject(outage)));
    expect(await rejectionOf(guard(() => late, signal))).to.equal(outage);
  });

  it('that is slow or broken in TLS and answers 400 to plain HTTP is left to the call', async () => {
    for (const behaviour of ['closes', 'is silent'] as const) {
      const baseUrl = await plainServer(behaviour, '400 Bad Request');
      const outage = new Error('unreachable');
      const late = new Promise<never>((_, reject) => real.after(100, () => reject(outage)));
      const guard = plainHttpGuard({ baseUrl, setting: 'X', system });
      expect(await rejectionOf(guard(() => late, signal))).to.equal(outage);
    }
  });

  it('that is away is left to the call, which may be an outage', async () => {
    const baseUrl = await listening(createServer());
    await new Promise((resolve) => servers.pop()?.close(resolve));
    const outage = new Error('refused');
    const guard = plainHttpGuard({ baseUrl, setting: 'X', system });
    expect(await rejectionOf(guard(() => Promise.reject(outage), signal))).to.equal(outage);
  });

  it('that speaks TLS is greeted once, whatever its certificate, and never again', async () => {
    const server = createHttpsServer({ cert: CERTIFICATE, key: PRIVATE_KEY });
    let connections = 0;
    const greeted = new Promise<void>((resolve) => {
      server.on('connection', () => {
        connections += 1;
        resolve();
      });
    });
    const guard = plainHttpGuard({ baseUrl: await listening(server), setting: 'X', system: real });
    expect(await guard(() => greeted.then(() => 1), signal)).to.equal(1);
    expect(await guard(() => Promise.resolve(2), signal)).to.equal(2);
    expect(connections).to.equal(1);
  });

  it('keeps nobody who leaves while it is greeted', async () => {
    const guard = plainHttpGuard({ baseUrl: await plainServer('is silent'), setting: 'X', system: real });
    const leaving = new AbortController();
    const call = guard(() => Promise.resolve('called'), leaving.signal);
    leaving.abort();
    const failure = await rejectionOf(call);
    if (!(failure instanceof ModelFailed)) throw failure;
    expect(failure.data.kind).to.equal('aborted');
  });
});
