import { expect } from 'chai';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocket } from 'ws';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { elementAt } from '../../src/system/element.js';
import { serveChannels } from '../../src/ws/upgrade.js';
import { manualSystem } from '../support/manual-system.js';
import { NO_KEYS } from '../support/no-keys.js';
import { NO_LIMITS } from '../support/no-limits.js';
import { untilTrue } from '../support/until-true.js';

/** Time between pings in milliseconds. */
const PING_MS = 20_000;

describe('A socket with a dead client', () => {
  it('is closed after two unanswered pings; a socket that answers stays open', async () => {
    const system = manualSystem();
    const never = (): never => expect.fail('Nobody asked for this');
    const connections: Socket[] = [];
    const server = createServer().on('connection', (socket) => connections.push(socket));
    const channels = serveChannels(server, {
      feed: { follow: () => new Promise<never>(() => undefined) },
      queries: { find: never, assertNotErased: async () => undefined },
      tokens: { subscribe: never },
      system,
      unsent: new SharedBytes(),
      limits: NO_LIMITS,
      isOwnHost: () => true,
      corsOrigins: [],
      problemForms: [],
      onFault: never,
      ...NO_KEYS,
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws/council/x`;
    const opened = async (autoPong: boolean): Promise<WebSocket> => {
      const client = new WebSocket(url, { autoPong });
      await new Promise((resolve) => client.once('open', resolve));
      return client;
    };
    const [living, dead] = [await opened(true), await opened(false)];
    const codes: number[] = [];
    dead.on('close', (code) => codes.push(code));
    let pings = 0;
    dead.on('ping', () => (pings += 1));
    const heard = (): number => elementAt(connections, 0).bytesRead;

    for (let beats = 1; beats <= 2; beats += 1) {
      const before = heard();
      system.advance(PING_MS);
      await untilTrue(() => heard() > before && pings === beats);
      expect(codes).to.deep.equal([]);
    }
    system.advance(PING_MS);
    await untilTrue(() => codes.length > 0);
    expect(codes).to.deep.equal([1006]);
    system.advance(PING_MS);
    expect(living.readyState).to.equal(living.OPEN);
    expect(pings).to.equal(2);
    const stopped = channels.stop();
    await stopped;
    await new Promise((resolve) => server.close(resolve));
  });
});
