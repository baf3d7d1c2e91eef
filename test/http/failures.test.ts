import { OpenCount } from '../../src/system/open-count.js';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { expect } from 'chai';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { AppendOutcomeUnknown, AppendTooLarge, LogClosed, LogUnavailable } from '../../src/eventlog/errors.js';
import { RunCorrupt, TooManyPending } from '../../src/run/errors.js';
import { ServiceStopping } from '../../src/errors.js';
import type { HttpDeps } from '../../src/http/app.js';
import { httpApp } from '../../src/http/app.js';
import { refuseUnreadable } from '../../src/http/app.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { NO_KEYS } from '../support/no-keys.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';
import { NO_LEDGER } from '../support/no-ledger.js';
import { NO_LIMITS } from '../support/no-limits.js';
import { rawExchange } from '../support/raw-exchange.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { NO_RUN, restClient } from '../support/rest-client.js';

const FORM = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.7\r\n--x--\r\n';
const FORM_TYPE = { 'Content-Type': 'multipart/form-data; boundary=x' };

describe('A request that cannot be served', () => {
  let server: Server;
  let rest: RestClient;
  let url: string;
  let system: ManualSystem;
  let faults: { readonly requestId: string; readonly error: unknown }[];

  /** The HTTP layer in front of a service that always behaves in the given way. */
  const serve = async (always: () => Promise<never>, ready = async (): Promise<boolean> => true): Promise<void> => {
    system = manualSystem();
    faults = [];
    const deps: HttpDeps = {
      registry: {
        start: always,
        previewStart: () => [],
        refuse: always,
        findRequest: always,
        decisionContext: () => expect.fail('No decision is taken here'),
        cancel: always,
        decidePause: always,
      },
      queries: {
        find: always,
        listed: always,
        state: always,
        list: always,
        count: always,
        counts: always,
        overview: always,
        record: always,
        folded: always,
        forkPoint: always,
      },
      feed: { follow: always, watchersOf: () => 0 },
      logFeed: { start: always, follow: always },
      inbox: { list: always, waiting: later(always), follow: always },
      ledger: NO_LEDGER,
      eraseRun: always,
      eraseDocument: always,
      verify: always,
      genealogy: always,
      deliberation: always,
      decisions: always,
      marking: always,
      docx: always,
      citedPages: always,
      prompt: always,
      blueprints: {
        issuesOf: () => Promise.resolve([]),
        find: always,
        versions: always,
        create: always,
        update: always,
        remove: always,
      },
      blueprintList: always,
      documents: {
        find: always,
        chunks: always,
        search: always,
        verify: always,
        ingest: always,
        waitUntilSearchable: always,
      },
      documentList: always,
      uploadDir: tmpdir(),
      ready,
      ...NO_KEYS,
      authenticator: { ...NO_KEYS.authenticator, idSecret: { read: always } },
      unreachableModels: () => [],
      modelUses: () => [],
      providers: () => [],
      logInfo: always,
      prices: () => [],
      backups: { start: always, last: () => null },
      system,
      maxMaterialBytes: 1000,
      marksExports: true,
      schemaChecker: { faultOf: async () => null },
      nodeDefaults: { timeoutMs: 1000, maxAttempts: 1 },
      canonical,
      fullName: () => 'offline/offline-1',
      offlineModel: 'offline',
      isOwnHost: () => true,
      basePath: '',
      corsOrigins: [],
      limits: NO_LIMITS,
      problemForms: [],
      unsent: new SharedBytes(),
      receiving: new SharedBytes(),
      streams: new OpenCount(),
      doors: [],
      appendDeadlineMs: 10_000,
      onFault: (requestId, error) => void faults.push({ requestId, error }),
      log: { info: () => undefined },
    };
    server = createServer(httpApp(deps)).on('clientError', refuseUnreadable([], ''));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    rest = restClient(url);
  };
  afterEach(async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  });

  /** Waits for text and vectors without a limit; the documents limit the wait for the log. */
  const sendUpload = (): Promise<Reply> => rest.post('/api/councils/upload-pdf', FORM, FORM_TYPE);
  const everything = (): readonly (() => Promise<Reply>)[] => [
    () => rest.post('/api/councils/run', { input_topic: 'x' }),
    () => rest.post('/api/councils/run', { input_topic: 'x' }, { 'Idempotency-Key': 'k' }),
    () => rest.get(`/api/councils/run/${NO_RUN}`),
    () => rest.get('/api/councils/'),
    () => rest.get('/api/councils/mine'),
    () => rest.post('/api/councils/', { name: 'x', nodes: [] }),
    () => rest.send('PUT', '/api/councils/mine', { body: {} }),
    () => rest.send('DELETE', '/api/councils/mine'),
    () => rest.post('/api/councils/mine/run', { input_topic: 'x' }),
    () => rest.post('/api/councils/mine/run', { input_topic: 'x' }, { 'Idempotency-Key': 'k' }),
    () => rest.post(`/api/councils/run/${NO_RUN}/cancel`),
    () => rest.get('/api/documents'),
    () => rest.get(`/api/documents/${'0'.repeat(64)}`),
    () => rest.send('DELETE', `/api/documents/${'0'.repeat(64)}`),
    () => rest.get('/api/runs'),
    () => rest.get(`/api/runs/${NO_RUN}`),
    () => rest.get(`/api/runs/${NO_RUN}/events`),
    () => rest.get(`/api/runs/${NO_RUN}/state`),
    () => rest.get(`/api/runs/${NO_RUN}/verify`),
  ];

  it('because of a fault gets a fixed sentence and the id of the log entry', async () => {
    const fault = new TypeError('secret of /etc/passwd');
    await serve(() => Promise.reject(fault));
    for (const ask of everything()) {
      const { detail } = rest.problem(await ask(), 500);
      const logged = faults.pop();
      expect(logged?.error).to.equal(fault);
      expect(detail).to.equal(`The service failed to answer this request (request ${logged?.requestId})`);
    }
  });

  for (const error of [new LogUnavailable(), new LogClosed(), new ServiceStopping()]) {
    it(`because of ${error.code} is answered 503 with Retry-After`, async () => {
      await serve(() => Promise.reject(error));
      for (const ask of [...everything(), sendUpload]) {
        const reply = await ask();
        rest.problem(reply, 503);
        expect(Number(reply.headers.get('Retry-After'))).to.be.greaterThan(0);
      }
      expect(faults).to.deep.equal([]);
    });
  }

  it('because too many runs wait is answered 503 with Retry-After', async () => {
    await serve(() => Promise.reject(new TooManyPending({ limit: 10_000 })));
    const reply = await rest.post('/api/councils/run', { input_topic: 'x' });
    expect(rest.problem(reply, 503).detail).to.include('10000');
    expect(reply.headers.get('Retry-After')).to.equal('5');
  });

  it('because its event would not fit into the log is answered 422', async () => {
    await serve(() => Promise.reject(new AppendTooLarge({ stream: 'run-x', bytes: 9, limit: 8 })));
    const { detail } = rest.problem(await rest.post('/api/councils/run', { input_topic: 'x' }), 422);
    expect(detail).not.to.include('run-x');
  });

  it('because the run is corrupt is answered 500 with that fact, but not the reason', async () => {
    await serve(() => Promise.reject(new RunCorrupt({ runId: NO_RUN, seq: 3, reason: 'inner secret' })));
    const { detail } = rest.problem(await rest.get(`/api/runs/${NO_RUN}`), 500);
    expect(detail).to.include('The record of this run is damaged').and.not.to.include('inner secret');
    expect(detail).to.include(faults[0]?.requestId);
  });

  it('because the log does not reply is answered 503 at the deadline', async () => {
    let fail: (error: Error) => void = () => undefined;
    let notifyAsked: () => void = () => undefined;
    await serve(
      () =>
        new Promise((_, reject) => {
          fail = reject;
          notifyAsked();
        }),
    );
    for (const ask of everything()) {
      const isAsked = new Promise<void>((resolve) => (notifyAsked = resolve));
      const replied = ask();
      await isAsked;
      system.advance(10_000);
      const reply = await replied;
      rest.problem(reply, 503);
      expect(reply.headers.has('Retry-After')).to.be.true;
      // The service ignores the later outcome.
      fail(new Error('too late'));
    }
    expect(system.timers()).to.equal(0);
    expect(faults).to.deep.equal([]);
  });

  it('because the outcome of an append is unknown gets a code that says so, and no other failure does', async () => {
    const codeOf = async (error: Error): Promise<unknown> => {
      await serve(() => Promise.reject(error));
      return rest.problem(await rest.post('/api/councils/run', { input_topic: 'x' }), 503).code;
    };
    expect(await codeOf(new AppendOutcomeUnknown({ stream: 'run-x' }))).to.equal('outcome_unknown');
    expect(await codeOf(new LogUnavailable())).to.equal(undefined);
  });

  for (const [what, ready] of [
    ['is not ready', async () => false],
    ['fails its readiness check', () => Promise.reject(new Error('no answer'))],
  ] as const) {
    it(`by a service that ${what} makes /ready answer 503, but not /health`, async () => {
      await serve(() => Promise.reject(new LogUnavailable()), ready);
      rest.problem(await rest.get('/api/health/ready'), 503);
      rest.read(await rest.get('/api/health'), 200, 'health.json');
      expect(faults).to.deep.equal([]);
    });
  }

  for (const [what, text, status] of [
    ['not HTTP', 'HELLO\r\n\r\n', 400],
    ['too large in its headers', `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    [
      'malformed in its chunk size',
      'POST /api/councils/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
      400,
    ],
  ] as const) {
    it(`because it is ${what} is answered ${status} with a detail`, async () => {
      await serve(() => Promise.reject(new LogUnavailable()));
      const reply = await rawExchange(url, [text]);
      expect(reply.status).to.equal(status);
      expect(JSON.parse(reply.body)).to.have.property('detail').that.is.a('string');
    });
  }
});

/** A lazy list whose first item throws. */
function later(always: () => Promise<never>): () => AsyncGenerator<never> {
  return async function* () {
    yield await always();
  };
}
