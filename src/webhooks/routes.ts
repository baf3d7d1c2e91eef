/** The routes at /api/webhooks. */
import type { RouterContext } from '@koa/router';
import { brokenRules } from '../api/problems.js';
import { bodyOf } from '../http/body.js';
import { outcomeUnknown, parameterIn } from '../http/route.js';
import type { Door, HttpContext, Route } from '../http/route.js';
import type { NewWebhook, Webhook as WebhookRecord, WebhookDelivery, WebhookRequest } from '../generated/schemas.js';
import { inTime } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import type { Deliveries, Delivery } from './deliveries.js';
import { WEBHOOK_LIST_STREAM, deliveryStream, webhookStream } from './events.js';
import type { Resolve } from './post.js';
import type { DeliveryIds } from './retry-delivery.js';
import { AddressRefused, acceptedAddresses } from './post.js';
import type { Registration, Webhook } from './state.js';
import type { WebhookStore } from './store.js';

/** Delivered unless a registration names others: what a human or a program waits for. */
const DEFAULT_TYPES = ['RunPaused', 'RunCompleted', 'RunFailed'];
/** How long a registration waits for the addresses of its host, in milliseconds. */
const RESOLVE_MS = 3_000;

export interface WebhookDoorDeps {
  readonly store: WebhookStore;
  /** The deliveries of a webhook, as recorded. */
  readonly deliveriesOf: (webhookId: string) => Promise<Deliveries>;
  /** Attempts a delivery again, at once. Resolves with the delivery, which waits. */
  readonly retry: (ids: DeliveryIds, actor: string | null) => Promise<Delivery>;
  readonly resolve: Resolve;
  /** Whether a webhook may have an address. */
  readonly accepts: (address: string) => boolean;
}

export function webhookDoor(deps: WebhookDoorDeps): Door {
  return (http) => [
    listRoute(http, deps),
    registerRoute(http, deps),
    removeRoute(http, deps),
    rotateRoute(http, deps),
    deliveriesRoute(http, deps),
    retryRoute(http, deps),
  ];
}

/** What all routes have in common. */
const WEBHOOKS = { access: 'admin', tag: 'webhooks' } as const;

function listRoute(http: HttpContext, { store }: WebhookDoorDeps): Route {
  return {
    ...WEBHOOKS,
    method: 'GET',
    path: '/api/webhooks',
    name: 'listWebhooks',
    summary: 'Lists all webhooks',
    success: { status: 200, description: 'The webhooks, without their secrets', schema: 'webhook-list.json' },
    async handle() {
      const webhooks = await http.withinDeadline(store.list());
      return { status: 200, body: webhooks.map(webhookRecord) };
    },
  };
}

function registerRoute(http: HttpContext, { store, ...deps }: WebhookDoorDeps): Route {
  const body = bodyOf(http, 'webhook-request.json', { isRequired: true });
  return {
    ...WEBHOOKS,
    method: 'POST',
    path: '/api/webhooks',
    name: 'registerWebhook',
    summary: 'Registers a webhook and returns its secret, which no later answer contains',
    description:
      'The service delivers every later event of the types, as Standard Webhooks 1 describes: at least once, and in order ' +
      'within a run. The address must be public, unless WEBHOOK_ALLOW_PRIVATE is on.',
    body,
    success: { status: 201, description: 'The webhook', schema: 'new-webhook.json' },
    problems: [409],
    async handle(ctx, { actor }) {
      const registration = registrationIn(await body.read(ctx));
      await assertAccepted(new URL(registration.url), { ...deps, system: http.system });
      const registering = store.register(registration, actor);
      const webhook = await http.withinDeadline(registering, outcomeUnknown(WEBHOOK_LIST_STREAM));
      http.log.info({ webhookId: webhook.id, host: new URL(webhook.url).host, actor }, 'webhook registered');
      return { status: 201, body: newWebhook(webhook) };
    },
  };
}

/** @throws {RequestRefused} 422 */
function registrationIn({ url, types, blueprint_id: blueprintId }: WebhookRequest): Registration {
  if (!URL.canParse(url)) throw urlRefused('Input should be a URL');
  if (UNSEEN.test(url)) throw urlRefused('Input should have no control characters');
  const { protocol, username, password } = new URL(url);
  if (!/^https?:$/.test(protocol)) throw urlRefused('Input should be an http or https URL');
  if (username !== '' || password !== '') throw urlRefused('Input should have no user name and no password');
  return { url, types: types ?? DEFAULT_TYPES, blueprintId: blueprintId ?? null };
}

/** Control characters, line separators and marks of direction: a URL parser drops some, and all falsify a list of addresses. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Accepts a name that does not resolve yet. @throws {RequestRefused} 422 for one with a private address */
async function assertAccepted(
  url: URL,
  { system, ...rules }: Pick<WebhookDoorDeps, 'resolve' | 'accepts'> & { readonly system: Pick<System, 'after'> },
): Promise<void> {
  try {
    const late = (): Error => new Error('the name server does not answer');
    await inTime(() => acceptedAddresses(url, rules), { system, maxMs: RESOLVE_MS, late });
  } catch (error) {
    if (error instanceof AddressRefused)
      throw urlRefused(`Input should have a public address, unless WEBHOOK_ALLOW_PRIVATE is on: ${error.message}`);
  }
}

function urlRefused(msg: string): Error {
  return brokenRules([{ loc: ['body', 'url'], msg, type: 'value_error' }]);
}

function removeRoute(http: HttpContext, { store }: WebhookDoorDeps): Route {
  return {
    ...WEBHOOKS,
    method: 'DELETE',
    path: '/api/webhooks/{webhook_id}',
    name: 'deleteWebhook',
    summary: 'Deletes a webhook: nothing is delivered any more',
    success: { status: 204, description: 'Deleted', schema: null },
    async handle(ctx, { actor }) {
      const webhookId = webhookIdIn(ctx);
      await http.withinDeadline(store.remove(webhookId, actor), outcomeUnknown(webhookStream(webhookId)));
      http.log.info({ webhookId, actor }, 'webhook deleted');
      return { status: 204, body: null };
    },
  };
}

function rotateRoute(http: HttpContext, { store }: WebhookDoorDeps): Route {
  return {
    ...WEBHOOKS,
    method: 'POST',
    path: '/api/webhooks/{webhook_id}/rotate',
    name: 'rotateWebhookSecret',
    summary: 'Gives a webhook a new secret and returns it, which no later answer does',
    description: 'For 24 hours each delivery has two signatures: with the new secret and with the previous one.',
    success: { status: 200, description: 'The webhook with its new secret', schema: 'new-webhook.json' },
    async handle(ctx, { actor }) {
      const webhookId = webhookIdIn(ctx);
      const rotating = store.rotate(webhookId, actor);
      const webhook = await http.withinDeadline(rotating, outcomeUnknown(webhookStream(webhookId)));
      http.log.info({ webhookId, host: new URL(webhook.url).host, actor }, 'webhook secret rotated');
      return { status: 200, body: newWebhook(webhook) };
    },
  };
}

function deliveriesRoute(http: HttpContext, { store, deliveriesOf }: WebhookDoorDeps): Route {
  return {
    ...WEBHOOKS,
    method: 'GET',
    path: '/api/webhooks/{webhook_id}/deliveries',
    name: 'listWebhookDeliveries',
    summary: 'Lists the deliveries that wait, and the last that ended',
    description: 'A delivery appears with its first result.',
    success: { status: 200, description: 'The deliveries', schema: 'webhook-delivery-list.json' },
    async handle(ctx) {
      const webhook = await http.withinDeadline(store.find(webhookIdIn(ctx)));
      const { waiting, failed, delivered } = await http.withinDeadline(deliveriesOf(webhook.id));
      const all = [waiting, failed, delivered].flatMap((list) => list.toReversed());
      return { status: 200, body: all.map((each) => deliveryRecord(each, webhook)) };
    },
  };
}

function retryRoute(http: HttpContext, { store, retry }: WebhookDoorDeps): Route {
  return {
    ...WEBHOOKS,
    method: 'POST',
    path: '/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry',
    name: 'retryWebhookDelivery',
    summary: 'Attempts a listed delivery again, at once',
    description: 'Also one that has ended. Its waits and its 3 days begin again.',
    success: { status: 202, description: 'The delivery waits for its attempt', schema: 'webhook-delivery.json' },
    problems: [409],
    async handle(ctx, { actor }) {
      const webhook = await http.withinDeadline(store.find(webhookIdIn(ctx)));
      const ids = { webhookId: webhook.id, deliveryId: parameterIn(ctx, 'delivery_id') };
      const delivery = await http.withinDeadline(retry(ids, actor), outcomeUnknown(deliveryStream(webhook.id)));
      http.log.info({ ...ids, host: new URL(webhook.url).host, actor }, 'webhook delivery retried');
      return { status: 202, body: deliveryRecord(delivery, webhook) };
    },
  };
}

function webhookIdIn(ctx: RouterContext): string {
  return parameterIn(ctx, 'webhook_id');
}

function webhookRecord({ id, url, types, blueprintId, createdAt, isDisabled }: Webhook): WebhookRecord {
  const shown = { blueprint_id: blueprintId, created_at: createdAt, disabled: isDisabled };
  return { id, url, types: [...types], ...shown };
}

function newWebhook({ id, url, types, blueprintId, secret, createdAt }: Webhook): NewWebhook {
  return { id, url, types: [...types], blueprint_id: blueprintId, secret, created_at: createdAt };
}

function deliveryRecord(delivery: Delivery, { isDisabled }: Webhook): WebhookDelivery {
  const { id, runId, seq, type, status, attempts, firstAttemptAt, lastAttemptAt, nextAttemptAt } = delivery;
  const times = { first_attempt_at: firstAttemptAt, last_attempt_at: lastAttemptAt };
  return {
    id,
    run_id: runId,
    seq,
    type,
    status,
    attempts,
    ...times,
    next_attempt_at: isDisabled ? null : nextAttemptAt,
    response_status: delivery.responseStatus,
    error: delivery.error,
  };
}
