import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { AppendOutcomeUnknown, LogUnavailable, SubscriptionDropped } from '../../src/eventlog/errors.js';
import { ConfigInvalid } from '../../src/errors.js';
import { addressIn } from '../../src/eventlog/eventstoredb/connection-string.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import { positionOf, serverPositionOf } from '../../src/eventlog/eventstoredb/names.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { rejectionOf } from '../support/rejection.js';
import { all, idsOf, newEvent, numbered } from './contract-bench.js';
import { eventStoreBench, heldDeadline, SHORT_MS, surely } from './eventstoredb-bench.js';
import { following } from './open-subscription.js';
import { IS_SOAK } from '../support/soak.js';

const KILLS = IS_SOAK ? 10 : 1;
const SERVER = fileURLToPath(new URL('../support/fake-event-store-process.js', import.meta.url));

describe('EventStoreDB log: its name and its streams', () => {
  const bench = eventStoreBench();

  it('keeps an identity that differs from that of other prefixes and servers', async () => {
    const [one, two] = [await bench.server(), await bench.server()];
    const identity = await bench.log(one).identity();
    expect(await bench.log(one).identity()).to.equal(identity);
    const others = await Promise.all([bench.log(one, { prefix: 'x' }), bench.log(two)].map((log) => log.identity()));
    expect(new Set([identity, ...others]).size).to.equal(3);
  });

  it('is empty when only its identity was recorded', async () => {
    const log = bench.log(await bench.server(), { prefix: 'p' });
    expect(await log.head()).to.equal(null);
    await log.identity();
    expect(await log.head()).to.equal(null);
    expect(await all(log.readAll(null))).to.deep.equal([]);
  });

  it('shares a server with logs of other prefixes, whose events it does not return', async () => {
    const server = await bench.server();
    const [one, two] = [bench.log(server, { prefix: 'one' }), bench.log(server, { prefix: 'two' })];
    const [here, there] = [numbered(2), numbered(3)];
    await one.append('run-1', here, 'none');
    await two.append('run-1', there, 'none');
    expect(idsOf(await all(one.readStream('run-1')))).to.deep.equal(idsOf(here));
    expect(idsOf(await all(one.readAll(null)))).to.deep.equal(idsOf(here));
    expect(idsOf(await all(two.readAll(null)))).to.deep.equal(idsOf(there));
    expect((await all(two.readAll(null))).map(({ stream }) => stream)).to.deep.equal(['run-1', 'run-1', 'run-1']);
    expect((await one.head()) ?? '').to.equal((await all(one.readStream('run-1'))).at(-1)?.position);
  });

  it('finds its newest event on a server with a larger or smaller log', async () => {
    const server = await bench.server();
    const [small, large] = [bench.log(server, { prefix: 'small' }), bench.log(server, { prefix: 'large' })];
    const { position: first } = await small.append('run-1', numbered(2), 'none');
    const { position: last } = await large.append('run-1', numbered(700), 'none');
    expect(await small.head()).to.equal(first);
    expect(await small.head()).to.equal(first);
    const { position: second } = await small.append('run-1', numbered(1), 1);
    expect(await small.head()).to.equal(second);
    expect(await large.head()).to.equal(last);
    expect(await bench.log(server, { prefix: 'none' }).head()).to.equal(null);
  });

  it('keeps the newest events of a category with keepLast', async () => {
    const log = bench.log(await bench.server(), { keepLast: { instance: 1 } });
    for (let beat = 0; beat < 5; beat += 1) {
      const expected = beat === 0 ? 'none' : beat - 1;
      await log.append('instance-1', [newEvent({ beat })], expected);
      await log.append('run-1', [newEvent({ beat })], expected);
    }
    expect((await all(log.readStream('instance-1'))).map(({ revision }) => revision)).to.deep.equal([4]);
    expect(await all(log.readStream('instance-1', { direction: 'backwards' }))).to.have.length(1);
    expect(await all(log.readStream('run-1'))).to.have.length(5);
  });
});

describe('EventStoreDB log: with its server in another process', () => {
  const bench = eventStoreBench();
  let children: Child[] = [];

  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.kill()));
  });

  async function serve(file: string, port = '0'): Promise<{ readonly child: Child; readonly url: string }> {
    const child = startChild(process.execPath, [SERVER, file, port]);
    children = [...children, child];
    await child.waitFor((lines) => lines.length > 0);
    return { child, url: child.lines[0]?.replace('listening on ', '') ?? '' };
  }

  it('loses and doubles no acknowledged append when the server is killed under load', async () => {
    const file = bench.file();
    let { child, url } = await serve(file);
    const port = /:(\d+)/.exec(url)?.[1] ?? '';
    const log = bench.log(url, { deadlineMs: 1_000 });
    let isOver = false;
    const writers = Array.from({ length: 50 }, async (_, n) => {
      const ids: string[] = [];
      while (!isOver) {
        const [event] = numbered(1);
        if (event === undefined) continue;
        await surely(log, `run-${n}`, [event], ids.length === 0 ? 'none' : ids.length - 1);
        ids.push(event.id);
      }
      return ids;
    });
    for (let kill = 0; kill < KILLS; kill += 1) {
      for (let n = 0; n < 20; n += 1) await surely(log, `kill-${kill}`, numbered(1), n === 0 ? 'none' : n - 1);
      await child.kill();
      ({ child, url } = await serve(file, port));
    }
    await surely(log, 'run-last', numbered(1), 'none');
    isOver = true;
    for (const [n, ids] of (await Promise.all(writers)).entries())
      expect(idsOf(await all(log.readStream(`run-${n}`)))).to.deep.equal(ids);
  });

  it('reports unknown outcomes and drops subscribers while the server is frozen, and works again afterwards', async () => {
    const { child, url } = await serve(bench.file());
    const log = bench.log(url, { deadlineMs: SHORT_MS });
    await surely(log, 'run-1', numbered(1), 'none');
    const { waitFor, ended } = following(log, null);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
    child.signal('SIGSTOP');
    const events = numbered(1);
    expect(await rejectionOf(log.append('run-1', events, 0))).to.be.instanceOf(AppendOutcomeUnknown);
    expect(await rejectionOf(ended)).to.be.instanceOf(SubscriptionDropped);
    expect(await rejectionOf(log.ping())).to.be.instanceOf(LogUnavailable);
    const settled = surely(log, 'run-1', events, 0);
    child.signal('SIGCONT');
    expect((await settled).revision).to.equal(1);
    expect(await all(log.readStream('run-1'))).to.have.length(2);
  });
});

describe('EventStoreDB log: a server that cannot be reached', () => {
  const bench = eventStoreBench();

  it('is reported with its first error, not with the timeout', async () => {
    const deadline = heldDeadline();
    const silent: Socket[] = [];
    let connections = 0;
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      connections += 1;
      silent.push(socket);
      if (connections === 1) socket.destroy();
      else setImmediate(deadline.pass);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const log = bench.log(`esdb://127.0.0.1:${port}?tls=false`, { system: deadline.system });
    const error = await rejectionOf(log.ping());
    await log.close();
    server.close();
    for (const socket of silent) socket.destroy();
    expect(inspect(error, { depth: 9 })).to.match(/No connection established|Connection dropped|ECONNRESET/);
  });
});

describe('EventStoreDB log: closing', () => {
  const bench = eventStoreBench();

  it('ends with its connections while the server is silent', async () => {
    const server = await bench.server();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    await log.append('run-1', numbered(1), 'none');
    const subscription = following(log, null);
    await subscription.waitFor((seen) => seen.length > 0);
    server.behave({ append: () => 'silence', read: () => 'silence' });
    const append = rejectionOf(log.append('run-1', numbered(1), 0));
    await log.close();
    expect(await append).to.be.instanceOf(AppendOutcomeUnknown);
    expect(await rejectionOf(subscription.ended)).to.be.instanceOf(SubscriptionDropped);
    while (server.connections() > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  it('ends while the server is down', async () => {
    const server = await bench.server();
    await server.kill();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    const append = rejectionOf(log.append('run-1', numbered(1), 'none'));
    await log.close();
    expect(await append).to.be.instanceOf(LogUnavailable);
  });
});

describe('EventStoreDB log: positions and connection strings', () => {
  it('orders positions as the server does, and converts them back', () => {
    const numbers = [0, 9, 10, 255, 256, 4_294_967_296, Number.MAX_SAFE_INTEGER];
    const positions = numbers.flatMap((commit) => [0, 7, commit].map((prepare) => ({ commit, prepare })));
    const texts = numbers.map((number) => positionOf({ commit: number, prepare: number }));
    expect([...texts].sort()).to.deep.equal(texts);
    for (const position of positions) expect(serverPositionOf(positionOf(position))).to.deep.equal(position);
    expect(positionOf({ commit: 9, prepare: 9 }) < positionOf({ commit: 9, prepare: 10 })).to.equal(true);
  });

  it('refuses positions of another kind of log', async () => {
    const log = openEventStoreLog({ url: 'esdb://127.0.0.1:1?tls=false', system: nodeSystem(), deadlineMs: 50 });
    const embedded = '0000000000000001' as Parameters<EventLog['readAll']>[0];
    const error = await rejectionOf(all(log.subscribe(embedded, { signal: new AbortController().signal })));
    expect(error).to.be.instanceOf(SubscriptionDropped);
    await log.close();
  });

  it('have defaults, and option names in any case', () => {
    expect(addressIn('esdb://a:1?tls=false')).to.deep.include({
      hosts: [{ address: 'a', port: 1 }],
      isDiscovered: false,
      options: {
        maxDiscoverAttempts: 1,
        discoveryInterval: 200,
        gossipTimeout: 1,
        keepAliveInterval: 10_000,
        keepAliveTimeout: 2_000,
        connectionName: 'council-run-service',
      },
    });
    const { options } = addressIn(
      'kurrentdb://a?KEEP-ALIVE-TIMEOUT=5000&max_discover_attempts=9&keepAliveInterval=-1&tls=false',
    );
    expect(options).to.include({ maxDiscoverAttempts: 9, keepAliveInterval: -1, keepAliveTimeout: 5_000 });
  });

  it('name the nodes of a cluster, or one DNS name', () => {
    const [a, b] = [
      { address: 'a', port: 2113 },
      { address: 'b', port: 2 },
    ];
    expect(addressIn('esdb://a,b:2/?tls=false')).to.deep.include({ hosts: [a, b], isDiscovered: false });
    expect(addressIn('kurrentdb+discover://u:p@b:2')).to.deep.include({ hosts: [b], isDiscovered: true });
  });

  it('contain credentials, which TLS needs', () => {
    expect(addressIn('esdb://me:a%40b@host').credentials).to.deep.equal({ username: 'me', password: 'a@b' });
    expect(() => openEventStoreLog({ url: 'esdb://host', system: nodeSystem() })).to.throw(ConfigInvalid, 'user:pass');
  });

  it('are refused without quoting the password', () => {
    const open = (url: string) => () => openEventStoreLog({ url, system: nodeSystem() });
    expect(open('esdb://me:secret@host:port')).to.throw(ConfigInvalid).that.satisfies(hidesSecrets);
    const missing = open('esdb://me:secret@host?tlsCAFile=/no/such/file');
    expect(missing).to.throw(ConfigInvalid, 'certificate file').that.satisfies(hidesSecrets);
    for (const wrong of ['http://me:secret@host', 'esdb://me:secret%zz@host', 'esdb://me:secret@host?gossipTimeout=x'])
      expect(open(wrong), wrong).to.throw(ConfigInvalid).that.satisfies(hidesSecrets);
  });
});

function hidesSecrets(error: unknown): boolean {
  return error instanceof Error && !error.message.includes('secret');
}
