/** The stream of a webhook's deliveries, on the instance that owns them. */
import type { AggregateChange, AppendDeps } from '../eventsourcing/aggregate.js';
import { changeAggregate } from '../eventsourcing/aggregate.js';
import type { Deliveries } from './deliveries.js';
import { afterFact, claimedBy, evolveDeliveries, readDeliveriesOn } from './deliveries.js';
import type { DeliveryFact } from './events.js';
import { deliveryStream } from './events.js';

/** Events after which the whole state is recorded again. */
const CLAIM_EVERY = 100;

/** Another instance delivers. */
export class DeliveriesTaken extends Error {}

export class DeliveryRecord {
  readonly #webhookId: string;
  readonly #deps: AppendDeps;
  #state: Deliveries;

  constructor(webhookId: string, { state, deps }: { readonly state: Deliveries; readonly deps: AppendDeps }) {
    this.#webhookId = webhookId;
    this.#deps = deps;
    this.#state = state;
  }

  /** The state after the last known event. */
  get state(): Deliveries {
    return this.#state;
  }

  /**
   * Appends a change after what other instances have appended. One call at a time.
   *
   * @param decide returns the change of a state; called again if another instance has appended meanwhile
   * @throws {DeliveriesTaken}
   */
  append(decide: (state: Deliveries) => DeliveryFact, signal: AbortSignal): Promise<void> {
    const { instanceId } = this.#deps;
    return this.#append(() => {
      const changed = decide(this.#state);
      const { sinceClaim } = this.#state;
      return sinceClaim < CLAIM_EVERY ? changed : claimedBy(instanceId, afterFact(this.#state, changed));
    }, signal);
  }

  /** Lets any instance claim the webhook. @throws {DeliveriesTaken} */
  release(signal: AbortSignal): Promise<void> {
    return this.#append(() => ({ type: 'DeliveriesReleased', data: {} }), signal);
  }

  /** Reads what other instances have appended. @throws {DeliveriesTaken} */
  async readOn(): Promise<void> {
    this.#state = await readDeliveriesOn(this.#deps.log, this.#webhookId, this.#state);
    if (this.#state.owner !== this.#deps.instanceId) throw new DeliveriesTaken();
  }

  async #append(decide: () => DeliveryFact, signal: AbortSignal): Promise<void> {
    const change: AggregateChange<void, DeliveryFact> = {
      stream: deliveryStream(this.#webhookId),
      subject: this.#webhookId,
      read: async (conflict) => (conflict === null ? undefined : await this.readOn()),
      headOf: () => this.#state.head,
      decide: () => [decide()],
    };
    const { recorded } = await changeAggregate(this.#deps, change, signal);
    this.#state = recorded.reduce(evolveDeliveries, this.#state);
  }
}
