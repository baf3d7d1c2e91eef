import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { expect } from 'chai';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import { residentMb } from '../bench/machine.js';
import { openChannel } from '../support/channel-client.js';
import { RUN_ID } from '../support/given.js';
import { recordLargeRun } from '../support/large-run.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { sample, soakIt } from '../support/soak.js';

const PROBE = new URL('../support/memory-probe.js', import.meta.url).href;
const CLIENTS = 60;
/** The most bytes that the service may hold for one client of a run: data in transit, which clients may share. */
const MAX_BYTES_A_CLIENT = 300_000;
/** The same for a client of the feed, which shares nothing: an event in transit, as stored, read and sent. */
const MAX_BYTES_A_FEED = 1_000_000;
/** Readers of the crowd, and the most resident memory that all of them together may cost, in MB. */
const CROWD = 500;
const MAX_CROWD_MB = 150;
const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

onEmbeddedLog(() =>
  describe('Clients that request a stream of large events and never read it', () => {
    let dir: TempDir;
    let service: ServiceProcess;
    let clients: Socket[];

    before(async () => {
      dir = tempDir();
      await recordLargeRun(dir.path);
    });
    after(() => dir.remove());
    beforeEach(async () => {
      clients = [];
      service = await startServiceProcess(dir.path, { flags: ['--expose-gc', '--import', PROBE] });
    });
    afterEach(async () => {
      clients.forEach((client) => client.destroy());
      await service.stop();
    });

    const RICH = [`/ws/council/${RUN_ID}?events=all`, UPGRADE] as const;
    const streams = [
      ['rich socket streams', ...RICH, MAX_BYTES_A_CLIENT],
      ['feeds', '/api/feed', '', MAX_BYTES_A_FEED],
      ['event streams of a run', `/api/runs/${RUN_ID}/stream`, '', MAX_BYTES_A_CLIENT],
    ] as const;
    for (const [what, path, headers, maxBytes] of sample(streams, 1)) {
      it(`use little memory of the service with ${what}`, async () => {
        await readAll();
        const before = await heldBytes();
        clients = await Promise.all(Array.from({ length: CLIENTS }, () => opened(path, headers)));
        // Reading the whole record once gives the service time to read ahead for the others.
        await readAll();
        expect((await heldBytes()) - before).to.be.below(CLIENTS * maxBytes);
      });
    }

    // A system without /proc does not say what a process holds.
    if (residentMb(process.pid, 'VmRSS') !== null) {
      soakIt(`cost at most ${MAX_CROWD_MB} MB of resident memory with ${CROWD} rich socket streams`, async () => {
        const resident = (): number => Number(residentMb(service.pid, 'VmRSS'));
        await readAll();
        await heldBytes();
        const before = resident();
        const during: number[] = [];
        while (clients.length < CROWD) {
          clients.push(...(await Promise.all(Array.from({ length: CROWD / 10 }, () => opened(...RICH)))));
          during.push(resident());
        }
        await readAll();
        expect(Math.max(...during, resident()) - before).to.be.below(MAX_CROWD_MB);
      });
    }

    /** A connection with an open stream that the client does not read. */
    async function opened(path: string, headers: string): Promise<Socket> {
      const { hostname, port } = new URL(service.url);
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n${headers}\r\n`);
      await once(socket, 'data');
      socket.pause();
      return socket;
    }

    async function readAll(): Promise<void> {
      const channel = openChannel(service.url, `/ws/council/${RUN_ID}?events=all`);
      expect(await channel.closed).to.equal(1000);
    }

    /**
     * The memory of the service's main thread in bytes after several garbage collections, because one does not free all
     * buffers.
     */
    async function heldBytes(): Promise<number> {
      const answers: number[] = [];
      for (let count = 0; count < 3; count += 1) {
        const answered = once(service.child, 'message');
        service.child.send('memory');
        const received: readonly unknown[] = await answered;
        answers.push(Number(received[0]));
      }
      return Math.min(...answers);
    }
  }),
);
