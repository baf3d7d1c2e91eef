import { once } from 'node:events';
import { expect } from 'chai';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { GENESIS_HASH, checkLink } from '../../src/eventsourcing/hash-chain.js';
import { nodeSystem } from '../../src/system/system.js';
import { ALL_SCOPES, addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import { openSocket } from '../support/raw-exchange.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';

const FIRST = { name: 'ann', scopes: ['admin'] };

describe('/api/keys', () => {
  let service: RunningService;
  let rest: RestClient;
  let first: string;

  before(async () => {
    service = await startService();
    first = await addFirstKey(service.url, ALL_SCOPES, 'ann');
    rest = restWith(service.url, first);
  });
  after(() => service.stop());

  it('adds a key that is valid at once, and shows its text only once', async () => {
    const reply = await rest.post('/api/keys', { name: 'ben', scopes: ['run', 'read'], expires_in: '30d' });
    const { key, created_at: createdAt, expires_at: expiresAt, ...added } = rest.read(reply, 201, 'new-key.json');
    expect(added).to.deep.equal({ name: 'ben', scopes: ['read', 'run'] });
    expect(Date.parse(expiresAt ?? '') - Date.parse(createdAt)).to.be.within(30 * 86_400_000 - 5_000, 30 * 86_400_000);
    expect((await restWith(service.url, key).get('/api/runs/')).status).to.equal(200);
    for (const path of ['/api/keys', '/api/keys/events']) expect((await rest.get(path)).text).not.to.include(key);
  });

  it('lists every key with its creator and the day of its last use', async () => {
    const today = (): string => new Date().toISOString().slice(0, 10);
    const text = await addKey(rest, { name: 'cleo', scopes: ['read'] });
    await restWith(service.url, text).get('/api/runs/');
    const cleo = async () =>
      rest.read(await rest.get('/api/keys'), 200, 'key-list.json').find((key) => key.name === 'cleo');
    await untilTrue(async () => (await cleo())?.last_used !== null);
    expect(await cleo()).to.deep.include({ scopes: ['read'], created_by: 'ann', revoked_at: null, expires_at: null });
    expect((await cleo())?.last_used).to.equal(today());
    const [ann] = rest.read(await rest.get('/api/keys'), 200, 'key-list.json');
    expect(ann).to.deep.include({ name: 'ann', created_by: null });
  });

  it('shows the last use of keys only to a key with the scope audit', async () => {
    for (const scope of ['admin', 'audit'] as const) {
      const own = restWith(service.url, await addKey(rest, { name: `list-by-${scope}`, scopes: [scope] }));
      const [ann = {}] = own.read(await own.get('/api/keys'), 200, 'key-list.json');
      expect('last_used' in ann, scope).to.equal(scope === 'audit');
    }
  });

  it('revokes a key at once, and shows the actor', async () => {
    const text = await addKey(rest, { name: 'dora', scopes: ['read'] });
    expect((await rest.send('DELETE', '/api/keys/dora')).status).to.equal(204);
    const { status, text: body } = await restClient(service.url).send('GET', '/api/runs/', { headers: bearer(text) });
    expect([status, JSON.parse(body)]).to.deep.equal([401, { detail: 'The key was revoked' }]);
    const keys = rest.read(await rest.get('/api/keys'), 200, 'key-list.json');
    expect(keys.find(({ name }) => name === 'dora')).to.include({ revoked_by: 'ann' });
    expect((await rest.send('DELETE', '/api/keys/dora')).status).to.equal(204);
    rest.problem(await rest.send('DELETE', '/api/keys/nobody'), 404);
    rest.problem(await rest.post('/api/keys', { name: 'dora', scopes: ['read'] }), 409);
  });

  it('answers a request by which a key revokes itself', async () => {
    const own = restWith(service.url, await addKey(rest, { name: 'tired', scopes: ['admin'] }));
    expect((await own.send('DELETE', '/api/keys/tired', { body: {} })).status).to.equal(204);
    own.problem(await own.send('DELETE', '/api/keys/tired'), 401);
  });

  it('refuses a request whose key is revoked while it is being sent', async () => {
    const { Authorization } = bearer(await addKey(rest, { name: 'gone', scopes: ['admin'] }));
    const body = JSON.stringify({ name: 'later', scopes: ['admin'] });
    const fields = { Host: 'localhost', Authorization, Expect: '100-continue', 'Content-Type': 'application/json' };
    const head = Object.entries({ ...fields, 'Content-Length': body.length }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    const socket = await openSocket(service.url);
    socket.write(`POST /api/keys HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
    const [reply] = (await once(socket, 'data')) as [Buffer];
    expect(reply.toString()).to.match(/^HTTP\/1.1 100 /);
    const closed = once(
      socket.on('error', () => undefined),
      'close',
    );
    socket.write(body.slice(0, -1));
    await rest.send('DELETE', '/api/keys/gone');
    await closed;
    expect((await rest.get('/api/keys')).text).not.to.include('later');
  });

  it('refuses an invalid request, and names the field', async () => {
    for (const [change, field] of [
      [{ name: 'a/b' }, 'name'],
      [{ name: 'events' }, 'name'],
      [{ name: undefined }, 'name'],
      [{ scopes: [] }, 'scopes'],
      [{ scopes: ['write'] }, 'scopes'],
      [{ expires_in: '1 day' }, 'expires_in'],
      [{ expires_in: '99999999d' }, 'expires_in'],
      [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [{ expires_at: 'tomorrow' }, 'expires_at'],
      [{ expires_in: '1d', expires_at: '2999-01-01T00:00:00Z' }, 'expires_at'],
    ] as const) {
      const { errors = [] } = rest.problem(
        await rest.post('/api/keys', { name: 'x', scopes: ['read'], ...change }),
        422,
      );
      expect(errors[0]?.loc.slice(0, 2), JSON.stringify(change)).to.deep.equal(['body', field]);
    }
  });

  it('returns the complete record to auditors, in pages with a hash chain', async () => {
    const page = rest.read(await rest.get('/api/keys/events'), 200, 'key-events-page.json');
    expect(page.next).to.equal(null);
    let previous = GENESIS_HASH;
    for (const event of page.events) {
      expect(checkLink(previous, event, nodeSystem().sha256)).to.equal(true);
      previous = event.hash;
    }
    expect(page.events[0]?.data).to.deep.include({ name: 'ann', actor: null, hash: nodeSystem().sha256(first) });
    const second = rest.read(await rest.get('/api/keys/events?from=1&limit=1'), 200, 'key-events-page.json');
    expect(second).to.deep.equal({ events: page.events.slice(1, 2), next: 2 });
    const lines = await rest.send('GET', '/api/keys/events', { headers: { Accept: 'application/x-ndjson' } });
    const exported = lines.text.split('\n').slice(0, -1);
    expect(exported.map((line): unknown => JSON.parse(line))).to.deep.equal(page.events);
    expect(exported.every((line) => line === canonical(JSON.parse(line)))).to.equal(true);
  });

  it('does not share an Idempotency-Key between keys', async () => {
    const others = restWith(service.url, await addKey(rest, { name: 'emma', scopes: ['run'] }));
    const start = async (by: RestClient, topic: string) =>
      by.post('/api/councils/run', { input_topic: topic }, { 'Idempotency-Key': 'once' });
    const own = rest.read(await start(rest, 'Trees'), 202, 'run-start.json').run_id;
    const other = rest.read(await start(others, 'Seas'), 202, 'run-start.json').run_id;
    expect(other).not.to.equal(own);
    expect(rest.read(await start(rest, 'Trees'), 202, 'run-start.json').run_id).to.equal(own);
    rest.problem(await start(others, 'Trees'), 409);
  });
});

describe('The first key', () => {
  let service: RunningService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  it('needs the scope admin, is refused from pages and proxies, and closes the service', async () => {
    const rest = restClient(service.url);
    expect(rest.read(await rest.get('/api/session'), 200, 'session.json')).to.deep.equal({
      actor: null,
      scopes: ALL_SCOPES,
      expires_at: null,
    });
    rest.problem(await rest.post('/api/keys', { name: 'ann', scopes: ['read', 'run'] }), 422);
    rest.problem(await rest.post('/api/keys', FIRST, { Origin: service.url }), 403);
    rest.problem(await rest.post('/api/keys', FIRST, { 'X-Forwarded-For': '203.0.113.9' }), 403);
    rest.problem(await rest.send('DELETE', '/api/keys/ann'), 404);
    expect((await rest.get('/api/runs/')).status).to.equal(200);
    await addFirstKey(service.url, ['admin'], 'ann');
    rest.problem(await rest.get('/api/runs/'), 401);
    rest.problem(await rest.post('/api/keys', { name: 'eve', scopes: ['admin'] }), 401);
  });

  it('is refused if other machines can reach the service', async () => {
    const reached = await startService({ host: '0.0.0.0', auth: 'off' });
    try {
      const rest = restClient(reached.url.replace('0.0.0.0', '127.0.0.1'));
      expect(rest.problem(await rest.post('/api/keys', FIRST), 403).detail).to.include('council keys add');
    } finally {
      await reached.stop();
    }
  });
});
