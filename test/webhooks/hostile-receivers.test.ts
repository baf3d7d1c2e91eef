import { expect } from 'chai';
import type { RawReceiver } from '../support/raw-receiver.js';
import { rawReceiver } from '../support/raw-receiver.js';
import { untilTrue } from '../support/until-true.js';
import { webhookBench } from '../support/webhook-bench.js';
import { answers } from '../support/webhook-receiver.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('A hostile receiver of webhooks', () => {
  const bench = webhookBench();
  const { register, delivery, finished, retry } = bench;
  let raw: RawReceiver | null;

  beforeEach(() => {
    raw = null;
  });
  afterEach(() => raw?.stop());

  for (const [text, fromMs, toMs] of [
    ['200000000', 3 * DAY_MS, 3 * DAY_MS],
    ['99999999999', 3 * DAY_MS, 3 * DAY_MS],
    ['9'.repeat(40), 3 * DAY_MS, 3 * DAY_MS],
    ['0', 1_000, 1_201],
    ['-5', 5_000, 6_001],
    ['soon', 5_000, 6_001],
    ['6m0s', 5_000, 6_001],
  ] as const) {
    it(`that answers 429 with Retry-After: ${text} gets the next attempt within bounds`, async () => {
      bench.receiver.answerBy(answers(429, { 'Retry-After': text }));
      const webhook = await register(bench.receiver.url);
      await finished();
      const attempted = await delivery(webhook, ({ attempts }) => attempts === 1);
      const { last_attempt_at: last, next_attempt_at: next } = attempted;
      expect(Date.parse(next ?? '') - Date.parse(last ?? '')).to.be.within(fromMs, toMs);
    });
  }

  it('that answers 429 with a date in Retry-After gets the next attempt then', async () => {
    const at = Math.ceil(Date.parse(bench.system.now()) / 1_000) * 1_000 + HOUR_MS;
    bench.receiver.answerBy(answers(429, { 'Retry-After': new Date(at).toUTCString() }));
    const webhook = await register(bench.receiver.url);
    await finished();
    const { next_attempt_at: next } = await delivery(webhook, ({ attempts }) => attempts === 1);
    expect(Date.parse(next ?? '')).to.be.within(at, at + 0.2 * HOUR_MS + 1_000);
  });

  it('that reads nothing holds up no other webhook', async () => {
    raw = await rawReceiver((socket) => void socket.pause());
    const webhook = await register(raw.url);
    await register(bench.receiver.url);
    for (let runs = 1; runs <= 3; runs += 1) {
      await finished();
      await bench.receiver.until((all) => all.length === runs);
    }
    await untilTrue(() => raw?.sockets.size === 1);
    bench.system.jump(15_000);
    await delivery(webhook, ({ error }) => error === 'no answer within 15 s');
  });

  it('that sends interim answers without end fails its attempt and is disconnected', async () => {
    raw = await rawReceiver((socket) => {
      const flood = (): void => {
        while (socket.writable && socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000)));
      };
      socket.once('data', flood).on('drain', flood);
    });
    const webhook = await register(raw.url);
    await finished();
    const { error } = await delivery(webhook, ({ attempts }) => attempts === 1);
    expect(error).to.equal('it sent too many interim answers');
    await untilTrue(() => raw?.sockets.size === 0);
  });

  it('that answers 410 to several attempts at once disables its webhook with one log line', async () => {
    await register(bench.receiver.url);
    await finished();
    await bench.receiver.until((all) => all.length === 1);
    const held: (() => void)[] = [];
    bench.receiver.answerBy((response) => void held.push(() => response.writeHead(410).end()));
    for (let runs = 0; runs < 5; runs += 1) await finished();
    await bench.receiver.until((all) => all.length === 6);
    for (const answer of held) answer();
    await untilTrue(async () => {
      const list = bench.rest.read(await bench.rest.get('/api/webhooks'), 200, 'webhook-list.json');
      return list[0]?.disabled === true;
    });
    expect(bench.service.faults).to.have.length(1);
  });

  it('is cut off at once when its webhook is deleted during an attempt', async () => {
    raw = await rawReceiver((socket) => void socket.resume());
    const webhook = await register(raw.url);
    await finished();
    await untilTrue(() => raw?.sockets.size === 1);
    expect((await bench.rest.send('DELETE', `/api/webhooks/${webhook.id}`)).status).to.equal(204);
    await untilTrue(() => raw?.sockets.size === 0);
    await finished();
    expect(bench.service.faults).to.deep.equal([]);
  });

  it('gets the events of a run in order, although a human retries one that waits for an earlier one', async () => {
    const runId: { first: string | null } = { first: null };
    bench.receiver.answerBy((response, { message }) => {
      runId.first ??= message.data.run_id;
      response.writeHead(message.data.run_id === runId.first ? 500 : 204).end();
    });
    const webhook = await register(bench.receiver.url, { types: ['RunStarted', 'RunCompleted'] });
    await finished();
    await bench.receiver.until((all) => all.length === 1);
    await finished();
    const waits = await delivery(webhook, ({ type, run_id: id }) => type === 'RunCompleted' && id === runId.first);
    expect(waits).to.include({ status: 'waiting', attempts: 0 });
    await retry(webhook, waits);
    bench.receiver.answerBy(answers(204));
    const typesOfFirst = (): readonly string[] =>
      bench.receiver.received
        .filter(({ message }) => message.data.run_id === runId.first)
        .map(({ message }) => message.type);
    await untilTrue(() => {
      bench.system.jump(1_000);
      return typesOfFirst().includes('RunCompleted');
    });
    // The first attempt at RunStarted has failed.
    expect(typesOfFirst()).to.deep.equal(['RunStarted', 'RunStarted', 'RunCompleted']);
  });

  it('gets another attempt at once if a human asks for it while an attempt is in progress', async () => {
    bench.receiver.answerBy(answers(500));
    const webhook = await register(bench.receiver.url);
    await finished();
    for (let attempts = 1; attempts <= 3; attempts += 1) {
      await delivery(webhook, (each) => each.attempts === attempts);
      if (attempts < 3) bench.system.jump(10 * 60_000);
    }
    let fail = (): void => undefined;
    bench.receiver.answerBy((response) => (fail = () => void response.writeHead(500).end()));
    bench.system.jump(10 * 60_000);
    await bench.receiver.until((all) => all.length === 4);
    await retry(webhook, await delivery(webhook, ({ attempts }) => attempts === 3));
    bench.receiver.answerBy(answers(204));
    fail();
    const { id } = await delivery(webhook, ({ status }) => status === 'delivered');
    expect(bench.receiver.received).to.have.length(5);
    const host = new URL(bench.receiver.url).host;
    const line = { webhookId: webhook.id, deliveryId: id, host, actor: null, msg: 'webhook delivery retried' };
    expect(bench.service.lines).to.deep.include(line);
  });
});
