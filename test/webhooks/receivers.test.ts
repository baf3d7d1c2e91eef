import { expect } from 'chai';
import type { LookupAddress } from 'node:dns';
import type { WebhookDelivery } from '../../src/generated/schemas.js';
import { untilTrue } from '../support/until-true.js';
import { webhookBench } from '../support/webhook-bench.js';
import type { Answering, Receiver } from '../support/webhook-receiver.js';
import { answers, startReceiver } from '../support/webhook-receiver.js';
import { soakIt } from '../support/soak.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const hangs: Answering = () => undefined;

describe('A receiver of webhooks', () => {
  const bench = webhookBench();
  const { register, delivery, finished, retry } = bench;
  let other: Receiver;

  beforeEach(async () => {
    other = await startReceiver();
  });
  afterEach(() => other.stop());

  const waitOf = ({ last_attempt_at: last, next_attempt_at: next }: WebhookDelivery): number =>
    Date.parse(next ?? '') - Date.parse(last ?? '');

  it('that hangs holds up no other webhook, and has failed after 15 s', async () => {
    bench.receiver.answerBy(hangs);
    const webhook = await register(bench.receiver.url);
    await register(other.url);
    for (let runs = 1; runs <= 20; runs += 1) {
      await finished();
      await other.until((all) => all.length === runs);
    }
    bench.system.jump(15_000);
    const { error, response_status: status } = await delivery(webhook, ({ attempts }) => attempts === 1);
    expect([error, status]).to.deep.equal(['no answer within 15 s', null]);
    // It gets one at a time.
    await bench.receiver.until((all) => all.length === 2);
  });

  soakIt('that hangs after a success gets few at once, and holds up no other webhook', async () => {
    await register(bench.receiver.url);
    await register(other.url);
    await finished();
    await bench.receiver.until((all) => all.length === 1);
    bench.receiver.answerBy(hangs);
    for (let runs = 2; runs <= 20; runs += 1) {
      await finished();
      await other.until((all) => all.length === runs);
    }
    await bench.receiver.until((all) => all.length === 9);
    bench.system.jump(15_000);
    await bench.receiver.until((all) => all.length === 10);
  });

  it('that answers 500 for an hour gets each event once it recovers, in the order of the run', async () => {
    bench.receiver.answerBy(answers(500));
    const webhook = await register(bench.receiver.url, { types: ['RunStarted', 'NodeCompleted', 'RunCompleted'] });
    const runId = await finished();
    for (let passedMs = 0; passedMs < HOUR_MS; passedMs += 10 * MINUTE_MS) {
      await delivery(
        webhook,
        ({ next_attempt_at: at }) => at !== null && Date.parse(at) > Date.parse(bench.system.now()),
      );
      bench.system.jump(10 * MINUTE_MS);
    }
    await delivery(
      webhook,
      ({ next_attempt_at: at }) => at !== null && Date.parse(at) > Date.parse(bench.system.now()),
    );
    expect(new Set(bench.receiver.received.map(({ message }) => message.type))).to.deep.equal(new Set(['RunStarted']));
    const failed = bench.receiver.received.length;
    bench.receiver.answerBy(answers(204));
    bench.system.jump(HOUR_MS + 15 * MINUTE_MS);
    const events = bench.rest.read(
      await bench.rest.get(`/api/runs/${runId}/events`),
      200,
      'run-events-page.json',
    ).events;
    const wanted = events.filter(({ type }) => webhook.types.includes(type)).map(({ id }) => id);
    await bench.receiver.until((all) => all.length === failed + wanted.length);
    expect(bench.receiver.received.slice(failed).map(({ headers }) => headers['webhook-id'])).to.deep.equal(wanted);
  });

  it('that answers 410 disables its webhook and gets nothing more', async () => {
    bench.receiver.answerBy(answers(410));
    const webhook = await register(bench.receiver.url);
    await register(other.url);
    await finished();
    const { id, status, next_attempt_at: next } = await delivery(webhook, ({ response_status: code }) => code === 410);
    expect([status, next]).to.deep.equal(['failed', null]);
    await untilTrue(async () => {
      const list = bench.rest.read(await bench.rest.get('/api/webhooks'), 200, 'webhook-list.json');
      return list.find((each) => each.id === webhook.id)?.disabled === true;
    });
    await finished();
    await other.until((all) => all.length === 2);
    bench.system.jump(HOUR_MS);
    expect(bench.receiver.received).to.have.length(1);
    bench.rest.problem(await bench.rest.post(`/api/webhooks/${webhook.id}/deliveries/${id}/retry`), 409);
  });

  for (const [text, ms] of [
    ['42', 42_000],
    ['3', 3_000],
    ['7200', 2 * HOUR_MS],
  ] as const) {
    it(`that answers 429 with Retry-After: ${text} is left alone for as long`, async () => {
      bench.receiver.answerBy(answers(429, { 'Retry-After': text }));
      const webhook = await register(bench.receiver.url);
      await finished();
      expect(waitOf(await delivery(webhook, ({ attempts }) => attempts === 1))).to.be.within(ms, 1.2 * ms + 1);
      bench.receiver.answerBy(answers(200));
      bench.system.jump(1.2 * ms + 1);
      await delivery(webhook, ({ status }) => status === 'delivered');
    });
  }

  soakIt('that fails while more events come than wait in memory gets all of them later', async () => {
    const runs = 130;
    bench.receiver.answerBy(answers(500));
    await register(bench.receiver.url);
    await register(other.url);
    const runIds = await Promise.all(Array.from({ length: runs }, () => bench.rest.start()));
    await other.until((all) => new Set(all.map(({ message }) => message.data.run_id)).size === runs);
    bench.receiver.answerBy(answers(200));
    const got = (): ReadonlySet<string> => new Set(bench.receiver.received.map(({ message }) => message.data.run_id));
    await untilTrue(() => {
      bench.system.jump(1_000);
      return got().size === runs;
    });
    expect([...got()].toSorted()).to.deep.equal(runIds.toSorted());
  });

  it('that redirects is not followed', async () => {
    bench.receiver.answerBy(answers(307, { Location: `${other.url}/elsewhere` }));
    const webhook = await register(bench.receiver.url);
    await finished();
    const { error } = await delivery(webhook, ({ response_status: status }) => status === 307);
    expect(error).to.equal('it answered 307');
    expect(other.received).to.deep.equal([]);
  });

  it('that switches protocols has failed at once, with its status', async () => {
    bench.receiver.answerBy(answers(101, { Connection: 'Upgrade', Upgrade: 'other' }));
    const webhook = await register(bench.receiver.url);
    await finished();
    const { error, response_status: status } = await delivery(webhook, ({ attempts }) => attempts === 1);
    expect([error, status]).to.deep.equal(['it answered 101', 101]);
  });

  it('that answers 200 at once and its body a byte a second has succeeded', async () => {
    bench.receiver.answerBy((response) => void response.writeHead(200, { 'Content-Length': 1_000_000 }).write('.'));
    const webhook = await register(bench.receiver.url);
    await finished();
    await delivery(webhook, ({ status }) => status === 'delivered');
  });

  it('that is away gets the event when it is back', async () => {
    await other.goAway();
    const webhook = await register(other.url);
    await finished();
    expect((await delivery(webhook, ({ attempts }) => attempts === 1)).error).to.include('ECONNREFUSED');
    await other.comeBack();
    bench.system.jump(6_000);
    await delivery(webhook, ({ status }) => status === 'delivered');
  });

  it('gets one more attempt when a human retries a delivery, failed or not', async () => {
    bench.receiver.answerBy(answers(500));
    const webhook = await register(bench.receiver.url);
    await finished();
    const { id } = await delivery(webhook, ({ attempts }) => attempts === 1);
    expect(await retry(webhook, { id })).to.include({ id, status: 'waiting', attempts: 0, next_attempt_at: null });
    await bench.receiver.until((all) => all.length === 2);
    bench.receiver.answerBy(answers(200));
    await delivery(webhook, ({ attempts }) => attempts === 1);
    await retry(webhook, { id });
    await delivery(webhook, ({ status }) => status === 'delivered');
    await retry(webhook, { id });
    await bench.receiver.until((all) => all.length === 4);
    expect(new Set(bench.receiver.received.map(({ headers }) => headers['webhook-id'])).size).to.equal(1);
    bench.rest.problem(await bench.rest.post(`/api/webhooks/${webhook.id}/deliveries/unknown/retry`), 404);
  });
});

describe('The address of a webhook', () => {
  const hosts = new Map<string, readonly string[]>();
  const asked: string[] = [];
  const resolveHost = (hostname: string): Promise<readonly LookupAddress[]> => {
    asked.push(hostname);
    const addresses = hosts.get(hostname) ?? (/^[\d.]+$|:/.test(hostname) ? [hostname] : null);
    if (addresses === null) return Promise.reject(new Error(`getaddrinfo ENOTFOUND ${hostname}`));
    return Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));
  };
  const bench = webhookBench({ webhookAllowPrivate: false, resolveHost });

  beforeEach(() => {
    hosts.clear();
    asked.splice(0);
  });

  it('is refused at the registration if the host has a private address, written in any way', async () => {
    hosts.set('inside.example', ['10.1.2.3']);
    hosts.set('both.example', ['93.184.215.14', '192.168.0.1']);
    hosts.set('six.example', ['fd00::1']);
    hosts.set('metadata.example', ['169.254.169.254']);
    const urls = [
      ...['inside.example', 'both.example', 'six.example', 'metadata.example', '127.0.0.1', '2130706433', '0x7f.1'],
      ...['[::1]', '[::ffff:127.0.0.1]', '[64:ff9b::a00:1]', '[fe80::1]', '0', '100.64.0.1', '[::]', '[2002:7f00:1::]'],
    ];
    for (const host of urls) {
      const problem = bench.rest.problem(
        await bench.rest.post('/api/webhooks', { url: `http://${host}:9000/hook` }),
        422,
      );
      expect(problem.errors?.[0]?.loc, host).to.deep.equal(['body', 'url']);
      expect(problem.detail, host).to.include('no public address');
    }
  });

  it('is accepted if the host is public, or does not resolve yet', async () => {
    hosts.set('public.example', ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c']);
    for (const host of ['public.example', 'later.example', '8.8.8.8', '[64:ff9b::808:808]']) {
      const reply = await bench.rest.post('/api/webhooks', { url: `https://${host}/hook`, types: ['RunResumed'] });
      expect(reply.status, `${host}: ${reply.text}`).to.equal(201);
    }
  });

  it('is checked again before each attempt: a host that becomes private gets nothing', async () => {
    hosts.set('changing.example', ['93.184.215.14']);
    const { port } = new URL(bench.receiver.url);
    const webhook = await bench.register(`http://changing.example:${port}/hook`);
    hosts.set('changing.example', ['127.0.0.1']);
    await bench.finished();
    const { error } = await bench.delivery(webhook, ({ attempts }) => attempts === 1);
    expect(error).to.equal('changing.example is 127.0.0.1, no public address');
    bench.system.jump(6_000);
    await bench.delivery(webhook, ({ attempts }) => attempts === 2);
    expect(bench.receiver.received).to.deep.equal([]);
    expect(asked.filter((host) => host === 'changing.example')).to.have.length(3);
  });
});

describe('The connection to a receiver', () => {
  const bench = webhookBench({ resolveHost: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]) });

  it('goes to the address that was checked, whatever the name means elsewhere', async () => {
    const { receiver } = bench;
    const host = `hooks.invalid:${new URL(receiver.url).port}`;
    await bench.register(`http://${host}/hook?team=7`);
    await bench.finished();
    await receiver.until((all) => all.length === 1);
    const [received] = receiver.received;
    expect([received?.path, received?.headers.host]).to.deep.equal(['/hook?team=7', host]);
  });
});
