import { expect } from 'chai';
import type { NewWebhook } from '../../src/generated/schemas.js';
import { changedLog } from '../support/changed-log.js';
import { parseMetrics, valueOf } from '../support/prometheus-text.js';
import { untilTrue } from '../support/until-true.js';
import { webhookBench } from '../support/webhook-bench.js';
import { answers } from '../support/webhook-receiver.js';

const DAY_MS = 24 * 3_600_000;
const TOKEN = 'token-of-the-receiver';

describe('The metrics and log lines of webhooks', () => {
  /** Whether the log refuses to append an event. */
  let refuses = (_stream: string, _type: string | undefined): boolean => false;
  const bench = webhookBench({
    decorate: (log) =>
      changedLog(log, {
        append: (stream, events, expected) =>
          refuses(stream, events[0]?.type) ? Promise.reject(new Error('Odd')) : log.append(stream, events, expected),
      }),
  });
  const { finished } = bench;

  beforeEach(() => {
    refuses = () => false;
  });

  const register = (): Promise<NewWebhook> => bench.register(`${bench.receiver.url}/hook?key=${TOKEN}`);
  const metrics = async () => parseMetrics(await (await fetch(`${bench.service.url}/metrics`)).text());
  const untilMetric = async (name: string, labels: Readonly<Record<string, string>>, value: number): Promise<void> =>
    untilTrue(async () => valueOf(await metrics(), name, labels) === value);
  /** Logged errors about webhooks. */
  const logged = (): readonly object[] => bench.service.faults.filter((fault) => 'webhookId' in fault);
  const expectNamed = (fault: object | undefined, { id, secret }: NewWebhook): void => {
    expect(fault).to.deep.include({ webhookId: id, host: new URL(bench.receiver.url).host });
    for (const hidden of [secret.slice('whsec_'.length), TOKEN])
      expect(JSON.stringify([bench.service.faults, bench.service.lines])).not.to.include(hidden);
  };

  it('count attempts by result, and show how many deliveries wait and for how long', async () => {
    bench.receiver.answerBy(answers(500));
    await register();
    await finished();
    await untilMetric('council_webhook_attempts_total', { result: 'retried' }, 1);
    await untilMetric('council_webhook_deliveries_waiting', {}, 1);
    bench.system.jump(3_000);
    expect(valueOf(await metrics(), 'council_webhook_oldest_wait_seconds')).to.be.within(3, 60);
    bench.receiver.answerBy(answers(204));
    bench.system.jump(4_000);
    await untilMetric('council_webhook_attempts_total', { result: 'delivered' }, 1);
    await untilMetric('council_webhook_deliveries_waiting', {}, 0);
    expect(valueOf(await metrics(), 'council_webhook_oldest_wait_seconds')).to.equal(0);
    bench.receiver.answerBy(answers(410));
    await finished();
    await untilMetric('council_webhook_attempts_total', { result: 'failed' }, 1);
    await untilMetric('council_webhooks', { state: 'disabled' }, 1);
    expect(valueOf(await metrics(), 'council_webhooks', { state: 'active' })).to.equal(0);
  });

  it('have no label for each webhook, so that their number does not grow with it', async () => {
    const lines = async (): Promise<readonly string[]> => {
      const text = await (await fetch(`${bench.service.url}/metrics`)).text();
      return text.split('\n').filter((line) => line.startsWith('council_webhook'));
    };
    const before = await lines();
    for (let count = 0; count < 5; count += 1) await register();
    await finished();
    await bench.receiver.until((all) => all.length === 5);
    expect((await lines()).map((line) => line.split(' ')[0])).to.deep.equal(before.map((line) => line.split(' ')[0]));
  });

  it('name the webhook whose receiver answered 410', async () => {
    bench.receiver.answerBy(answers(410));
    const webhook = await register();
    await finished();
    await untilTrue(() => logged().length > 0);
    expectNamed(logged()[0], webhook);
  });

  it('name the delivery that the service abandoned after 3 days, and the reason', async () => {
    bench.receiver.answerBy(answers(500));
    const webhook = await register();
    const runId = await finished();
    const ended = async (): Promise<number> => {
      const all = await metrics();
      const count = (result: string): number => valueOf(all, 'council_webhook_attempts_total', { result });
      return count('retried') + count('failed');
    };
    // A day passes only between two attempts, because an attempt may take 15 s.
    for (let attempts = 1; logged().length === 0; attempts += 1) {
      await untilTrue(async () => logged().length > 0 || (await ended()) === attempts);
      bench.system.jump(DAY_MS);
    }
    expectNamed(logged()[0], webhook);
    const { headers } = bench.receiver.received[0] ?? {};
    expect(logged()[0]).to.deep.include({ runId, deliveryId: headers?.['webhook-id'], reason: 'it answered 500' });
  });

  it('have one line for a webhook whose deliveries cannot begin, however often the service tries', async () => {
    let tries = 0;
    refuses = (stream) => {
      if (!stream.startsWith('delivery-') || tries === 3) return false;
      tries += 1;
      return true;
    };
    const webhook = await register();
    await untilTrue(() => {
      bench.system.jump(1_000);
      return tries === 3;
    });
    await finished();
    await untilTrue(() => {
      bench.system.jump(1_000);
      return bench.receiver.received.length === 1;
    });
    expect(logged()).to.have.length(1);
    expectNamed(logged()[0], webhook);
  });

  it('have one line if a result cannot be recorded, and the receiver gets no repeated request for a minute', async () => {
    refuses = (_, type) => type === 'DeliveriesChanged';
    const webhook = await register();
    await finished();
    await untilTrue(() => logged().length > 0);
    expectNamed(logged()[0], webhook);
    // Each run comes after a check for webhooks that no instance delivers.
    for (let second = 0; second < 30; second += 1) {
      bench.system.jump(1_000);
      await finished();
    }
    expect(bench.receiver.received).to.have.length(1);
    refuses = () => false;
    bench.system.jump(30_000);
    await untilTrue(() => {
      bench.system.jump(1_000);
      return bench.receiver.received.length === 32;
    });
    expect(logged()).to.have.length(1);
  });
});
