import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import type { NewWebhook, WebhookMessage } from '../../src/generated/schemas.js';
import { addFirstKey, restWith } from '../support/keys.js';
import { schemaCheck } from '../support/schema-check.js';
import { untilTrue } from '../support/until-true.js';
import { webhookBench } from '../support/webhook-bench.js';
import type { Received } from '../support/webhook-receiver.js';
import { answers } from '../support/webhook-receiver.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('Webhooks', () => {
  const bench = webhookBench();
  const { deliveries, finished } = bench;
  const register = (body: object = {}): Promise<NewWebhook> => bench.register(`${bench.receiver.url}/hook`, body);

  describe('registration', () => {
    it('returns the secret once, and never shows it again', async () => {
      const { secret, ...shown } = await register();
      expect(secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(shown).to.deep.include({
        url: `${bench.receiver.url}/hook`,
        types: ['RunPaused', 'RunCompleted', 'RunFailed'],
        blueprint_id: null,
      });
      const list = await bench.rest.get('/api/webhooks');
      expect(bench.rest.read(list, 200, 'webhook-list.json')).to.deep.equal([{ ...shown, disabled: false }]);
      await finished();
      await bench.receiver.until((all) => all.length === 1);
      for (const path of ['/api/webhooks', `/api/webhooks/${shown.id}/deliveries`])
        expect((await bench.rest.get(path)).text).not.to.include(secret.slice('whsec_'.length));
    });

    it('refuses what it cannot deliver to, and names the field', async () => {
      const urls = [
        '',
        'nothing',
        'ftp://example.com/',
        'http://ann:secret@example.com/',
        `http://a.b/${'c'.repeat(2048)}`,
        ...['\t', '\n', '\u0000', '\u007f', '\u0085', '\u200b', '\u202e', '\u2028'].map(
          (sign) => `http://a.b/c${sign}d`,
        ),
      ];
      const bodies = [
        ...[{}, ...urls.map((url) => ({ url })), { url: bench.receiver.url, types: [] }],
        ...[
          { url: bench.receiver.url, types: ['RunEnded'] },
          { url: bench.receiver.url, blueprint_id: 'no/id' },
        ],
      ];
      for (const body of bodies) {
        const { errors = [] } = bench.rest.problem(await bench.rest.post('/api/webhooks', body), 422);
        expect(
          errors.map(({ loc }) => loc[0]),
          JSON.stringify(body),
        ).to.deep.equal(['body']);
      }
      expect(bench.rest.read(await bench.rest.get('/api/webhooks'), 200, 'webhook-list.json')).to.deep.equal([]);
    });

    it('names the type that a registration repeats', async () => {
      const body = { url: bench.receiver.url, types: ['RunPaused', 'RunFailed', 'RunPaused'] };
      const { errors } = bench.rest.problem(await bench.rest.post('/api/webhooks', body), 422);
      expect(errors).to.deep.equal([
        { loc: ['body', 'types', 2], msg: 'An earlier item is the same', type: 'duplicate' },
      ]);
    });

    it('delivers nothing after a webhook is deleted', async () => {
      const gone = await register();
      const kept = await register({ url: `${bench.receiver.url}/kept` });
      expect((await bench.rest.send('DELETE', `/api/webhooks/${gone.id}`)).status).to.equal(204);
      await finished();
      await bench.receiver.until((all) => all.length === 1);
      expect(bench.receiver.received.map(({ path }) => path)).to.deep.equal(['/kept']);
      const list = bench.rest.read(await bench.rest.get('/api/webhooks'), 200, 'webhook-list.json');
      expect(list.map(({ id }) => id)).to.deep.equal([kept.id]);
      for (const [method, path] of [
        ['DELETE', ''],
        ['GET', '/deliveries'],
        ['POST', '/rotate'],
        ['POST', `/deliveries/${gone.id}/retry`],
      ] as const) {
        bench.rest.problem(await bench.rest.send(method, `/api/webhooks/${gone.id}${path}`), 404);
      }
    });
  });

  describe('a delivery', () => {
    it('verifies with the standardwebhooks package, and holds the event as recorded', async () => {
      const { secret } = await register();
      const runId = await finished();
      await bench.receiver.until((all) => all.length === 1);
      const [received] = bench.receiver.received;
      const message = verified(received, secret);
      const events = bench.rest.read(
        await bench.rest.get(`/api/runs/${runId}/events`),
        200,
        'run-events-page.json',
      ).events;
      const last = events.at(-1);
      expect(message).to.deep.equal({
        type: 'RunCompleted',
        timestamp: last?.at,
        data: {
          run_id: runId,
          blueprint_id: null,
          seq: last?.seq,
          status: 'completed',
          id: last?.id,
          at: last?.at,
          hash: last?.hash,
          event: last?.data,
        },
      });
      expect(schemaCheck('webhook-message.json')(message)).to.equal(true);
      expect(received?.headers).to.include({ 'webhook-id': last?.id, 'content-type': 'application/json' });
    });

    it('holds the final output of a run with an output schema', async () => {
      const { secret } = await register();
      const begun = await bench.rest.post('/api/councils/run', {
        input_topic: 'Trees',
        output_schema: { type: 'object' },
      });
      const runId = bench.rest.read(begun, 202, 'run-start.json').run_id;
      await bench.receiver.until((all) => all.length === 1);
      const { final_output: output } = await bench.rest.poll(runId);
      expect(output).to.be.an('object');
      expect(verified(bench.receiver.received[0], secret).data.event).to.have.deep.property('finalOutput', output);
    });

    it('holds the status after each event of a run, in the order of the run', async () => {
      const { types } = await register({ types: ALL_TYPES });
      const runId = await finished();
      const events = bench.rest.read(
        await bench.rest.get(`/api/runs/${runId}/events?limit=1000`),
        200,
        'run-events-page.json',
      ).events;
      expect(types).to.deep.equal(ALL_TYPES);
      await bench.receiver.until((all) => all.length === events.length);
      expect(bench.receiver.received.map(({ message }) => message.data.seq)).to.deep.equal(
        events.map(({ seq }) => seq),
      );
      for (const { message } of bench.receiver.received) {
        const { seq, status } = message.data;
        const state = bench.rest.read(
          await bench.rest.get(`/api/runs/${runId}/state?at=${seq}`),
          200,
          'folded-run.json',
        );
        expect([seq, status]).to.deep.equal([seq, state.status]);
      }
    });

    it('holds the status around a pause, and is sent for the pause itself by default', async () => {
      const blueprint = { id: 'guided', name: 'Guided', nodes: [{ id: 'one' }], edges: [] };
      expect((await bench.rest.post('/api/councils/', blueprint)).status).to.equal(201);
      await register({ types: ALL_TYPES });
      await register({ url: `${bench.receiver.url}/default` });
      const reply = await bench.rest.post('/api/councils/guided/run', { input_topic: 'Trees', god_mode: true });
      const runId = bench.rest.read(reply, 202, 'run-start.json').run_id;
      await bench.rest.until(runId, ({ status }) => status === 'paused');
      await bench.rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
      await bench.rest.until(runId, ({ status }) => status === 'completed');
      const of = (path: string): readonly Received[] => bench.receiver.received.filter((each) => each.path === path);
      await bench.receiver.until(
        () => of('/hook').at(-1)?.message.type === 'RunCompleted' && of('/default').length === 2,
      );
      for (const { message } of of('/hook')) {
        const { seq, status } = message.data;
        const state = bench.rest.read(
          await bench.rest.get(`/api/runs/${runId}/state?at=${seq}`),
          200,
          'folded-run.json',
        );
        expect([seq, message.type, status]).to.deep.equal([seq, message.type, state.status]);
      }
      expect(of('/default').map(({ message: { type, data } }) => [type, data.status])).to.deep.equal([
        ['RunPaused', 'paused'],
        ['RunCompleted', 'completed'],
      ]);
    });

    it('is only of events after the registration', async () => {
      await finished();
      await register();
      const later = await finished();
      await bench.receiver.until((all) => all.length === 1);
      expect(bench.receiver.received.map(({ message }) => message.data.run_id)).to.deep.equal([later]);
    });

    it('is only of the types and of the blueprint that were registered', async () => {
      const blueprint = { id: 'mine', name: 'Mine', nodes: [{ id: 'one' }], edges: [] };
      expect((await bench.rest.post('/api/councils/', blueprint)).status).to.equal(201);
      await register({ types: ['RunStarted', 'RunCompleted'], blueprint_id: 'mine' });
      await finished();
      const reply = await bench.rest.post('/api/councils/mine/run', { input_topic: 'Trees' });
      const runId = bench.rest.read(reply, 202, 'run-start.json').run_id;
      await bench.receiver.until((all) => all.length === 2);
      const got = bench.receiver.received.map(({ message: { type, data } }) => [type, data.run_id, data.blueprint_id]);
      expect(got).to.deep.equal([
        ['RunStarted', runId, 'mine'],
        ['RunCompleted', runId, 'mine'],
      ]);
    });

    it('has two signatures for 24 hours after a rotation', async () => {
      const first = await register();
      const reply = await bench.rest.post(`/api/webhooks/${first.id}/rotate`);
      const { secret, ...same } = bench.rest.read(reply, 200, 'new-webhook.json');
      expect({ ...same, secret: first.secret }).to.deep.equal(first);
      await finished();
      await bench.receiver.until((all) => all.length === 1);
      const [both] = bench.receiver.received;
      expect(String(both?.headers['webhook-signature']).split(' ')).to.have.length(2);
      for (const each of [first.secret, secret]) expect(verified(both, each).type).to.equal('RunCompleted');
      bench.system.jump(DAY_MS);
      await finished();
      await bench.receiver.until((all) => all.length === 2);
      const [, one] = bench.receiver.received;
      expect(String(one?.headers['webhook-signature']).split(' ')).to.have.length(1);
    });
  });

  describe('a receiver that fails', () => {
    it('gets the event again after 5 s, 30 s, 2 min, 10 min, 1 h, then hourly up to 3 days, then the next one', async () => {
      bench.receiver.answerBy(answers(500));
      const webhook = await register({ types: ['RunStarted', 'RunCompleted'] });
      const runId = await finished();
      const first = async () => (await deliveries(webhook)).find(({ type }) => type === 'RunStarted');
      const waits: number[] = [];
      for (let attempts = 1; attempts < 100; attempts += 1) {
        await untilTrue(async () => (await first())?.attempts === attempts);
        const delivery = await first();
        if (delivery?.status !== 'waiting') break;
        const waitMs = Date.parse(delivery.next_attempt_at ?? '') - Date.parse(delivery.last_attempt_at ?? '');
        waits.push(waitMs);
        // Just before it is due, nothing is sent.
        bench.system.jump(waitMs - 500);
        expect((await first())?.attempts).to.equal(attempts);
        bench.system.jump(500);
      }
      const wanted = [5_000, 30_000, 120_000, 600_000, HOUR_MS, HOUR_MS, HOUR_MS];
      wanted.forEach((ms, index) => expect(waits[index], String(index)).to.be.within(ms, 1.2 * ms + 1));
      expect(waits.reduce((sum, each) => sum + each)).to.be.within(DAY_MS * 3 - 60_000, DAY_MS * 3 + 60_000);
      bench.receiver.answerBy(answers(200));
      // The first attempt at the next event may have failed before.
      await untilTrue(async () => {
        bench.system.jump(10_000);
        return (await deliveries(webhook)).some(({ status }) => status === 'delivered');
      });
      const shown = (await deliveries(webhook)).map(({ type, status, response_status: answered }) => [
        type,
        status,
        answered,
      ]);
      expect(shown).to.deep.include(['RunStarted', 'failed', 500]);
      expect(new Set(bench.receiver.received.map(({ message }) => message.data.run_id))).to.deep.equal(
        new Set([runId]),
      );
      const ids = bench.receiver.received
        .filter(({ message }) => message.type === 'RunStarted')
        .map(({ headers }) => headers['webhook-id']);
      expect(new Set(ids).size).to.equal(1);
    }).timeout(120_000);
  });

  it('needs the scope admin', async () => {
    const key = await addFirstKey(bench.service.url, ['admin']);
    expect((await restWith(bench.service.url, key).get('/api/webhooks')).status).to.equal(200);
    expect((await fetch(`${bench.service.url}/api/webhooks`)).status).to.equal(401);
  });
});

const ALL_TYPES = [
  ...[
    'RunRequested',
    'RunClaimed',
    'RunReleased',
    'RunStarted',
    'RunResumed',
    'NodeStarted',
    'CallReserved',
    'ToolCalled',
  ],
  ...['NodeCompleted', 'NodeFailed', 'QuorumReached', 'PanelClosed', 'RunPaused', 'VoteCast', 'PauseEscalated'],
  ...['GateDecided', 'RunCompleted', 'RunFailed'],
];

/** The message, verified as a receiver does. */
function verified(received: Received | undefined, secret: string): WebhookMessage {
  const headers = received?.headers as Record<string, string>;
  return new Webhook(secret).verify(received?.body ?? '', headers) as WebhookMessage;
}
