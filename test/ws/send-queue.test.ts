import { expect } from 'chai';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { present } from '../../src/system/element.js';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import type { Peer } from '../../src/ws/send-queue.js';
import { SendQueue } from '../../src/ws/send-queue.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';
import { untilTrue } from '../support/until-true.js';

const MAX_BYTES = 4 * 1024 * 1024;
const STALLED = 10;
const SHORT = { event: 'error', message: 'x'.repeat(20_000) } as const;

describe('Unsent bytes of sockets', () => {
  let server: WebSocketServer;
  let peers: Peer[];
  let clients: WebSocket[];
  let system: ManualSystem;
  let sendQueue: SendQueue;

  beforeEach(async () => {
    [peers, clients, system] = [[], [], manualSystem()];
    sendQueue = new SendQueue({ system, unsent: new SharedBytes({ maxInAll: MAX_BYTES }) });
    server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
    server.on('connection', (socket, { socket: connection }) => {
      peers.push({ socket: socket.on('error', () => undefined), connection });
    });
    await new Promise((resolve) => server.once('listening', resolve));
  });
  afterEach(async () => {
    for (const client of clients) client.terminate();
    for (const { socket } of peers) socket.terminate();
    await new Promise((resolve) => server.close(resolve));
  });

  /** The service's end of a new connection, and the client's. */
  async function connect(): Promise<{ readonly peer: Peer; readonly client: WebSocket }> {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    clients.push(client);
    const before = peers.length;
    await untilTrue(() => peers.length > before && client.readyState === client.OPEN);
    return { peer: present(peers.at(-1), 'socket'), client };
  }

  it('are bounded in total: the service disconnects only the slowest readers', async () => {
    const reading = await connect();
    let taken = 0;
    reading.client.on('message', () => (taken += 1));
    const stalled: Peer[] = [];
    for (let n = 0; n < STALLED; n += 1) {
      const { peer, client } = await connect();
      client.pause();
      stalled.push(peer);
    }
    const closed = new Set<WebSocket>();
    for (const { socket } of stalled) socket.once('close', () => closed.add(socket));
    const isOpen = ({ socket }: Peer): boolean => socket.readyState === socket.OPEN;
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
      for (const peer of stalled) sendQueue.send(peer, [message]);
      expect(sendQueue.send(reading.peer, [message])).to.equal(true);
      expect(encodings).to.equal(sent);
      const unsent = [...stalled, reading.peer].filter(isOpen).map(({ socket }) => socket.bufferedAmount);
      expect(unsent.reduce((sum, bytes) => sum + bytes, 0)).to.be.at.most(MAX_BYTES);
      await untilTrue(() => taken === sent);
    }
    expect(closed.size).to.equal(0);
    system.advance(2_000);
    await untilTrue(() => closed.size === stalled.filter((peer) => !isOpen(peer)).length);
    expect(system.timers()).to.equal(0);
  });

  /** A client that reads nothing and has the given number of unsent bytes. */
  async function stalledWith(bytes: number): Promise<Peer> {
    const { peer, client } = await connect();
    client.pause();
    while (peer.socket.bufferedAmount < bytes && sendQueue.send(peer, [SHORT])) await new Promise(setImmediate);
    return peer;
  }

  it('disconnect the socket with the most unsent bytes, not the one that sends', async () => {
    const states = (peers: readonly Peer[]): readonly boolean[] =>
      peers.map(({ socket }) => socket.readyState === socket.OPEN);
    const [most, less, sender] = [await stalledWith(1_000_000), await stalledWith(600_000), await stalledWith(800_000)];
    expect(states([most, less, sender])).to.deep.equal([true, true, true]);
    const another = [await stalledWith(900_000), await stalledWith(700_000)];
    expect(states([most, less, sender, ...another])).to.deep.equal([true, true, true, true, true]);
    for (let n = 0; n < 20 && states([most])[0] === true; n += 1) sendQueue.send(less, [SHORT]);
    expect(states([most, less, sender, ...another])).to.deep.equal([false, true, true, true, true]);
    system.advance(2_000);
  });

  it('are at most 1 MiB for one socket', async () => {
    sendQueue = new SendQueue({ system, unsent: new SharedBytes() });
    const peer = await stalledWith(900_000);
    let sent = 0;
    while (sent < 10 && sendQueue.send(peer, [SHORT])) {
      sent += 1;
      expect(peer.socket.bufferedAmount).to.be.at.most(1024 * 1024);
    }
    expect(sent).to.be.below(10);
    system.advance(2_000);
  });

  it('arrive whole for texts of every form of length', async () => {
    const { peer, client } = await connect();
    const arrived: string[] = [];
    client.on('message', (data: Buffer, isBinary) => arrived.push(`${String(isBinary)} ${data.toString()}`));
    const empty = JSON.stringify({ event: 'error', message: '' }).length;
    const messages = [125, 126, 65_535, 65_536, 1_000_000].map(
      (length) => ({ event: 'error', message: 'x'.repeat(length - empty) }) as const,
    );
    const accented = { event: 'error', message: 'é'.repeat(100) } as const;
    sendQueue.send(peer, [...messages, accented]);
    await untilTrue(() => arrived.length === messages.length + 1);
    expect(arrived).to.deep.equal([...messages, accented].map((each) => `false ${JSON.stringify(each)}`));
  });

  it('close a slow reader with 4408 if it reads again in time', async () => {
    const { peer, client } = await connect();
    client.pause();
    const code = new Promise((resolve) => client.once('close', resolve));
    const text = 'x'.repeat(200_000);
    while (sendQueue.send(peer, [{ event: 'error', message: text }])) await new Promise(setImmediate);
    client.resume();
    expect(await code).to.equal(4408);
    await untilTrue(() => system.timers() === 0);
  });
});
