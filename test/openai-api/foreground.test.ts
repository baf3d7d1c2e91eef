import { expect } from 'chai';
import { openChannel } from '../support/channel-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { passingSystem } from '../support/passing-time.js';
import { openSocket, readReply } from '../support/raw-exchange.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { currentModel, heldCouncil, scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';
import { sample, soakIt } from '../support/soak.js';

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const BODIES: Readonly<Record<string, object>> = {
  [CHAT]: { model: 'council', messages: [{ role: 'user', content: 'Trees' }] },
  [RESPONSES]: { model: 'council', input: 'Trees' },
};

/** The request as bytes. */
function requestOf(path: string, body: object, headers: readonly string[] = []): string {
  const text = JSON.stringify(body);
  const fields = ['Host: localhost', 'Content-Type: application/json', `Content-Length: ${text.length}`, ...headers];
  return [`POST ${path} HTTP/1.1`, ...fields, '', text].join('\r\n');
}

/** Sends a request. Returns its connection, and a function that returns the text that has come so far. */
async function sent(url: string, request: string) {
  const socket = await openSocket(url);
  let text = '';
  socket.on('error', () => undefined);
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  socket.write(request);
  return { socket, text: () => text };
}

describe('A foreground request whose client has gone', () => {
  let service: RunningService;
  let rest: RestClient;
  let scripted: ScriptedModel;

  before(async () => {
    service = await startService({ model: currentModel(() => scripted) });
    rest = restClient(service.url);
  });
  after(() => service.stop());
  beforeEach(() => {
    scripted = heldCouncil();
  });
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  /** Sends a request, waits until its run calls the model, and returns the connection with the id of the run. */
  async function begun(path: string, more: object = {}, headers: readonly string[] = []) {
    const { socket } = await sent(service.url, requestOf(path, { ...BODIES[path], ...more }, headers));
    await untilTrue(() => scripted.requests.length > 0);
    const [run] = rest.read(await rest.get('/api/runs/?limit=1'), 200, 'history-list.json');
    return { socket, runId: run?.id ?? '' };
  }
  const errorOf = async (runId: string): Promise<string | null> => (await rest.until(runId, isOver)).error;
  /** Whether the run has not been cancelled when a run that was left later has been. */
  async function outlives(runId: string): Promise<void> {
    const kept = scripted;
    scripted = scriptedModel(() => 'hold');
    const later = await begun(CHAT);
    later.socket.destroy();
    expect(await errorOf(later.runId)).to.equal('Cancelled by the user');
    scripted = kept;
    expect((await rest.poll(runId)).status).to.be.oneOf(['running', 'paused', 'completed']);
  }

  for (const path of [CHAT, RESPONSES]) {
    for (const stream of sample([false, true], 1)) {
      it(`cancels the run 1 s later: ${path}${stream ? ', streamed' : ''}`, async () => {
        const { socket, runId } = await begun(path, { stream });
        const leftAt = performance.now();
        socket.destroy();
        expect(await errorOf(runId)).to.equal('Cancelled by the user');
        expect(performance.now() - leftAt).to.be.at.least(990);
        expect(scripted.held[0]?.signal.aborted).to.equal(true);
      });
    }
  }

  it('leaves a background run alone', async () => {
    const { socket, runId } = await begun(RESPONSES, { background: true, stream: true });
    socket.destroy();
    await outlives(runId);
    scripted.held[0]?.release();
    expect((await rest.until(runId, isOver)).status).to.equal('completed');
  });

  soakIt('leaves a run alone that a socket or an event stream follows', async () => {
    for (const path of ['', '?events=all']) {
      scripted = heldCouncil();
      const { socket, runId } = await begun(CHAT);
      const channel = openChannel(service.url, `/ws/council/${runId}${path}`);
      await channel.until(() => true);
      socket.destroy();
      await outlives(runId);
      scripted.held[0]?.release();
      await channel.until(({ event }) => event === 'run_complete');
    }
    scripted = heldCouncil();
    const { socket, runId } = await begun(CHAT);
    const events = openEventStream(service.url, `/api/runs/${runId}/stream`);
    await events.until(({ event }) => event === 'NodeStarted');
    socket.destroy();
    await outlives(runId);
    scripted.held[0]?.release();
    await events.until(({ event }) => event === 'RunCompleted');
  });

  it('leaves a run alone that a request with its Idempotency-Key follows, until that has gone too', async () => {
    const headers = ['Idempotency-Key: again'];
    const first = await begun(CHAT, {}, headers);
    const second = await begun(CHAT, { stream: false }, headers);
    expect(second.runId).to.equal(first.runId);
    await untilTrue(() => service.context.feed.watchersOf(first.runId) === 2);
    first.socket.destroy();
    await outlives(first.runId);
    second.socket.destroy();
    expect(await errorOf(first.runId)).to.equal('Cancelled by the user');
  });

  it('leaves a run alone that a stream of its response follows', async () => {
    const { socket, runId } = await begun(RESPONSES, { stream: true });
    const stream = openEventStream(service.url, `${RESPONSES}/resp_${runId.replaceAll('-', '')}?stream=true`);
    await stream.until(({ event }) => event === 'response.in_progress');
    socket.destroy();
    await outlives(runId);
    scripted.held[0]?.release();
    await stream.until(({ event }) => event === 'response.completed');
    expect(await stream.over).to.equal('ended');
  });

  it('leaves a paused run alone', async () => {
    await rest.post('/api/councils/', {
      id: 'slow',
      name: 'Slow',
      nodes: [{ id: 'write' }],
      model_options: { god_mode: true },
    });
    const { socket, text } = await sent(
      service.url,
      requestOf(CHAT, { ...BODIES[CHAT], model: 'council/slow', stream: true }),
    );
    await untilTrue(() => text().includes('waits for a decision'));
    const runId = /Council-Run-Id: (\S+)/i.exec(text())?.[1] ?? '';
    socket.destroy();
    await outlives(runId);
    await rest.post(`/api/councils/run/${runId}/cancel`);
    await rest.send('DELETE', '/api/councils/slow');
  });

  it('ends the connection, and so the run, when its key is revoked', async () => {
    // In another service, because the keys stay.
    const closed = await startService({ model: currentModel(() => scripted) });
    try {
      const admin = restWith(closed.url, await addFirstKey(closed.url));
      const key = await addKey(admin, { name: 'guest', scopes: ['run'] });
      const socket = await openSocket(closed.url);
      socket.write(requestOf(CHAT, BODIES[CHAT] ?? {}, [`Authorization: Bearer ${key}`]));
      await untilTrue(() => scripted.requests.length > 0);
      const cut = readReply(socket).catch(() => null);
      await admin.send('DELETE', '/api/keys/guest');
      expect((await cut)?.body ?? '').to.equal('');
      const [run] = admin.read(await admin.get('/api/runs/?limit=1'), 200, 'history-list.json');
      expect((await admin.until(run?.id ?? '', isOver)).error).to.equal('Cancelled by the user');
    } finally {
      await closed.stop();
    }
  });
});

describe('A stream under /v1', () => {
  it('begins with a comment, before the run has done anything', async () => {
    const scripted = scriptedModel(() => 'hold');
    const service = await startService({ model: scripted });
    try {
      for (const path of [CHAT, RESPONSES]) {
        const { socket, text } = await sent(service.url, requestOf(path, { ...BODIES[path], stream: true }));
        await untilTrue(() => text().includes('\n: run '));
        const [head = '', body = ''] = text().split('\r\n\r\n');
        expect(head)
          .to.match(/content-type: text\/event-stream/i)
          .and.match(/x-accel-buffering: no/i);
        expect(body.replace(/^[0-9a-f]+\r\n/, '')).to.match(/^: run [0-9a-f-]{36}\n\n/);
        socket.destroy();
      }
    } finally {
      await service.stop();
    }
  });

  it('sends a comment at least every 15 s', async () => {
    // A timer of 15 s lasts 15 ms here.
    const service = await startService({ model: scriptedModel(() => 'hold'), system: passingSystem([15_000]) });
    try {
      const { socket, text } = await sent(service.url, requestOf(CHAT, { ...BODIES[CHAT], stream: true }));
      await untilTrue(() => text().split('\n:\n\n').length > 3);
      socket.destroy();
    } finally {
      await service.stop();
    }
  });
});
