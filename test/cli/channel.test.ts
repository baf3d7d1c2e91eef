import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import type { Channel } from '../../src/cli/client/channel.js';
import { openChannel } from '../../src/cli/client/channel.js';
import { openSchemas } from '../../src/api/schemas.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';

const RUN = '00000000-0000-4000-8000-000000000000';

describe('The channel as the command reads it', () => {
  let server: WebSocketServer;
  let system: ManualSystem;
  let ended: AbortController;

  beforeEach(async () => {
    server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await new Promise((resolve) => server.on('listening', resolve));
    system = manualSystem();
    ended = new AbortController();
  });

  afterEach(async () => {
    ended.abort();
    for (const client of server.clients) client.terminate();
    await new Promise((resolve) => server.close(resolve));
  });

  /** A channel of a service that has said `connected`. */
  const connected = async (): Promise<{ readonly channel: Channel; readonly service: WebSocket }> => {
    const joined = new Promise<WebSocket>((resolve) => server.on('connection', resolve));
    const { port } = server.address() as AddressInfo;
    const channel = openChannel(`http://127.0.0.1:${port}`, RUN, {
      key: null,
      schemas: openSchemas(),
      system,
      signal: ended.signal,
    });
    const service = await joined;
    service.send(JSON.stringify({ event: 'connected', run_id: RUN, status: 'running' }));
    expect(await channel.next()).to.include({ event: 'connected' });
    return { channel, service };
  };

  it('ends when the service has been silent for a minute', async () => {
    const { channel } = await connected();
    system.advance(60_000);
    expect(await channel.next()).to.equal(null);
    expect(system.timers()).to.equal(0);
  });

  it('stays while the service pings', async () => {
    const { channel, service } = await connected();
    for (let minutes = 0; minutes < 3; minutes += 1) {
      system.advance(40_000);
      const ponged = new Promise((resolve) => service.once('pong', resolve));
      service.ping();
      await ponged;
    }
    service.send(JSON.stringify({ event: 'node_active', run_id: RUN, node: 'poet', iteration: null }));
    expect(await channel.next()).to.include({ node: 'poet' });
  });

  it('ends at once when it is not wanted any more', async () => {
    const { channel } = await connected();
    ended.abort();
    expect(await channel.next()).to.equal(null);
  });
});
