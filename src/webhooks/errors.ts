/** Errors of webhooks. */
import { CouncilError } from '../errors.js';

/** There is no webhook with this id. */
export class WebhookUnknown extends CouncilError<{ webhookId: string }> {
  readonly code = 'webhook.unknown';
  constructor(data: { webhookId: string }) {
    super(`Cannot find webhook "${data.webhookId}"`, data);
  }
}

/** The webhook has no such delivery, or it ended so long ago that it is no longer listed. */
export class DeliveryUnknown extends CouncilError<{ webhookId: string; deliveryId: string }> {
  readonly code = 'webhook.delivery-unknown';
  constructor(data: { webhookId: string; deliveryId: string }) {
    super(`Cannot find delivery "${data.deliveryId}" of webhook "${data.webhookId}"`, data);
  }
}

/** The receiver has answered 410, so nothing is delivered to it. */
export class WebhookIsDisabled extends CouncilError<{ webhookId: string }> {
  readonly code = 'webhook.disabled';
  constructor(data: { webhookId: string }) {
    super(`Cannot deliver by webhook "${data.webhookId}": its receiver answered 410. Register it again`, data);
  }
}

/** The limit of webhooks is reached. */
export class TooManyWebhooks extends CouncilError<{ limit: number }> {
  readonly code = 'webhook.too-many';
  constructor(data: { limit: number }) {
    super(`Cannot register a webhook: the limit of ${data.limit} is reached`, data);
  }
}

/** Other instances changed the stream at every attempt. Nothing is recorded. */
export class WebhooksContended extends CouncilError {
  readonly code = 'webhook.contended';
  constructor(options?: ErrorOptions) {
    super('Cannot change the webhooks: other instances keep changing them', {}, options);
  }
}

/** An event of a webhook cannot be read. */
export class WebhookCorrupt extends CouncilError<{ stream: string; seq: number; reason: string }> {
  readonly code = 'webhook.corrupt';
  constructor(data: { stream: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of a webhook is damaged at seq ${data.seq} of "${data.stream}": ${data.reason}`, data, options);
  }
}
