/** Asks for another attempt at a delivery. Any instance may ask; the one that owns the webhook attempts it. */
import type { AppendDeps } from '../eventsourcing/handle-command.js';
import { appendFacts, handleCommand } from '../eventsourcing/handle-command.js';
import type { Delivery } from './deliveries.js';
import { afterFact, deliveryIn, readDeliveries } from './deliveries.js';
import { DeliveryUnknown, WebhookIsDisabled, WebhooksContended } from './errors.js';
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
  return await handleCommand({
    read: () => readDeliveries(deps.log, webhookId),
    decide(state) {
      if (deliveryIn(state, deliveryId) === undefined) throw new DeliveryUnknown({ webhookId, deliveryId });
      if (isDisabled) throw new WebhookIsDisabled({ webhookId });
      return fact;
    },
    async append(_, state) {
      const after = { stream: deliveryStream(webhookId), subject: webhookId, head: state.head, facts: [fact] };
      await appendFacts(deps, after, signal);
      const retried = deliveryIn(afterFact(state, fact), deliveryId);
      if (retried === undefined) throw new DeliveryUnknown({ webhookId, deliveryId });
      return retried;
    },
    limit: { conflicts: MAX_CONFLICTS, error: (cause) => new WebhooksContended({ cause }) },
  });
}
