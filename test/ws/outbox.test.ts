import { expect } from 'chai';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { present } from '../../src/system/element.js';
import { Outbox } from '../../src/ws/outbox.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';
import { untilTrue } from '../support/until-true.js';

const MAX_BYTES = 4 * 1024 * 1024;
const STALLED = 10;

describe('What sockets have not sent', () => {
  let server: WebSocketServer;
  let sockets: WebSocket[];
  let clients: WebSocket[];
  let system: ManualSystem;
  let outbox: Outbox;

  beforeEach(async () => {
    [sockets, clients, system] = [[], [], manualSystem()];
    outbox = new Outbox({ system, maxBytes: MAX_BYTES });
    server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
    server.on('connection', (socket) => void sockets.push(socket.on('error', () => undefined)));
    await new Promise((resolve) => server.once('listening', resolve));
  });
  afterEach(async () => {
    for (const client of clients) client.terminate();
    for (const socket of sockets) socket.terminate();
    await new Promise((resolve) => server.close(resolve));
  });

  /** The service's end of a new connection, and the client's. */
  async function connect(): Promise<{ readonly socket: WebSocket; readonly client: WebSocket }> {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    clients.push(client);
    const before = sockets.length;
    await untilTrue(() => sockets.length > before && client.readyState === client.OPEN);
    return { socket: present(sockets.at(-1), 'socket'), client };
  }

  it('is bounded for all of them: those with most are cut off, those who read are not, and memory is freed', async () => {
    const reading = await connect();
    let taken = 0;
    reading.client.on('message', () => (taken += 1));
    const stalled: WebSocket[] = [];
    for (let n = 0; n < STALLED; n += 1) {
      const { socket, client } = await connect();
      client.pause();
      stalled.push(socket);
    }
    const closed = new Set<WebSocket>();
    for (const socket of stalled) socket.once('close', () => closed.add(socket));
    const isOpen = (socket: WebSocket): boolean => socket.readyState === socket.OPEN;
    let encodings = 0;
    let sent = 0;
    while (stalled.filter(isOpen).length > STALLED / 2) {
      const text = 'x'.repeat(100_000);
      const message = {
        event: 'error',
        message: text,
        toJSON: () => ((encodings += 1), { event: 'error', text }),
      } as const;
      sent += 1;
      for (const socket of stalled) outbox.send(socket, message);
      expect(outbox.send(reading.socket, message)).to.equal(true);
      expect(encodings).to.equal(sent);
      const unsent = [...stalled, reading.socket].filter(isOpen).map(({ bufferedAmount }) => bufferedAmount);
      expect(unsent.reduce((sum, bytes) => sum + bytes, 0)).to.be.at.most(MAX_BYTES);
      await untilTrue(() => taken === sent);
    }
    expect(closed.size).to.equal(0);
    system.advance(2_000);
    await untilTrue(() => closed.size === stalled.filter((socket) => !isOpen(socket)).length);
    expect(system.timers()).to.equal(0);
  });

  it('is told to a slow reader with 4408 when it reads again in time', async () => {
    const { socket, client } = await connect();
    client.pause();
    const code = new Promise((resolve) => client.once('close', resolve));
    const text = 'x'.repeat(200_000);
    while (outbox.send(socket, { event: 'error', message: text })) await new Promise(setImmediate);
    client.resume();
    expect(await code).to.equal(4408);
    await untilTrue(() => system.timers() === 0);
  });
});
