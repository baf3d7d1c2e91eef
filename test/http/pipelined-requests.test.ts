import { once } from 'node:events';
import { expect } from 'chai';
import { openSocket, readReply } from '../support/raw-exchange.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

const HOST = 'Host: localhost\r\n';
const reading = (path: string): string => `GET ${path} HTTP/1.1\r\n${HOST}\r\n`;

function posting(path: string, body: object): string {
  const text = JSON.stringify(body);
  const head = `${HOST}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
  return `POST ${path} HTTP/1.1\r\n${head}\r\n${text}`;
}

describe('Requests that a client sends before the answer to an earlier one', () => {
  let service: RunningService;

  before(async () => {
    service = await startService({ model: scriptedModel(() => 'hold') });
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  it('are answered in their order', async () => {
    const socket = await openSocket(service.url);
    const last = `GET /v1/models HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
    socket.write(posting('/api/councils/run', { input_topic: 'Trees' }) + reading('/api/health') + last);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    await readReply(socket);
    const text = Buffer.concat(chunks).toString();
    expect(text.match(/(?<=HTTP\/1.1 )\d+/g)).to.deep.equal(['202', '200', '200']);
    expect(text).to.match(/"run_id".*"status":"ok".*"object":"list"/s);
  });

  it('hold no permit and start no run if the client leaves before their turn', async () => {
    const rest = restClient(service.url);
    const runId = await rest.start('Watched');
    const socket = await openSocket(service.url);
    // Each path has fewer permits than requests here.
    const paths = ['/v1/models', '/api/runs/export', '/api/keys/events'];
    const later = paths.map((path) => reading(path).repeat(8)).join('');
    socket.write(reading(`/api/runs/${runId}/stream`));
    await new Promise((resolve) => socket.once('data', resolve));
    socket.write(later + posting('/v1/responses', { model: 'council', input: 'Left' }) + reading('/x'));
    await untilTrue(() => socket.writableLength === 0);
    // An answer after these bytes: the service has read them.
    await rest.get('/api/health');
    socket.destroy();
    await untilTrue(() => service.context.feed.size === 0);
    for (const path of paths) expect((await rest.get(path)).status, path).to.equal(200);
    const runs = rest.read(await rest.get('/api/runs/'), 200, 'history-list.json');
    expect(runs.map(({ input_topic: topic }) => topic)).not.to.include('Left');
  });

  it('wait for their turn, 100 at most: the service disconnects a client that sends more', async () => {
    const rest = restClient(service.url);
    const socket = await openSocket(service.url);
    const cut = once(
      socket.on('error', () => undefined),
      'close',
    );
    socket.write(reading(`/api/runs/${await rest.start('Flooded')}/stream`));
    await new Promise((resolve) => socket.once('data', resolve));
    socket.resume().write(reading('/api/health').repeat(102));
    await cut;
    const waiting = await openSocket(service.url);
    waiting.write(posting('/api/councils/run', { input_topic: 'Trees' }) + reading('/api/health').repeat(99));
    waiting.write(`GET /api/health HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    const chunks: Buffer[] = [];
    waiting.on('data', (chunk: Buffer) => chunks.push(chunk));
    await readReply(waiting);
    expect(
      Buffer.concat(chunks)
        .toString()
        .match(/"status":"ok"/g),
    ).to.have.lengthOf(100);
  });
});
