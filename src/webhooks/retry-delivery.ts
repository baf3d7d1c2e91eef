/** Asks for another attempt at a delivery. Any instance may ask; the one that owns the webhook attempts it. */
import type { AggregateChange, AppendDeps } from '../eventsourcing/aggregate.js';
import { changeAggregate } from '../eventsourcing/aggregate.js';
import type { Deliveries, Delivery } from './deliveries.js';
import { afterFact, deliveryIn, readDeliveries } from './deliveries.js';
import { DeliveryUnknown, WebhookIsDisabled, WebhooksContended } from './errors.js';
import type { DeliveryFact } from './events.js';
import { deliveryStream } from './events.js';
import type { Webhook } from './state.js';

/** Conflicts with the instance that delivers before the request fails. */
const MAX_CONFLICTS = 50;

export interface DeliveryIds {
  readonly webhookId: string;
  readonly deliveryId: string;
}

/** @throws {DeliveryUnknown | WebhookIsDisabled | WebhooksContended | LogUnavailable} */
export async function retryDelivery(
  webhook: Pick<Webhook, 'id' | 'isDisabled'>,
  { deliveryId, actor }: Pick<DeliveryIds, 'deliveryId'> & { readonly actor: string | null },
  { deps, signal }: { readonly deps: AppendDeps; readonly signal: AbortSignal },
): Promise<Delivery> {
  const { id: webhookId, isDisabled } = webhook;
  const fact = { type: 'DeliveryRetried', data: { deliveryId, actor } } as const;
  const change: AggregateChange<Deliveries, DeliveryFact> = {
    stream: deliveryStream(webhookId),
    subject: webhookId,
    read: () => readDeliveries(deps.log, webhookId),
    headOf: ({ head }) => head,
    decide(state) {
      if (deliveryIn(state, deliveryId) === undefined) throw new DeliveryUnknown({ webhookId, deliveryId });
      if (isDisabled) throw new WebhookIsDisabled({ webhookId });
      return [fact];
    },
    limit: { conflicts: MAX_CONFLICTS, error: (cause) => new WebhooksContended({ cause }) },
  };
  const { before } = await changeAggregate(deps, change, signal);
  const retried = deliveryIn(afterFact(before, fact), deliveryId);
  if (retried === undefined) throw new DeliveryUnknown({ webhookId, deliveryId });
  return retried;
}
