/** Delivers the events of runs to webhooks. */
import { createHmac } from 'node:crypto';
import { Resolver, lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Config } from '../config.js';
import type { Door } from '../http/route.js';
import { hostNameOf, isLoopbackName } from '../system/addresses.js';
import { fieldOf } from '../system/untrusted.js';
import { readDeliveries } from '../webhooks/deliveries.js';
import type { WebhookFigures } from '../webhooks/dispatcher.js';
import { Dispatcher } from '../webhooks/dispatcher.js';
import { Messages } from '../webhooks/message.js';
import type { Resolve } from '../webhooks/post.js';
import { httpPost } from '../webhooks/post.js';
import { isPublicAddress } from '../webhooks/public-address.js';
import { Reports } from '../webhooks/reports.js';
import { webhookDoor } from '../webhooks/routes.js';
import { WebhookStore } from '../webhooks/store.js';
import type { Context } from './context.js';
import type { ContextDeps } from './context-deps.js';

export interface Webhooks {
  readonly door: Door;
  figures(): WebhookFigures;
  /** Delivers no texts of an erased run from memory. */
  forget(runId: string): void;
  stop(): Promise<void>;
}

/** How long a name server may take, in milliseconds, and the number of requests to it. */
const NAME_SERVER = { timeout: 2_000, tries: 2 };

/**
 * Asks the name servers. A name that they do not know may be in /etc/hosts, so the system looks it up, in a thread that Node
 * also needs for files. After a timeout the system does not look it up, because a name server that hangs would hold the thread.
 */
function resolver(): Resolve {
  const servers = new Resolver(NAME_SERVER);
  return async (hostname) => {
    if (isIP(hostname) !== 0 || isLoopbackName(hostNameOf(hostname) ?? hostname))
      return await lookup(hostname, { all: true });
    const [four, six] = await Promise.allSettled([servers.resolve4(hostname), servers.resolve6(hostname)]);
    const found = [
      ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
      ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
    ];
    if (found.length > 0) return found;
    for (const each of [four, six]) if (each.status === 'rejected' && isTimeout(each.reason)) throw each.reason;
    return await lookup(hostname, { all: true });
  };
}

function isTimeout(error: unknown): boolean {
  return fieldOf(error, 'code') === 'ETIMEOUT';
}

/** Reads the webhooks in the background, and delivers from then on. */
export function startWebhooks(
  context: Context,
  { webhookAllowPrivate }: Pick<Config, 'webhookAllowPrivate'>,
  { system, logger, overrides = {} }: ContextDeps,
): Webhooks {
  const { log, instanceId, corruptRuns, members } = context;
  const { resolveHost: resolve = resolver() } = overrides;
  const reports = new Reports(logger);
  const onFault = (err: unknown): void => reports.failed('read', err);
  const store = new WebhookStore({ log, system, instanceId, onFault });
  const accepts = webhookAllowPrivate ? () => true : isPublicAddress;
  const messages = new Messages({ log, corruptRuns });
  const dispatcher = new Dispatcher({
    log,
    system,
    instanceId,
    store,
    corruptRuns,
    members,
    reports,
    accepts,
    messages,
    post: httpPost({ resolve, after: system.after }),
    hmac: (key, text) => createHmac('sha256', key).update(text).digest('base64'),
  });
  context.projector.subscribe(dispatcher);
  let isStopped = false;
  const started = store.load().then(() => dispatcher.start());
  started.catch((error: unknown) => isStopped || onFault(error));
  return {
    door: webhookDoor({
      store,
      resolve,
      accepts,
      deliveriesOf: (webhookId) => readDeliveries(log, webhookId),
      retry: (ids, actor) => dispatcher.retry(ids, actor),
    }),
    figures: () => dispatcher.figures(),
    forget: (runId) => messages.forget(runId),
    async stop() {
      isStopped = true;
      await Promise.all([dispatcher.stop(), store.stop()]);
    },
  };
}
