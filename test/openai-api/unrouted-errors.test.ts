import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PROBLEM_FORMS } from '../../src/app/doors.js';
import { refuseUnreadable } from '../../src/http/app.js';
import type { RawReply } from '../support/raw-exchange.js';
import { openSocket, rawExchange, readReply } from '../support/raw-exchange.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { schemaCheck } from '../support/schema-check.js';

const HOST = 'Host: localhost\r\n';
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n';
const POST = `POST /v1/chat/completions HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n`;

/** Checks that a reply has OpenAI's form. */
function expectOpenAiError({ status, head, body }: RawReply, wanted: number): void {
  expect(status, body).to.equal(wanted);
  const value: unknown = JSON.parse(body);
  if (!schemaCheck('openai-error.json')(value)) expect.fail(`Not in OpenAI's form: ${body}`);
  expect(value.error.type).to.equal('invalid_request_error');
  expect(head).to.match(/^content-type: application\/json/im);
}

describe('An error of a request under /v1 that reaches no route', () => {
  let service: RunningService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  for (const [what, status, parts] of [
    ['asks for a socket', 404, [`GET /v1/responses HTTP/1.1\r\n${HOST}${UPGRADE}\r\n`]],
    ['asks for a socket by an absolute target', 404, [`GET http://localhost/v1/x HTTP/1.1\r\n${HOST}${UPGRADE}\r\n`]],
    ['has an unreadable header', 400, [`GET /v1/models?x HTTP/1.1\r\n${HOST}no colon\r\n\r\n`]],
    ['has a method that is none', 400, [`LOOK /v1 HTTP/1.1\r\n${HOST}\r\n`]],
    ['has headers that are too large', 431, [`GET /v1/models HTTP/1.1\r\n${HOST}X: ${'x'.repeat(20_000)}\r\n\r\n`]],
    ['has an unreadable body', 400, [`${POST}Transfer-Encoding: chunked\r\n\r\n`, 'no length\r\n']],
    ['expects what the service cannot do', 417, [`GET http://x/v1/models HTTP/1.1\r\n${HOST}Expect: x\r\n\r\n`]],
  ] as const) {
    it(`has OpenAI's form if the request ${what}`, async () => {
      expectOpenAiError(await rawExchange(service.url, parts), status);
    });
  }

  it('has that form if the body is unreadable after the headers have arrived', async () => {
    const socket = await openSocket(service.url);
    socket.write(`${POST}Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n`);
    await new Promise<void>((resolve) => socket.once('data', () => resolve()));
    socket.write('no length\r\n');
    expectOpenAiError(await readReply(socket), 400);
  });

  it('has the form of the service elsewhere', async () => {
    for (const request of [
      `GET /ws/nothing HTTP/1.1\r\n${HOST}${UPGRADE}\r\n`,
      `GET /api/v1/models HTTP/1.1\r\n${HOST}no colon\r\n\r\n`,
      `GET /v1x HTTP/1.1\r\n${HOST}no colon\r\n\r\n`,
      '\u0000\r\n\r\n',
    ]) {
      expect(JSON.parse((await rawExchange(service.url, [request])).body), request).to.have.all.keys('detail');
    }
  });
});

describe('A request under /v1 that does not arrive in time', () => {
  /** The reply of a server that stops waiting when the headers are complete, or without them after some milliseconds. */
  async function lateReply(begin: string, headersTimeout: number): Promise<RawReply> {
    const options = { headersTimeout, requestTimeout: 0, connectionsCheckingInterval: 5 };
    const server = createServer(options, () => (server.requestTimeout = 1)).on(
      'clientError',
      refuseUnreadable(PROBLEM_FORMS, ''),
    );
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const socket = await openSocket(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    socket.write(begin);
    const reply = await readReply(socket);
    server.close();
    return reply;
  }

  it("gets OpenAI's form if its headers are complete", async () => {
    expectOpenAiError(await lateReply(`${POST}Content-Length: 10\r\n\r\n{`, 0), 408);
  });

  it('gets the form of the service if they are not, because its path is not read', async () => {
    const { status, body } = await lateReply(POST, 1);
    expect([status, JSON.parse(body)]).to.deep.equal([408, { detail: 'The request did not arrive in time' }]);
  });
});
