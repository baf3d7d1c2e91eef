import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { openSocket, readReply } from '../support/raw-exchange.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const MIB = 1024 * 1024;
/** The time for a body to arrive. */
const BODY_MS = 30_000;
/** More bodies of 1 MiB than the service receives at once. */
const MANY = 80;
const ROUTES = ['/api/session', '/api/councils/run', '/api/councils/', '/mcp', '/v1/responses', '/api/webhooks'];

describe('A JSON body whose end does not arrive', () => {
  let service: RunningService;
  let isHasty: boolean;
  let sockets: Socket[];

  before(async () => {
    const real = nodeSystem();
    // A busy machine may need longer than that to receive many bodies.
    const after = (ms: number, call: () => void): (() => void) => {
      if (ms !== BODY_MS) return real.after(ms, call);
      return isHasty ? real.after(ms / 100, call) : () => undefined;
    };
    isHasty = false;
    service = await startService({ model: scriptedModel(), system: { ...real, after } });
  });
  beforeEach(() => (sockets = []));
  afterEach(() => {
    isHasty = false;
    for (const socket of sockets) socket.destroy();
    expect(service.faults).to.deep.equal([]);
  });
  after(() => service.stop());

  /** Sends all but the last 100 bytes of a request's body. */
  const begin = async (path: string, bytes: number): Promise<Socket> => {
    const socket = await openSocket(service.url);
    sockets.push(socket.on('error', () => undefined));
    const head = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;
    socket.write(`POST ${path} HTTP/1.1\r\n${head}{"key": "${'x'.repeat(bytes - 109)}`);
    return socket;
  };

  for (const path of ROUTES) {
    it(`gets 408 after 30 s at ${path}, and the connection closes`, async () => {
      isHasty = true;
      const { status, body } = await readReply(await begin(path, 1_000));
      expect(status).to.equal(408);
      expect(body).to.include('did not arrive within 30 s');
    });
  }

  it('of a sign-in gets 413 at once when it has more than 1 KiB', async () => {
    const { status } = await restClient(service.url).send('POST', '/api/session', {
      body: `{"key": "${'x'.repeat(1024)}"}`,
      headers: { 'Content-Type': 'application/json' },
    });
    expect(status).to.equal(413);
  });

  soakIt('gets 503 when all bodies together exceed 64 MiB and it is the largest; small ones still arrive', async () => {
    let refused = 0;
    for (let count = 0; count < MANY; count += 1) {
      const socket = await begin('/api/councils/run', MIB);
      socket.once('data', (answer: Buffer) => {
        if (/^HTTP\/1.1 503 [^]*Retry-After: 2/.test(answer.toString())) refused += 1;
      });
    }
    await untilTrue(() => refused >= MANY - 64);
    const rest = restClient(service.url);
    await rest.start('A small body');
    expect(sockets.filter((socket) => socket.destroyed)).to.deep.equal([]);
    const [first] = sockets.filter((socket) => socket.listenerCount('data') > 0);
    // A body that is kept can still be completed.
    first?.write(`${' '.repeat(98)}"}`);
    const [answer] = (await once(first ?? expect.fail(), 'data')) as [Buffer];
    expect(answer.toString()).to.match(/^HTTP\/1.1 422 /);
  });
});
