/** Reads the events of webhooks and of their deliveries from their streams and checks each. */
import type { EventValidators } from '../generated/recorded-events.js';
import { deliveryEvents, webhookEvents, webhookListEvents } from '../generated/recorded-events.js';
import type { DeliveryFacts, WebhookFacts, WebhookListFacts } from '../generated/schemas.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { categoryOf } from '../eventlog/port.js';
import { whyInvalid } from '../eventsourcing/event-data.js';
import type { ExportedEvent, SealedEvent } from '../eventsourcing/hash-chain.js';
import { exportedOf, readVerified } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { reasonOf } from '../system/untrusted.js';
import { WebhookCorrupt } from './errors.js';

type FactOf<Facts> = {
  [T in keyof Facts & string]: { readonly type: T; readonly data: Facts[T] & object };
}[keyof Facts & string];

export type WebhookFact = FactOf<WebhookFacts>;
export type WebhookListFact = FactOf<WebhookListFacts>;
export type DeliveryFact = FactOf<DeliveryFacts>;

/** An event with its place in the whole log. */
export type Placed<F extends { readonly type: string; readonly data: object }> = SealedEvent<F> & {
  readonly position: Position;
};

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

/** Reads the streams of one kind. */
export interface PlacedReader<E> {
  /** @throws {WebhookCorrupt} the event has another type or other data */
  eventOf(recorded: RecordedEvent): E;
  /** The events in order; each is verified to follow the previous one. @throws {WebhookCorrupt} */
  read(
    log: Pick<EventLog, 'readStream'>,
    stream: string,
    range: { readonly sha256: System['sha256']; readonly from?: number },
  ): AsyncGenerator<E>;
}

export const webhookEventReader = readerOf<WebhookFacts>(webhookEvents);
export const webhookListReader = readerOf<WebhookListFacts>(webhookListEvents);
export const deliveryEventReader = readerOf<DeliveryFacts>(deliveryEvents);

function readerOf<Facts>(validators: EventValidators<Facts>): PlacedReader<Placed<FactOf<Facts>>> {
  type Event = SealedEvent<FactOf<Facts>>;
  function assertEvent(event: ExportedEvent): asserts event is ExportedEvent & Event {
    const misfit = whyInvalid(event, validators);
    if (misfit !== null) throw new Error(misfit);
  }
  const eventOf = (recorded: RecordedEvent): ExportedEvent & Placed<FactOf<Facts>> => {
    try {
      const event = exportedOf(recorded);
      assertEvent(event);
      return { ...event, position: recorded.position };
    } catch (error) {
      throw corruption(recorded.stream, recorded.revision, error);
    }
  };
  return {
    eventOf,
    read: (log, stream, range) =>
      readVerified(log, { stream, eventOf, corrupt: (seq, cause) => corruption(stream, seq, cause) }, range),
  };
}

/** The error for an event of a stream of webhooks that cannot be read. */
export function corruption(stream: string, seq: number, cause: unknown): WebhookCorrupt {
  return new WebhookCorrupt({ stream, seq, reason: reasonOf(cause) }, { cause });
}
