import { expect } from 'chai';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { instantModel } from '../support/instant-model.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { ALL_SCOPES, addFirstKey, bearer, restWith } from '../support/keys.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import type { Receiver } from '../support/webhook-receiver.js';
import { startReceiver } from '../support/webhook-receiver.js';
import { soakIt } from '../support/soak.js';

onEmbeddedLog(() => {
  describe('The record of webhooks', () => {
    let bench: CouncilBench;
    let receiver: Receiver;
    let services: RunningService[];

    beforeEach(async () => {
      bench = councilBench();
      receiver = await startReceiver();
      services = [];
    });
    afterEach(async () => {
      for (const service of services) await service.stop();
      await receiver.stop();
      await bench.clear();
    });

    const serve = async (settings: ServiceOverrides): Promise<RunningService> => {
      const service = await startService({
        model: instantModel(),
        webhookAllowPrivate: true,
        eventStore: null,
        ...settings,
      });
      services.push(service);
      return service;
    };

    /** Lets a service on a folder deliver one run. Returns the secret of the webhook and the run. */
    async function delivered(dataDir: string): Promise<{ readonly secret: string; readonly runId: string }> {
      const service = await serve({ dataDir });
      const rest = restClient(service.url);
      const { id, secret } = rest.read(
        await rest.post('/api/webhooks', { url: receiver.url }),
        201,
        'new-webhook.json',
      );
      const runId = await rest.start();
      await untilTrue(async () => {
        const list = await rest.get(`/api/webhooks/${id}/deliveries`);
        return rest.read(list, 200, 'webhook-delivery-list.json').some(({ status }) => status === 'delivered');
      });
      await service.stop();
      return { secret, runId };
    }

    /** Expects that a service delivers the next run to the webhook, and does not repeat the previous run. */
    async function expectDelivers(settings: ServiceOverrides): Promise<void> {
      const before = receiver.received.length;
      const service = await serve(settings);
      const rest = restClient(service.url);
      const runId = await rest.start();
      await receiver.until((all) => all.length > before);
      expect(receiver.received.slice(before).map(({ message }) => message.data.run_id)).to.deep.equal([runId]);
      await service.stop();
    }

    it('shows a secret in no answer, feed, export or log line', async () => {
      const { secret, runId } = await delivered(bench.dataDir);
      const service = await serve({ dataDir: bench.dataDir });
      const key = await addFirstKey(service.url, ALL_SCOPES);
      const rest = restWith(service.url, key);
      const hidden = secret.slice('whsec_'.length);
      const [webhook] = rest.read(await rest.get('/api/webhooks'), 200, 'webhook-list.json');
      for (const path of [
        ...[
          '/api/runs/',
          '/api/councils/',
          '/api/approvals',
          '/api/keys',
          '/api/keys/events',
          '/api/documents',
          '/metrics',
        ],
        ...['', '/events?limit=1000', '/state', '/verify', '/stream', '/genealogy'].map(
          (part) => `/api/runs/${runId}${part}`,
        ),
        ...['/api/webhooks', `/api/webhooks/${webhook?.id ?? ''}/deliveries`],
      ]) {
        const { status, text } = await rest.get(path);
        expect([path, status]).to.deep.equal([path, 200]);
        expect(text, path).not.to.include(hidden);
      }
      const feed = await fetch(`${service.url}/api/feed`, { headers: bearer(key) });
      const end = await rest.start();
      let text = '';
      for await (const chunk of feed.body ?? []) {
        text += Buffer.from(chunk).toString();
        if (text.includes(end) && text.includes('event: RunCompleted')) break;
      }
      expect(text).not.to.match(/Webhook|Deliver/);
      expect(text).not.to.include(hidden);
      await service.stop();
      expect(JSON.stringify([services.map(({ lines, faults }) => [lines, faults])])).not.to.include(hidden);
      expect((await bench.council(['export', runId])).stdout).not.to.include(hidden);
      const views = readdirSync(join(bench.dataDir, 'views')).map((file) =>
        readFileSync(join(bench.dataDir, 'views', file)),
      );
      expect(views.some((bytes) => bytes.includes(hidden))).to.equal(false);
    });

    it('is intact for `council check`, and a restart delivers the next run and repeats nothing', async () => {
      await delivered(bench.dataDir);
      const checked = await bench.council(['check']);
      expect([checked.code, checked.stderr]).to.deep.equal([0, '']);
      expect(checked.stdout).to.include('The log is intact');
      await expectDelivers({ dataDir: bench.dataDir });
    });

    soakIt('survives `council salvage`', async () => {
      await delivered(bench.dataDir);
      const target = join(bench.path, 'salvaged');
      const salvaged = await bench.council(['salvage', '--to', target]);
      expect([salvaged.code, salvaged.stderr]).to.deep.equal([0, '']);
      expect(salvaged.stdout).to.include('; 0 omitted');
      await expectDelivers({ dataDir: target });
    });

    soakIt('survives `council migrate` to a server, where places in the log differ', async () => {
      const server: FakeEventStore = await fakeEventStore(join(bench.path, 'server.sqlite'));
      try {
        await delivered(bench.dataDir);
        const env = { EVENTSTORE_URL: server.url, EVENTSTORE_PREFIX: 'moved' };
        const migrated = await bench.council(['migrate'], { env });
        expect(migrated.code, migrated.stderr).to.equal(0);
        await expectDelivers({
          dataDir: join(bench.path, 'new'),
          eventStore: { url: server.url, prefix: 'moved' },
          cluster: { heartbeatMs: 100, suspectAfterMs: 1_000 },
        });
      } finally {
        await server.stop();
      }
    });
  });
});
