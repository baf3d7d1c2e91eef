import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { openChannel, refusedUpgrade } from '../support/channel-client.js';
import type { EventStreamClient } from '../support/event-stream-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { addFirstKey, addKey, restWith, signIn } from '../support/keys.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RestClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

describe('A session', () => {
  let dir: TempDir;
  let service: RunningService;
  let admin: RestClient;
  let first: string;
  let key: string;
  let aheadMs = 0;

  before(async () => {
    dir = tempDir();
    await start();
    first = await addFirstKey(service.url);
    admin = restWith(service.url, first);
    key = await addKey(admin, { name: 'ann', scopes: ['read', 'run'] });
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  async function start(): Promise<void> {
    const system = { ...nodeSystem(), now: () => new Date(Date.now() + aheadMs).toISOString() };
    service = await startService({ dataDir: dir.path, system, trustedProxies: ['127.0.0.1'] });
  }

  const post = (headers: Readonly<Record<string, string>>, body: unknown = { key }): Promise<Response> =>
    fetch(`${service.url}/api/session`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const cookieOf = async (headers: Readonly<Record<string, string>>): Promise<readonly string[]> =>
    (await post(headers)).headers.getSetCookie().flatMap((cookie) => cookie.split('; '));
  const own = (cookie: string): Readonly<Record<string, string>> => ({ Cookie: cookie, Origin: service.url });
  const ticketIn = async (cookie: string): Promise<string> => {
    const rest = restClient(service.url, own(cookie));
    return rest.read(await rest.post('/api/tickets'), 201, 'ticket.json').ticket;
  };
  const statusOf = async (cookie: string): Promise<number> =>
    (await restClient(service.url).send('GET', '/api/runs/', { headers: { Cookie: cookie } })).status;

  it('is opened with a key, and has a cookie that scripts cannot read and other sites cannot send', async () => {
    const [value = '', ...attributes] = await cookieOf({});
    expect(value).to.match(/^council_session=[A-Za-z0-9_-]{43}$/);
    expect(attributes).to.have.members(['Path=/', 'Max-Age=43200', 'HttpOnly', 'SameSite=Strict']);
    expect(value).not.to.include(key.slice('council_'.length));
    expect(await statusOf(value)).to.equal(200);
  });

  it('has a cookie with Secure behind a trusted proxy with TLS', async () => {
    expect(await cookieOf({ 'X-Forwarded-Proto': 'https' })).to.include('Secure');
    expect(await cookieOf({ 'X-Forwarded-Proto': 'http' })).not.to.include('Secure');
  });

  it('is refused without a valid key, and to a page of another origin', async () => {
    expect((await post({}, { key: 'council_' })).status).to.equal(401);
    expect((await post({}, {})).status).to.equal(422);
    expect((await post({}, { key: 1 })).status).to.equal(422);
    expect((await post({ 'Content-Type': 'text/plain' })).status).to.equal(415);
    expect((await post({ Origin: 'http://evil.test' })).status).to.equal(403);
  });

  it('is refused with 429 after 60 sign-ins of a key within an hour, but not to another key', async () => {
    const [eager, other] = [
      await addKey(admin, { name: 'eager', scopes: ['read'] }),
      await addKey(admin, { name: 'other', scopes: ['read'] }),
    ];
    const replies: Response[] = [];
    for (let count = 0; count < 61; count += 1) replies.push(await post({}, { key: eager }));
    expect(replies.map(({ status }) => status)).to.deep.equal([...Array.from({ length: 60 }, () => 200), 429]);
    expect(Number(replies[60]?.headers.get('retry-after'))).to.be.within(1, 60);
    expect((await post({}, { key: other })).status).to.equal(200);
  });

  it("returns the caller's name, scopes and expiry", async () => {
    const rest = restClient(service.url, { Cookie: await signIn(service.url, key) });
    const { expires_at: expiresAt, ...who } = rest.read(await rest.get('/api/session'), 200, 'session.json');
    expect(who).to.deep.equal({ actor: 'ann', scopes: ['read', 'run'] });
    expect(Date.parse(expiresAt ?? '') - Date.now()).to.be.within(11 * 3_600_000, 12 * 3_600_000);
  });

  it('allows changes only from pages of the service', async () => {
    const cookie = await signIn(service.url, key);
    const start = async (headers: Readonly<Record<string, string>>): Promise<number> =>
      (await restClient(service.url).post('/api/councils/run', { input_topic: 'Trees' }, headers)).status;
    expect(await start({ Cookie: cookie })).to.equal(403);
    expect(await start({ Cookie: cookie, Origin: 'http://evil.test' })).to.equal(403);
    expect(await start(own(cookie))).to.equal(202);
    expect(await start({ ...own(cookie), Authorization: 'Basic YTpi' })).to.equal(202);
  });

  it('opens sockets only for pages of the service', async () => {
    const cookie = await signIn(service.url, key);
    const runId = await restClient(service.url, own(cookie)).start();
    const path = `/ws/council/${runId}`;
    expect((await refusedUpgrade(service.url, path, { Cookie: cookie })).status).to.equal(403);
    const channel = openChannel(service.url, path, own(cookie));
    await channel.until(({ event }) => event === 'run_complete');
    expect(await channel.closed).to.equal(1000);
    await admin.until(runId, isOver);
  });

  it('ends at sign-out', async () => {
    const [cookie, other] = [await signIn(service.url, key), await signIn(service.url, key)];
    const reply = await restClient(service.url).send('DELETE', '/api/session', { headers: own(cookie) });
    expect(reply.status).to.equal(204);
    expect(reply.headers.getSetCookie()[0]).to.match(/^council_session=; Path=\/; Max-Age=0;/);
    expect([await statusOf(cookie), await statusOf(other)]).to.deep.equal([401, 200]);
  });

  it('survives a restart, and stays signed out after one', async () => {
    const [cookie, ended] = [await signIn(service.url, key), await signIn(service.url, key)];
    await restClient(service.url).send('DELETE', '/api/session', { headers: own(ended) });
    await service.stop();
    await start();
    expect([await statusOf(cookie), await statusOf(ended)]).to.deep.equal([200, 401]);
  });

  it('ends with its tickets and their streams, also after a restart', async () => {
    const [long, brief] = [await signIn(service.url, key), await signIn(service.url, key)];
    const open = async (ticket: string): Promise<EventStreamClient> => {
      const stream = openEventStream(service.url, `/api/feed?from=head&ticket=${ticket}`);
      expect((await stream.answered).status).to.equal(200);
      return stream;
    };
    const stream = await open(await ticketIn(long));
    aheadMs = 12 * 3_600_000;
    expect(await stream.over).to.equal('cut');
    aheadMs = 0;

    const ticket = await ticketIn(brief);
    await restClient(service.url).send('DELETE', '/api/session', { headers: own(brief) });
    await service.stop();
    await start();
    expect((await restClient(service.url).get(`/api/feed?ticket=${ticket}`)).status).to.equal(401);
    (await open(await ticketIn(long))).leave();
  });

  it('ends when its key is revoked', async () => {
    const rest = restWith(service.url, first);
    const cookie = await signIn(service.url, await addKey(rest, { name: 'cleo', scopes: ['read'] }));
    expect(await statusOf(cookie)).to.equal(200);
    await rest.send('DELETE', '/api/keys/cleo');
    expect(await statusOf(cookie)).to.equal(401);
  });

  it('ends after 12 hours', async () => {
    const cookie = await signIn(service.url, key);
    aheadMs = 12 * 3_600_000 - 60_000;
    expect(await statusOf(cookie)).to.equal(200);
    aheadMs = 12 * 3_600_000;
    expect(await statusOf(cookie)).to.equal(401);
    aheadMs = 0;
  });
});
