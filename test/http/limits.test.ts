import { expect } from 'chai';
import { WebSocket } from 'ws';
import { readConfig } from '../../src/config.js';
import type { Scope } from '../../src/keys/caller.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

const TOPIC = { input_topic: 'Trees' };

/** A service with configured limits, so that they apply to loopback addresses too. No quota is refilled. */
async function limited(settings: Readonly<Record<string, string>>): Promise<RunningService> {
  const system = { ...nodeSystem(), monotonicMs: () => 0 };
  return await startService({ model: scriptedModel(), system, limits: readConfig(settings).limits });
}

describe('A service with limits', () => {
  let service: RunningService | null = null;
  let rest: RestClient;

  async function started(settings: Readonly<Record<string, string>>): Promise<RunningService> {
    service = await limited(settings);
    rest = restClient(service.url);
    return service;
  }
  afterEach(() => service?.stop());

  it('answers 429 after the burst, before it reads the body', async () => {
    const { url } = await started({ MAX_REQUESTS_PER_SECOND: '2', MAX_REQUEST_BURST: '3' });
    const granted = await fetch(`${url}/api/runs`);
    expect(granted.headers.get('RateLimit-Policy')).to.equal('"requests";q=3;w=2');
    expect(granted.headers.get('RateLimit')).to.equal('"requests";r=2;t=1');
    const noJson = (): Promise<Response> => fetch(`${url}/api/councils/run`, { method: 'POST', body: 'no JSON' });
    const answers = [await noJson(), await noJson(), await noJson()];
    expect(answers.map(({ status }) => status)).to.deep.equal([415, 415, 429]);
    const [, , refused] = answers;
    expect(await refused?.json()).to.deep.equal({ detail: 'Too many requests: at most 3 in 2 s; try again in 1 s' });
    expect(refused?.headers.get('Retry-After')).to.equal('1');
    expect(refused?.headers.get('RateLimit')).to.equal('"requests";r=0;t=1');
  });

  it('answers health, unknown routes and wrong methods without a limit', async () => {
    const { url } = await started({ MAX_REQUESTS_PER_SECOND: '1', MAX_REQUEST_BURST: '1' });
    await fetch(`${url}/api/runs`);
    const asked = ['/api/health', '/api/health/ready', '/api/nowhere', '/api/runs'];
    const answers = await Promise.all([
      ...asked.map((path) => fetch(url + path)),
      fetch(`${url}/api/runs`, { method: 'PUT' }),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 404, 429, 405]);
    expect(answers[0].headers.has('RateLimit')).to.equal(false);
  });

  it('counts a socket as one request when it is opened, and refuses the next', async () => {
    const { url } = await started({ MAX_REQUESTS_PER_SECOND: '1', MAX_REQUEST_BURST: '2' });
    const address = `${url.replace('http', 'ws')}/ws/council/00000000-0000-4000-8000-000000000000`;
    const first = await upgraded(address);
    expect(first.status).to.equal(101);
    await upgraded(address);
    const refused = await upgraded(address);
    expect(refused.status).to.equal(429);
    expect(refused.headers['retry-after']).to.equal('1');
    expect(refused.headers['ratelimit']).to.equal('"requests";r=0;t=1');
  });

  it('limits the starts of runs over all routes, but not repeated starts', async () => {
    await started({ MAX_RUNS_PER_MINUTE: '3' });
    const first = await rest.post('/api/councils/run', TOPIC, { 'Idempotency-Key': 'a' });
    const { run_id: parent } = rest.read(first, 202, 'run-start.json');
    expect(policies(first)).to.deep.equal(['"runs";q=3;w=60']);
    expect(first.headers.get('RateLimit')).to.equal('"runs";r=2;t=20');
    const unknown = await rest.post('/api/councils/nobody/run', TOPIC);
    rest.problem(unknown, 404);
    await rest.until(parent, isOver);
    rest.read(await rest.post(`/api/runs/${parent}/fork`, { at: 3 }), 202, 'run-start.json');
    rest.read(await rest.post('/api/councils/run', TOPIC, { 'Idempotency-Key': 'b' }), 202, 'run-start.json');
    for (const [path, body] of [
      ['/api/councils/run', TOPIC],
      [`/api/runs/${parent}/fork`, { at: 3 }],
    ] as const) {
      const refused = await rest.post(path, body);
      expect(rest.problem(refused, 429).detail).to.match(
        /^Too many runs started: at most 3 in 60 s; try again in \d+ s$/,
      );
      expect(Number(refused.headers.get('Retry-After'))).to.be.within(1, 20);
    }
    const dry = await rest.post(`/api/runs/${parent}/fork?dry_run=1`, { at: 3 });
    rest.read(dry, 200, 'fork-plan.json');
    const replay = await rest.post('/api/councils/run', TOPIC, { 'Idempotency-Key': 'a' });
    expect(replay.text).to.equal(first.text);
    rest.problem(await rest.post('/api/councils/run', { input_topic: 'Other' }, { 'Idempotency-Key': 'a' }), 409);
  });

  it('counts a hundred concurrent equal starts as one run', async () => {
    await started({ MAX_UNFINISHED_RUNS: '1', MAX_RUNS_PER_MINUTE: '1' });
    const start = (): Promise<Reply> => rest.post('/api/councils/run', TOPIC, { 'Idempotency-Key': 'a' });
    const answers = await Promise.all(Array.from({ length: 100 }, start));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
    expect(answers[0]?.status).to.equal(202);
  });

  it('bounds unfinished runs, pauses included, and accepts another when one ends', async () => {
    await started({ MAX_UNFINISHED_RUNS: '2' });
    const pair = { id: 'pair', name: 'Pair', nodes: [{ id: 'a' }, { id: 'b' }], edges: [{ source: 'a', target: 'b' }] };
    await rest.post('/api/councils', pair);
    const start = (): Promise<Reply> => rest.post('/api/councils/pair/run', { ...TOPIC, god_mode: true });
    const [{ run_id: first }] = [rest.read(await start(), 202, 'run-start.json'), await start()];
    const refused = await start();
    expect(rest.problem(refused, 429).detail).to.equal('Too many runs unfinished: at most 2 at once; try again in 5 s');
    expect(policies(refused)).to.deep.equal(['"unfinished-runs";q=2;qu="concurrent-requests"']);
    await rest.post(`/api/councils/run/${first}/cancel`, {});
    await untilTrue(async () => (await start()).status === 202);
    expect((await start()).status).to.equal(429);
  });
});

describe('A service with keys and limits', () => {
  let service: RunningService;
  let ask: (key: string, path?: string, init?: RequestInit) => Promise<Response>;
  let keys: Readonly<Record<'ann' | 'bob', string>>;

  before(async () => {
    service = await limited({ MAX_REQUESTS_PER_SECOND: '1', MAX_REQUEST_BURST: '3' });
    ask = (key, path = '/api/runs', init = {}) =>
      fetch(service.url + path, { ...init, headers: { Authorization: `Bearer ${key}` } });
    const { keys: store } = service.context.authenticator;
    const added = async (name: string, scopes: readonly Scope[]): Promise<string> =>
      (await store.add({ name, scopes, expiresAt: null }, { actor: null })).text;
    keys = { ann: await added('ann', ['admin', 'read']), bob: await added('bob', ['read']) };
  });
  after(() => service.stop());

  it('counts each key separately, after the check of key and scope', async () => {
    const of = async (key: string): Promise<number> => (await ask(key)).status;
    expect([await of(keys.ann), await of(keys.ann), await of(keys.ann), await of(keys.ann)]).to.deep.equal([
      ...[200, 200, 200, 429],
    ]);
    expect(await of(keys.bob)).to.equal(200);
    expect((await fetch(`${service.url}/api/runs`)).status).to.equal(401);
    expect(await of(`council_${'x'.repeat(43)}`)).to.equal(401);
    expect((await ask(keys.ann, '/api/councils/run', { method: 'POST' })).status).to.equal(403);
  });
});

describe('A service behind a proxy on its machine', () => {
  it('applies the default limits to the addresses that the proxy names, but not to its own', async () => {
    const service = await startService({ model: scriptedModel(), trustedProxies: ['127.0.0.1'] });
    const policy = async (headers: Readonly<Record<string, string>>): Promise<string | null> =>
      (await fetch(`${service.url}/api/runs`, { headers })).headers.get('RateLimit-Policy');
    const told = [await policy({ 'X-Forwarded-For': '203.0.113.7' }), await policy({})];
    await service.stop();
    expect(told).to.deep.equal(['"requests";q=30000;w=30', null]);
  });
});

describe('A service on a loopback address without keys', () => {
  it('has no limits and sends no limit headers', async () => {
    const service = await startService({ model: scriptedModel() });
    const answer = await fetch(`${service.url}/api/runs`);
    await service.stop();
    expect([answer.headers.has('RateLimit'), answer.headers.has('RateLimit-Policy')]).to.deep.equal([false, false]);
  });
});

function policies({ headers }: Reply): readonly string[] {
  return (headers.get('RateLimit-Policy') ?? '').split(', ');
}

interface Upgraded {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The answer to an upgrade. Closes an opened socket at once. */
function upgraded(address: string): Promise<Upgraded> {
  const socket = new WebSocket(address);
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('upgrade', ({ statusCode, headers }) => {
      socket.on('open', () => socket.terminate());
      resolve({ status: statusCode, headers });
    });
    socket.on('unexpected-response', (_request, { statusCode, headers }) => resolve({ status: statusCode, headers }));
  });
}
