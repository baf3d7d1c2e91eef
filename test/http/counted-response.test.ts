import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { expect } from 'chai';
import { countedResponse } from '../../src/http/answer.js';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { openSocket } from '../support/raw-exchange.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';
import { untilTrue } from '../support/until-true.js';

/** More than the machine's own buffers between service and client hold. */
const LARGE = Buffer.alloc(16e6, 'x');
const CHECK_MS = 15_000;

describe('An answer that its client does not read', () => {
  let system: ManualSystem;
  let server: Server;
  let responses: ServerResponse[];
  let clients: Socket[];

  const serve = async (write: (response: ServerResponse) => void, maxInAll?: number): Promise<void> => {
    system = manualSystem();
    [responses, clients] = [[], []];
    const unsent = new SharedBytes(maxInAll === undefined ? {} : { maxInAll });
    server = createServer({ ServerResponse: countedResponse({ system, unsent }) }, (_, response) => {
      responses.push(response);
      write(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  };
  afterEach(async () => {
    clients.forEach((client) => client.destroy());
    await new Promise((resolve) => server.close(resolve));
    await untilTrue(() => system.timers() === 0);
  });

  /** Requests an answer and reads its beginning. */
  const begin = async (): Promise<Socket> => {
    const client = await openSocket(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    clients.push(client.on('error', () => undefined));
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(client, 'readable');
    return client;
  };

  const writers: readonly (readonly [string, (response: ServerResponse) => void])[] = [
    ['is written at once', (response) => response.end(LARGE)],
    [
      'is written in parts',
      (response) => [LARGE.subarray(8e6), LARGE.subarray(8e6)].forEach((part) => response.write(part)),
    ],
  ];
  for (const [how, write] of writers) {
    it(`ends when all answers have too many unsent bytes, if it ${how}`, async () => {
      await serve(write, 2 * LARGE.length);
      for (let count = 0; count < 6; count += 1) await begin();
      await untilTrue(() => responses.filter(({ destroyed }) => destroyed).length >= 3);
      expect(responses.some(({ destroyed }) => !destroyed)).to.equal(true);
    });
  }

  it('ends after 60 s in which nothing is taken', async () => {
    await serve((response) => response.end(LARGE));
    await begin();
    const [response] = responses;
    for (let checks = 0; checks < 3; checks += 1) system.advance(CHECK_MS);
    expect(response?.destroyed).to.equal(false);
    await untilTrue(() => {
      system.advance(CHECK_MS);
      return response?.destroyed === true;
    });
  });

  it('does not end while its client takes some of it in each minute', async () => {
    const part = LARGE.subarray(0, 64 * 1024);
    await serve((response) => {
      const more = (): void => {
        for (let isTaken = true; isTaken && !response.destroyed;) isTaken = response.write(part);
        response.once('drain', more);
      };
      more();
    });
    const client = await begin();
    const [response = expect.fail()] = responses;
    for (let minutes = 0; minutes < 5; minutes += 1) {
      const written = response.socket?.bytesWritten ?? 0;
      await untilTrue(() => {
        client.read();
        return (response.socket?.bytesWritten ?? 0) > written;
      });
      for (let checks = 0; checks < 3; checks += 1) system.advance(CHECK_MS);
    }
    expect(response.destroyed).to.equal(false);
  });
});
