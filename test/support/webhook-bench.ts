/** For each test of a block: a service, a receiver of its webhooks, and a clock that the test can move on. */
import type { NewWebhook, WebhookDelivery } from '../../src/generated/schemas.js';
import { present } from '../../src/system/element.js';
import { instantModel } from './instant-model.js';
import type { JumpingSystem } from './jumping-system.js';
import { jumpingSystem } from './jumping-system.js';
import type { RestClient } from './rest-client.js';
import { restClient } from './rest-client.js';
import type { RunningService, ServiceOverrides } from './running-service.js';
import { startService } from './running-service.js';
import { untilTrue } from './until-true.js';
import type { Receiver } from './webhook-receiver.js';
import { startReceiver } from './webhook-receiver.js';

export interface WebhookBench {
  readonly system: JumpingSystem;
  readonly service: RunningService;
  readonly rest: RestClient;
  readonly receiver: Receiver;
  /** Registers an address. */
  register(url: string, body?: object): Promise<NewWebhook>;
  deliveries(webhook: Pick<NewWebhook, 'id'>): Promise<readonly WebhookDelivery[]>;
  /** The first listed delivery that meets a condition, once there is one. */
  delivery(webhook: NewWebhook, isWanted: (each: WebhookDelivery) => boolean): Promise<WebhookDelivery>;
  /** Attempts a delivery again. */
  retry(webhook: NewWebhook, delivery: Pick<WebhookDelivery, 'id'>): Promise<WebhookDelivery>;
  /** The id of a run that has been completed. */
  finished(): Promise<string>;
}

/** @param settings in place of those of a service that accepts private addresses */
export function webhookBench(settings: ServiceOverrides = {}): WebhookBench {
  let parts: Pick<WebhookBench, 'system' | 'service' | 'rest' | 'receiver'> | null = null;
  const now = () => present(parts, 'service');

  beforeEach(async () => {
    const [system, receiver] = [jumpingSystem(), await startReceiver()];
    const service = await startService({ system, model: instantModel(), webhookAllowPrivate: true, ...settings });
    parts = { system, receiver, service, rest: restClient(service.url) };
  });
  afterEach(async () => {
    await now().service.stop();
    await now().receiver.stop();
  });

  const deliveries: WebhookBench['deliveries'] = async ({ id }) => {
    const { rest } = now();
    return rest.read(await rest.get(`/api/webhooks/${id}/deliveries`), 200, 'webhook-delivery-list.json');
  };
  return {
    get system() {
      return now().system;
    },
    get service() {
      return now().service;
    },
    get rest() {
      return now().rest;
    },
    get receiver() {
      return now().receiver;
    },
    async register(url, body = {}) {
      const { rest } = now();
      return rest.read(await rest.post('/api/webhooks', { url, ...body }), 201, 'new-webhook.json');
    },
    deliveries,
    async delivery(webhook, isWanted) {
      let found: WebhookDelivery | undefined;
      await untilTrue(async () => (found = (await deliveries(webhook)).find(isWanted)) !== undefined);
      return present(found, 'delivery');
    },
    async retry(webhook, { id }) {
      const { rest } = now();
      const reply = await rest.post(`/api/webhooks/${webhook.id}/deliveries/${id}/retry`);
      return rest.read(reply, 202, 'webhook-delivery.json');
    },
    async finished() {
      const { rest } = now();
      const runId = await rest.start();
      await rest.until(runId, ({ status }) => status === 'completed');
      return runId;
    },
  };
}
