/** Delivers the events of runs to webhooks. */
import { createHmac } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { Config } from '../config.js';
import type { Door } from '../http/route.js';
import { readDeliveries } from '../webhooks/deliveries.js';
import { Dispatcher } from '../webhooks/dispatcher.js';
import { Messages } from '../webhooks/message.js';
import type { Resolve } from '../webhooks/post.js';
import { httpPost } from '../webhooks/post.js';
import { isPublicAddress } from '../webhooks/public-address.js';
import { webhookDoor } from '../webhooks/routes.js';
import { WebhookStore } from '../webhooks/store.js';
import type { Context } from './context.js';
import type { ContextDeps } from './context-deps.js';

export interface Webhooks {
  readonly door: Door;
  stop(): Promise<void>;
}

/** The addresses of a host by the machine's own rules, such as /etc/hosts. */
const resolveByMachine: Resolve = (hostname) => lookup(hostname, { all: true });

/** Reads the webhooks in the background, and delivers from then on. */
export function startWebhooks(
  context: Context,
  { webhookAllowPrivate }: Pick<Config, 'webhookAllowPrivate'>,
  { system, logger, overrides = {} }: ContextDeps,
): Webhooks {
  const { log, instanceId, corruptRuns, members } = context;
  const { resolveHost: resolve = resolveByMachine } = overrides;
  const onFault = (err: unknown): void => logger.error({ err }, 'webhook: its record cannot be read');
  const store = new WebhookStore({ log, system, instanceId, onFault });
  const accepts = webhookAllowPrivate ? () => true : isPublicAddress;
  const dispatcher = new Dispatcher({
    ...{ log, system, instanceId, store, corruptRuns, members, logger, accepts },
    messages: new Messages({ log, corruptRuns }),
    post: httpPost(resolve),
    hmac: (key, text) => createHmac('sha256', key).update(text).digest('base64'),
  });
  context.projector.subscribe(dispatcher);
  const started = store.load().then(() => dispatcher.start());
  started.catch(onFault);
  return {
    door: webhookDoor({
      ...{ store, resolve, accepts },
      deliveriesOf: (webhookId) => readDeliveries(log, webhookId),
      retry: (ids, actor) => dispatcher.retry(ids, actor),
    }),
    async stop() {
      await Promise.all([dispatcher.stop(), store.stop()]);
    },
  };
}
