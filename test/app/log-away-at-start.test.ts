import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openChannel } from '../support/channel-client.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { NO_RUN, isOver, restClient } from '../support/rest-client.js';
import { READY_LINE, addressOf } from '../support/served-address.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { sample } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

describe('A service that starts while the server of its log is away', () => {
  let dir: TempDir;
  let server: FakeEventStore;
  let child: Child;

  beforeEach(async () => {
    dir = tempDir();
    server = await fakeEventStore(join(dir.path, 'server.sqlite'));
  });

  afterEach(async () => {
    await child.kill();
    await server.stop();
    dir.remove();
  });

  function start(environment: Readonly<Record<string, string>> = {}): void {
    child = startChild(process.execPath, [MAIN], {
      PATH: process.env['PATH'],
      PORT: '0',
      DATA_DIR: join(dir.path, 'data'),
      EVENTSTORE_URL: server.url,
      ...environment,
    });
  }

  /** Messages of the service about its event log, in order. */
  const logMessages = (): readonly string[] =>
    child.lines
      .filter((line) => line.startsWith('{'))
      .map((line) => (JSON.parse(line) as { readonly msg: string }).msg)
      .filter((msg) => msg.includes('event log'));

  const AWAY = 'the event log cannot be reached: waiting for it';
  const BACK = 'the event log answers';

  const ways = [
    ['refuses connections', () => server.kill(), () => server.restart()],
    ['answers nothing', async () => server.behave({ read: () => 'silence' }), async () => server.behave({})],
  ] as const;
  for (const [how, leave, come] of sample(ways, 1)) {
    it(`answers health and refuses the rest with the reason while it ${how}, then serves`, async () => {
      await leave();
      start();
      const url = await addressOf(child);
      for (const path of ['/api/health', '/api/health/']) {
        const health = await fetch(url + path);
        expect([health.status, await health.json()]).to.deep.equal([
          200,
          { status: 'ok', service: 'council-run-service' },
        ]);
      }
      const asked: readonly (readonly [string, RequestInit])[] = [
        ...['/api/runs', '/api/openapi.json', `/api/runs/${NO_RUN}/stream`, '/api/feed', '/metrics', '/'].map(
          (path) => [path, {}] as const,
        ),
        ['/api/councils/run', { method: 'POST', body: 'x'.repeat(2_000_000) }],
        ['/api/health/ready', {}],
      ];
      for (const [path, request] of asked) {
        const reply = await fetch(url + path, request);
        expect(reply.status, path).to.equal(503);
        expect(Number(reply.headers.get('Retry-After')), path).to.be.greaterThan(0);
        expect(((await reply.json()) as { readonly detail: string }).detail.toLowerCase(), path).to.include(
          'the event log cannot be reached',
        );
      }
      for (const query of ['', '?events=all']) {
        const channel = openChannel(url, `/ws/council/${NO_RUN}${query}`);
        expect(await channel.closed).to.equal(1013);
        expect(channel.messages).to.deep.equal([]);
      }
      await come();
      await untilTrue(async () => (await fetch(`${url}/api/health/ready`)).status === 200);
      const rest = restClient(url);
      expect(await rest.until(await rest.start(), isOver)).to.include({ status: 'completed' });
      expect(logMessages()).to.deep.equal([AWAY, BACK]);
      expect(child.lines.filter((line) => READY_LINE.test(line))).to.have.length(1);
      expect(child.lines.join('\n')).not.to.include('"stack"');
      expect(child.stderrText()).to.equal('');
    });
  }

  it('serves no client before it can read the keys, and exits with code 2 on an open address without keys', async () => {
    await server.kill();
    start({ HOST: '0.0.0.0' });
    const url = (await addressOf(child)).replace('0.0.0.0', '127.0.0.1');
    expect((await fetch(`${url}/api/health`)).status).to.equal(200);
    expect((await fetch(`${url}/api/runs`)).status).to.equal(503);
    await server.restart();
    expect(await child.ended).to.equal(2);
    expect(child.stderrText().trim().split('\n')).to.have.length(1);
    expect(child.stderrText()).to.include('HOST="0.0.0.0"');
  });
});
