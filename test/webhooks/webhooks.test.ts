import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import type { NewWebhook, WebhookDeliveryList, WebhookMessage } from '../../src/generated/schemas.js';
import { instantModel } from '../support/instant-model.js';
import type { JumpingSystem } from '../support/jumping-system.js';
import { jumpingSystem } from '../support/jumping-system.js';
import { addFirstKey, restWith } from '../support/keys.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { schemaCheck } from '../support/schema-check.js';
import { untilTrue } from '../support/until-true.js';
import type { Received, Receiver } from '../support/webhook-receiver.js';
import { answers, startReceiver } from '../support/webhook-receiver.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('Webhooks', () => {
  let system: JumpingSystem;
  let service: RunningService;
  let rest: RestClient;
  let receiver: Receiver;

  beforeEach(async () => {
    system = jumpingSystem();
    receiver = await startReceiver();
    service = await startService({ system, model: instantModel(), webhookAllowPrivate: true });
    rest = restClient(service.url);
  });
  afterEach(async () => {
    await service.stop();
    await receiver.stop();
  });

  const register = async (body: object = {}): Promise<NewWebhook> =>
    rest.read(await rest.post('/api/webhooks', { url: `${receiver.url}/hook`, ...body }), 201, 'new-webhook.json');
  const deliveries = async ({ id }: { readonly id: string }): Promise<WebhookDeliveryList> =>
    rest.read(await rest.get(`/api/webhooks/${id}/deliveries`), 200, 'webhook-delivery-list.json');
  const finished = async (): Promise<string> => {
    const runId = await rest.start();
    await rest.until(runId, ({ status }) => status === 'completed');
    return runId;
  };

  describe('registration', () => {
    it('returns the secret once, and never shows it again', async () => {
      const { secret, ...shown } = await register();
      expect(secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(shown).to.deep.include({
        url: `${receiver.url}/hook`,
        types: ['RunPaused', 'RunCompleted', 'RunFailed'],
        blueprint_id: null,
      });
      const list = await rest.get('/api/webhooks');
      expect(rest.read(list, 200, 'webhook-list.json')).to.deep.equal([{ ...shown, disabled: false }]);
      await finished();
      await receiver.until((all) => all.length === 1);
      for (const path of ['/api/webhooks', `/api/webhooks/${shown.id}/deliveries`])
        expect((await rest.get(path)).text).not.to.include(secret.slice('whsec_'.length));
    });

    it('refuses what it cannot deliver to, and names the field', async () => {
      const urls = [
        '',
        'nothing',
        'ftp://example.com/',
        'http://ann:secret@example.com/',
        `http://a.b/${'c'.repeat(2048)}`,
      ];
      const bodies = [
        ...[{}, ...urls.map((url) => ({ url })), { url: receiver.url, types: [] }],
        ...[
          { url: receiver.url, types: ['RunEnded'] },
          { url: receiver.url, blueprint_id: 'no/id' },
        ],
      ];
      for (const body of bodies) {
        const { errors = [] } = rest.problem(await rest.post('/api/webhooks', body), 422);
        expect(
          errors.map(({ loc }) => loc[0]),
          JSON.stringify(body),
        ).to.deep.equal(['body']);
      }
      expect(rest.read(await rest.get('/api/webhooks'), 200, 'webhook-list.json')).to.deep.equal([]);
    });

    it('names the type that a registration repeats', async () => {
      const body = { url: receiver.url, types: ['RunPaused', 'RunFailed', 'RunPaused'] };
      const { errors } = rest.problem(await rest.post('/api/webhooks', body), 422);
      expect(errors).to.deep.equal([
        { loc: ['body', 'types', 2], msg: 'An earlier item is the same', type: 'duplicate' },
      ]);
    });

    it('delivers nothing after a webhook is deleted', async () => {
      const gone = await register();
      const kept = await register({ url: `${receiver.url}/kept` });
      expect((await rest.send('DELETE', `/api/webhooks/${gone.id}`)).status).to.equal(204);
      await finished();
      await receiver.until((all) => all.length === 1);
      expect(receiver.received.map(({ path }) => path)).to.deep.equal(['/kept']);
      const list = rest.read(await rest.get('/api/webhooks'), 200, 'webhook-list.json');
      expect(list.map(({ id }) => id)).to.deep.equal([kept.id]);
      for (const [method, path] of [
        ['DELETE', ''],
        ['GET', '/deliveries'],
        ['POST', '/rotate'],
        ['POST', `/deliveries/${gone.id}/retry`],
      ] as const) {
        rest.problem(await rest.send(method, `/api/webhooks/${gone.id}${path}`), 404);
      }
    });
  });

  describe('a delivery', () => {
    it('verifies with the standardwebhooks package, and holds the event as recorded', async () => {
      const { secret } = await register();
      const runId = await finished();
      await receiver.until((all) => all.length === 1);
      const [received] = receiver.received;
      const message = verified(received, secret);
      const events = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json').events;
      const last = events.at(-1);
      expect(message).to.deep.equal({
        type: 'RunCompleted',
        timestamp: last?.at,
        data: {
          ...{ run_id: runId, blueprint_id: null, seq: last?.seq, status: 'completed' },
          ...{ id: last?.id, at: last?.at, hash: last?.hash, event: last?.data },
        },
      });
      expect(schemaCheck('webhook-message.json')(message)).to.equal(true);
      expect(received?.headers).to.include({ 'webhook-id': last?.id, 'content-type': 'application/json' });
    });

    it('holds the status after each event of a run, in the order of the run', async () => {
      const { types } = await register({ types: ALL_TYPES });
      const runId = await finished();
      const events = rest.read(
        await rest.get(`/api/runs/${runId}/events?limit=1000`),
        200,
        'run-events-page.json',
      ).events;
      expect(types).to.deep.equal(ALL_TYPES);
      await receiver.until((all) => all.length === events.length);
      expect(receiver.received.map(({ message }) => message.data.seq)).to.deep.equal(events.map(({ seq }) => seq));
      for (const { message } of receiver.received) {
        const { seq, status } = message.data;
        const state = rest.read(await rest.get(`/api/runs/${runId}/state?at=${seq}`), 200, 'folded-run.json');
        expect([seq, status]).to.deep.equal([seq, state.status]);
      }
    });

    it('holds the status around a pause, and is sent for the pause itself by default', async () => {
      const blueprint = { id: 'guided', name: 'Guided', nodes: [{ id: 'one' }], edges: [] };
      expect((await rest.post('/api/councils/', blueprint)).status).to.equal(201);
      await register({ types: ALL_TYPES });
      await register({ url: `${receiver.url}/default` });
      const reply = await rest.post('/api/councils/guided/run', { input_topic: 'Trees', god_mode: true });
      const runId = rest.read(reply, 202, 'run-start.json').run_id;
      await rest.until(runId, ({ status }) => status === 'paused');
      await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
      await rest.until(runId, ({ status }) => status === 'completed');
      const of = (path: string): readonly Received[] => receiver.received.filter((each) => each.path === path);
      await receiver.until(() => of('/hook').at(-1)?.message.type === 'RunCompleted' && of('/default').length === 2);
      for (const { message } of of('/hook')) {
        const { seq, status } = message.data;
        const state = rest.read(await rest.get(`/api/runs/${runId}/state?at=${seq}`), 200, 'folded-run.json');
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
      await receiver.until((all) => all.length === 1);
      expect(receiver.received.map(({ message }) => message.data.run_id)).to.deep.equal([later]);
    });

    it('is only of the types and of the blueprint that were registered', async () => {
      const blueprint = { id: 'mine', name: 'Mine', nodes: [{ id: 'one' }], edges: [] };
      expect((await rest.post('/api/councils/', blueprint)).status).to.equal(201);
      await register({ types: ['RunStarted', 'RunCompleted'], blueprint_id: 'mine' });
      await finished();
      const reply = await rest.post('/api/councils/mine/run', { input_topic: 'Trees' });
      const runId = rest.read(reply, 202, 'run-start.json').run_id;
      await receiver.until((all) => all.length === 2);
      const got = receiver.received.map(({ message: { type, data } }) => [type, data.run_id, data.blueprint_id]);
      expect(got).to.deep.equal([
        ['RunStarted', runId, 'mine'],
        ['RunCompleted', runId, 'mine'],
      ]);
    });

    it('has two signatures for 24 hours after a rotation', async () => {
      const first = await register();
      const reply = await rest.post(`/api/webhooks/${first.id}/rotate`);
      const { secret, ...same } = rest.read(reply, 200, 'new-webhook.json');
      expect({ ...same, secret: first.secret }).to.deep.equal(first);
      await finished();
      await receiver.until((all) => all.length === 1);
      const [both] = receiver.received;
      expect(String(both?.headers['webhook-signature']).split(' ')).to.have.length(2);
      for (const each of [first.secret, secret]) expect(verified(both, each).type).to.equal('RunCompleted');
      system.jump(DAY_MS);
      await finished();
      await receiver.until((all) => all.length === 2);
      const [, one] = receiver.received;
      expect(String(one?.headers['webhook-signature']).split(' ')).to.have.length(1);
    });
  });

  describe('a receiver that fails', () => {
    it('gets the event again after 5 s, 30 s, 2 min, 10 min, 1 h, then hourly up to 3 days, then the next one', async () => {
      receiver.answerBy(answers(500));
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
        system.jump(waitMs - 500);
        expect((await first())?.attempts).to.equal(attempts);
        system.jump(500);
      }
      const wanted = [5_000, 30_000, 120_000, 600_000, HOUR_MS, HOUR_MS, HOUR_MS];
      wanted.forEach((ms, index) => expect(waits[index], String(index)).to.be.within(ms, 1.2 * ms + 1));
      expect(waits.reduce((sum, each) => sum + each)).to.be.within(DAY_MS * 3 - 60_000, DAY_MS * 3 + 60_000);
      receiver.answerBy(answers(200));
      // The first attempt at the next event may have failed before.
      await untilTrue(async () => {
        system.jump(10_000);
        return (await deliveries(webhook)).some(({ status }) => status === 'delivered');
      });
      const shown = (await deliveries(webhook)).map(({ type, status, response_status: answered }) => [
        type,
        status,
        answered,
      ]);
      expect(shown).to.deep.include(['RunStarted', 'failed', 500]);
      expect(new Set(receiver.received.map(({ message }) => message.data.run_id))).to.deep.equal(new Set([runId]));
      const ids = receiver.received
        .filter(({ message }) => message.type === 'RunStarted')
        .map(({ headers }) => headers['webhook-id']);
      expect(new Set(ids).size).to.equal(1);
    }).timeout(120_000);
  });

  it('needs the scope admin', async () => {
    const key = await addFirstKey(service.url, ['admin']);
    expect((await restWith(service.url, key).get('/api/webhooks')).status).to.equal(200);
    expect((await fetch(`${service.url}/api/webhooks`)).status).to.equal(401);
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
