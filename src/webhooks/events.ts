/** Reads the events of webhooks and of their deliveries from their streams and checks each. */
import { deliveryEvents, webhookEvents, webhookListEvents } from '../generated/recorded-events.js';
import type { DeliveryFacts, WebhookFacts, WebhookListFacts } from '../generated/schemas.js';
import { categoryOf } from '../eventlog/port.js';
import type { FactOf } from '../eventsourcing/event-data.js';
import { eventReader } from '../eventsourcing/event-data.js';
import { reasonOf } from '../system/untrusted.js';
import { WebhookCorrupt } from './errors.js';

export type WebhookFact = FactOf<WebhookFacts>;
export type WebhookListFact = FactOf<WebhookListFacts>;
export type DeliveryFact = FactOf<DeliveryFacts>;

/** The stream that names all webhooks, so that a start need not search the log for their streams. */
export const WEBHOOK_LIST_STREAM = 'webhook-all';

/** The stream of a webhook: its registration, changes and end. */
export function webhookStream(webhookId: string): string {
  return `webhook-${webhookId}`;
}

/** The webhook of a stream, or null for another stream. */
export function webhookIdOf(stream: string): string | null {
  return stream.startsWith('webhook-') && stream !== WEBHOOK_LIST_STREAM ? stream.slice('webhook-'.length) : null;
}

/** The stream of a webhook's deliveries. */
export function deliveryStream(webhookId: string): string {
  return `delivery-${webhookId}`;
}

/** Whether a stream is the list of webhooks, or of a webhook or its deliveries. */
export function isOfWebhooks(stream: string): boolean {
  return ['webhook', 'delivery'].includes(categoryOf(stream));
}

/** The webhook whose deliveries a stream records, or null for another stream. */
export function deliveringWebhookOf(stream: string): string | null {
  return stream.startsWith('delivery-') ? stream.slice('delivery-'.length) : null;
}

/** The event of a webhook in a recorded event. @throws {WebhookCorrupt} it has another type or other data */
export const webhookEventOf = eventReader<WebhookFacts>(webhookEvents, corruption);
/** The same for an event of the list of webhooks. */
export const webhookListEventOf = eventReader<WebhookListFacts>(webhookListEvents, corruption);
/** The same for an event of the deliveries of a webhook. */
export const deliveryEventOf = eventReader<DeliveryFacts>(deliveryEvents, corruption);

/** The error for an event of a stream of webhooks that cannot be read. */
export function corruption(stream: string, seq: number, cause: unknown): WebhookCorrupt {
  return new WebhookCorrupt({ stream, seq, reason: reasonOf(cause) }, { cause });
}
