import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import type { ChannelClient } from '../support/channel-client.js';
import { openChannel, refusedUpgrade } from '../support/channel-client.js';
import { changedLog } from '../support/changed-log.js';
import type { EventStreamClient } from '../support/event-stream-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { addFirstKey, addKey, bearer, restWith, signIn } from '../support/keys.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { LogLine, SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

describe('Keys on two instances of one log', () => {
  let dir: TempDir;
  let shared: SharedLog;
  let services: readonly RunningService[];
  const lines: LogLine[] = [];
  let urls: readonly [string, string];
  let admin: RestClient;
  let adminKey: string;
  /** A run that does not end. */
  let held: string;
  let aheadMs = 0;

  before(async () => {
    dir = tempDir();
    shared = await openSharedLog(dir.path);
    const system = { ...nodeSystem(), now: () => new Date(Date.now() + aheadMs).toISOString() };
    const open = (): Promise<RunningService> => {
      const line = shared.line();
      const { log } = line;
      lines.push(line);
      const model = scriptedModel(() => 'hold');
      return startService({ model, system, decorate: (own) => changedLog(log, { close: () => own.close() }) });
    };
    const [one, other] = [await open(), await open()];
    services = [one, other];
    urls = [one.url, other.url];
    adminKey = await addFirstKey(one.url);
    admin = restWith(one.url, adminKey);
    held = await admin.start();
  });
  after(async () => {
    await Promise.all(services.map((each) => each.stop()));
    await shared.close();
    dir.remove();
  });

  const ticketFrom = async (rest: RestClient): Promise<string> =>
    rest.read(await rest.post('/api/tickets'), 201, 'ticket.json').ticket;
  const newKey = (name: string): Promise<string> => addKey(admin, { name, scopes: ['read'] });

  it('close both instances when the first key is added', async () => {
    for (const url of urls) expect((await restClient(url).get('/api/runs/')).status).to.equal(401);
  });

  it('are valid and revoked at the other instance at once', async () => {
    const rest = restWith(urls[1], await newKey('everywhere'));
    expect((await rest.get('/api/runs/')).status).to.equal(200);
    await admin.send('DELETE', '/api/keys/everywhere');
    await untilTrue(async () => (await rest.get('/api/runs/')).status === 401);
  });

  it('open a session at one instance that can be used and signed out at the other', async () => {
    const cookie = await signIn(urls[0], adminKey);
    const there = restClient(urls[1], { Cookie: cookie, Origin: urls[1] });
    expect((await there.get('/api/runs/')).status).to.equal(200);
    await restClient(urls[0]).send('DELETE', '/api/session', { headers: { Cookie: cookie, Origin: urls[0] } });
    await untilTrue(async () => (await there.get('/api/runs/')).status === 401);
  });

  it('let one of 100 concurrent clients use a ticket', async () => {
    const ticket = await ticketFrom(admin);
    const opening = Array.from({ length: 100 }, (_, index) => {
      const stream = openEventStream(urls[index % 2] ?? '', `/api/runs/${held}/stream?ticket=${ticket}`);
      return stream.answered.then(({ status }) => ({ stream, status }));
    });
    const opened = await Promise.all(opening);
    for (const { stream } of opened) stream.leave();
    expect(opened.filter(({ status }) => status === 200)).to.have.length(1);
    expect(opened.filter(({ status }) => status === 401)).to.have.length(99);
  });

  it('issue a ticket that opens only a socket or an event stream, within 30 seconds', async () => {
    const rest = restWith(urls[0], await newKey('tickets'));
    const socket = `/ws/council/${held}?ticket=`;
    const channel = openChannel(urls[1], socket + (await ticketFrom(rest)));
    await channel.until(({ event }) => event === 'connected');
    channel.socket.close();
    const spare = await ticketFrom(rest);
    expect((await restClient(urls[0]).get(`/api/runs/?ticket=${spare}`)).status).to.equal(401);
    expect((await refusedUpgrade(urls[0], `${socket}unknown`)).status).to.equal(401);
    aheadMs += 30_000;
    expect((await refusedUpgrade(urls[0], socket + spare)).status).to.equal(401);
    const unfit = restWith(urls[0], await addKey(admin, { name: 'unfit', scopes: ['run'] }));
    expect((await refusedUpgrade(urls[0], socket + (await ticketFrom(unfit)))).status).to.equal(403);
  });

  /** An open socket and an open event stream on each instance. */
  async function openAll(headersAt: (url: string) => Promise<Readonly<Record<string, string>>>) {
    const channels: ChannelClient[] = [];
    const streams: EventStreamClient[] = [];
    for (const url of urls) {
      const headers = await headersAt(url);
      channels.push(openChannel(url, `/ws/council/${held}`, headers));
      channels.push(openChannel(url, `/ws/council/${held}?events=all`, headers));
      streams.push(openEventStream(url, `/api/runs/${held}/stream`, headers));
      streams.push(openEventStream(url, '/api/feed', headers));
    }
    for (const channel of channels) await channel.until(({ event }) => event === 'connected');
    for (const stream of streams) await stream.until(({ event }) => event === 'RunRequested');
    return {
      async closed(): Promise<void> {
        for (const channel of channels) expect(await channel.closed).to.equal(4401);
        for (const stream of streams) expect(await stream.over).to.equal('cut');
      },
    };
  }

  it('end their open sockets and streams when they are revoked', async () => {
    const key = await newKey('watcher');
    const open = await openAll(async () => bearer(key));
    await admin.send('DELETE', '/api/keys/watcher');
    await open.closed();
  });

  it('end their open sockets and streams when they expire', async () => {
    const key = await addKey(admin, { name: 'brief', scopes: ['read'], expires_in: '1h' });
    const open = await openAll(async () => bearer(key));
    aheadMs += 3_600_000;
    await open.closed();
  });

  it('end the sockets and streams of a session when it is signed out', async () => {
    const cookie = await signIn(urls[0], await newKey('browser'));
    const open = await openAll(async (url) => ({ Cookie: cookie, Origin: url }));
    await restClient(urls[1]).send('DELETE', '/api/session', { headers: { Cookie: cookie, Origin: urls[1] } });
    await open.closed();
  });

  it('accept known keys while the log is unreachable, and answer 503 to unknown ones', async () => {
    const key = await newKey('known');
    const rest = restWith(urls[1], key);
    const asked = async (headers: Readonly<Record<string, string>>): Promise<number> =>
      (await restClient(urls[1]).send('GET', '/api/session', { headers })).status;
    expect((await rest.get('/api/session')).status).to.equal(200);
    lines[1]?.turn('down');
    try {
      aheadMs += 24 * 3_600_000;
      // The service cannot record the key's use on another day now, and does not wait for that.
      expect(await asked(bearer(key))).to.equal(200);
      expect(await asked(bearer(`council_${'x'.repeat(43)}`))).to.equal(503);
      expect(await asked({ Cookie: `council_session=${'x'.repeat(43)}` })).to.equal(503);
    } finally {
      lines[1]?.turn('up');
    }
  });

  it('do not end the sockets and streams of other keys', async () => {
    const key = await newKey('other');
    const channel = openChannel(urls[1], `/ws/council/${held}?events=all`, bearer(adminKey));
    await channel.until(({ event }) => event === 'connected');
    await restWith(urls[1], key).get('/api/runs/');
    await admin.send('DELETE', '/api/keys/other');
    await admin.send('POST', `/api/councils/run/${held}/cancel`);
    await channel.until(({ event }) => event === 'run_failed');
    expect(await channel.closed).to.equal(1000);
    await admin.until(held, isOver);
  });
});

describe('The first key of a service with open connections', () => {
  it('ends the sockets and streams that were opened without a key', async () => {
    const service = await startService({ model: scriptedModel(() => 'hold') });
    try {
      const runId = await restClient(service.url).start();
      const channel = openChannel(service.url, `/ws/council/${runId}`);
      await channel.until(({ event }) => event === 'connected');
      await addFirstKey(service.url);
      expect(await channel.closed).to.equal(4401);
    } finally {
      await service.stop();
    }
  });
});
