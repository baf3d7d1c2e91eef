/** The webhooks of a service. Every call needs a key with the scope `admin`. */
import type { NewWebhook, Webhook, WebhookDelivery, WebhookRequest } from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';

export interface RegisterOptions extends CallOptions {
  /** Address of the receiver. */
  readonly url: string;
  /** Types of the events. Default: `RunPaused`, `RunCompleted` and `RunFailed`. */
  readonly types?: WebhookRequest['types'] | undefined;
  /** Only events of the runs of this blueprint. Default: all runs. */
  readonly blueprintId?: string | undefined;
}

export class Webhooks {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** All webhooks, the oldest first. */
  list({ signal }: CallOptions = {}): Promise<readonly Webhook[]> {
    return this.#api.json({ path: pathOf('webhooks'), signal });
  }

  /**
   * Registers a webhook. Only this answer contains its secret. The request is sent once: if it throws an UnreachableError,
   * the webhook may exist.
   *
   * @throws {InvalidError | ConflictError | ForbiddenError}
   */
  register({ url, types, blueprintId, signal }: RegisterOptions): Promise<NewWebhook> {
    const body: WebhookRequest = {
      url,
      ...(types !== undefined && { types }),
      ...(blueprintId !== undefined && { blueprint_id: blueprintId }),
    };
    return this.#api.json({ method: 'POST', path: pathOf('webhooks'), body, signal });
  }

  /** @throws {NotFoundError} */
  async remove(id: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('webhooks', id), signal });
  }

  /** Gives a webhook a new secret, which only this answer contains. The previous one also signs for 24 hours. @throws {NotFoundError} */
  rotate(id: string, { signal }: CallOptions = {}): Promise<NewWebhook> {
    return this.#api.json({ method: 'POST', path: pathOf('webhooks', id, 'rotate'), signal });
  }

  /** The deliveries that wait, then the last that failed, then the last that succeeded. @throws {NotFoundError} */
  deliveries(id: string, { signal }: CallOptions = {}): Promise<readonly WebhookDelivery[]> {
    return this.#api.json({ path: pathOf('webhooks', id, 'deliveries'), signal });
  }

  /** Attempts a listed delivery again, at once. @throws {NotFoundError | ConflictError} */
  retry(id: string, deliveryId: string, { signal }: CallOptions = {}): Promise<WebhookDelivery> {
    const path = pathOf('webhooks', id, 'deliveries', deliveryId, 'retry');
    return this.#api.json({ method: 'POST', path, signal });
  }
}
