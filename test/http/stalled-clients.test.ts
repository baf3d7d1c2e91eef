import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { openSocket } from '../support/raw-exchange.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const PROBE = new URL('../support/memory-probe.js', import.meta.url).href;
const CLIENTS = IS_SOAK ? 800 : 40;
const HOST = 'Host: localhost\r\n';

describe('Clients that stall', () => {
  let dir: TempDir;
  let service: ServiceProcess;
  let clients: Socket[];

  beforeEach(async () => {
    [dir, clients] = [tempDir(), []];
    service = await startServiceProcess(dir.path, { flags: ['--expose-gc', '--import', PROBE] });
  });
  afterEach(async () => {
    clients.forEach((client) => client.destroy());
    await service.stop();
    dir.remove();
  });

  /** Opens connections that write a text, and never read more than the beginning of an answer. */
  async function stalledWith(text: string): Promise<void> {
    for (let count = 0; count < CLIENTS; count += 1) {
      const client = await openSocket(service.url);
      clients.push(client.on('error', () => undefined));
      client.write(text);
    }
    // What the service reads later than this request it has not needed memory for either.
    await untilTrue(() => clients.every(({ writableLength, destroyed }) => writableLength === 0 || destroyed));
    expect((await fetch(`${service.url}/api/health`)).status).to.equal(200);
  }

  soakIt('before they read a file of the console use no memory for it', async () => {
    const page = await (await fetch(`${service.url}/console/`)).text();
    const [folder] = /\/console\/assets\/\w+\//.exec(page) ?? expect.fail('The page names its assets');
    const file = `${folder}share.js`;
    const bytes = (await (await fetch(service.url + file)).arrayBuffer()).byteLength;
    expect(bytes).to.be.greaterThan(200_000);
    const before = await heldBytes();
    // More than the machine's own buffers hold.
    await stalledWith(`GET ${file} HTTP/1.1\r\n${HOST}\r\n`.repeat(30));
    await untilTrue(() =>
      clients.every((client) => client.destroyed || client.read() !== null || client.bytesRead > 0),
    );
    expect((await heldBytes()) - before).to.be.below((CLIENTS * bytes) / 2);
  });

  it('before the end of a sign-in use no memory for its body', async () => {
    const before = await heldBytes();
    const head = `${HOST}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n`;
    await stalledWith(`POST /api/session HTTP/1.1\r\n${head}{"key": "${'x'.repeat(900_000)}`);
    expect((await heldBytes()) - before).to.be.below(CLIENTS * 200_000);
  });

  it('before the end of a body in tiny chunks use the memory of its bytes alone', async () => {
    const before = await heldBytes();
    const head = `${HOST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    await stalledWith(`POST /api/councils/run HTTP/1.1\r\n${head}${'4\r\nxxxx\r\n'.repeat(10_000)}`);
    expect((await heldBytes()) - before).to.be.below(CLIENTS * 400_000);
  });

  /** The least memory of the service's main thread in bytes after some garbage collections: one does not free all buffers. */
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
});
