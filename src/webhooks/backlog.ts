/**
 * What one webhook has to deliver, on the instance that owns it: the deliveries in its record, and those that are not recorded
 * yet. Results are recorded together with the deliveries before them, in order.
 */
import type { Position } from '../eventlog/port.js';
import type { AppendDeps } from '../eventsourcing/aggregate.js';
import { Sequencer } from '../system/async/tasks.js';
import type { Deliveries, Delivery, RunEventRef } from './deliveries.js';
import { deliveryIn, newDelivery } from './deliveries.js';
import { DeliveryRecord } from './delivery-record.js';

/** Most deliveries that wait in memory for one webhook. Later events stay in the log until half of them have ended. */
const MAX_WAITING = 100;
/** Number of events of runs after which the place in the log is recorded, if no delivery has recorded it. */
const PLACE_EVERY = 50_000;

/** An event of a run that a webhook may deliver. */
export interface OfferedEvent extends RunEventRef {
  readonly id: string;
  readonly type: string;
  readonly position: Position;
}

export class Backlog {
  readonly #record: DeliveryRecord;
  readonly #turns = new Sequencer();
  #place: Position;
  #placeRef: RunEventRef | null;
  /** Deliveries that are not recorded yet. */
  #fresh: readonly Delivery[] = [];
  /** Results that are not recorded yet, by delivery. */
  readonly #results = new Map<string, Delivery>();
  #unrecorded = 0;

  /** @param place position after which it considers events */
  constructor(
    webhookId: string,
    { state, place, deps }: { readonly state: Deliveries; readonly place: Position; readonly deps: AppendDeps },
  ) {
    this.#record = new DeliveryRecord(webhookId, { state, deps });
    this.#place = place;
    this.#placeRef = state.through;
  }

  /** Position up to which all events are considered. */
  get place(): Position {
    return this.#place;
  }

  /** All deliveries to attempt. The deliveries of a run are in the order of its events. */
  get waiting(): readonly Delivery[] {
    return [...this.#record.state.waiting, ...this.#fresh];
  }

  get hasRoom(): boolean {
    return this.#size < MAX_WAITING;
  }

  /** Whether the webhook should read on, if it has stopped for lack of room. */
  get isHalfEmpty(): boolean {
    return this.#size <= MAX_WAITING / 2;
  }

  /** Whether the place should be recorded, because no delivery has recorded it for long. */
  get isPlaceDue(): boolean {
    return this.#unrecorded >= PLACE_EVERY;
  }

  /**
   * Considers the next event of the log. The caller has checked that there is room. Skips an event that has a delivery: it is
   * read again if the place was lost.
   */
  consider({ id, type, position, ...ref }: OfferedEvent, isWanted: boolean): void {
    this.passTo(position);
    this.#placeRef = ref;
    this.#unrecorded += 1;
    if (isWanted && deliveryIn(this.#record.state, id) === undefined)
      this.#fresh = [...this.#fresh, newDelivery(id, type, ref)];
  }

  /** All events up to a position are considered. */
  passTo(position: Position): void {
    if (position > this.#place) this.#place = position;
  }

  /** Records a result, with all results that came while the one before was recorded. @throws {DeliveriesTaken} */
  recordResult(delivery: Delivery, signal: AbortSignal): Promise<void> {
    this.#results.set(delivery.id, delivery);
    return this.#turns.run(async () => {
      const results = new Map(this.#results);
      if (results.size > 0) await this.#recordUpTo(this.#freshUpTo(results), results, signal);
    });
  }

  /** Records the place. @throws {DeliveriesTaken} */
  recordPlace(signal: AbortSignal): Promise<void> {
    this.#unrecorded = 0;
    return this.#turns.run(() => this.#recordUpTo(this.#fresh, new Map(this.#results), signal));
  }

  /** Reads what other instances have appended. @throws {DeliveriesTaken} */
  readOn(): Promise<void> {
    return this.#turns.run(() => this.#record.readOn());
  }

  /** Lets any instance claim the webhook, after the records in flight. @throws {DeliveriesTaken} */
  release(signal: AbortSignal): Promise<void> {
    return this.#turns.run(() => this.#record.release(signal));
  }

  get #size(): number {
    return this.#record.state.waiting.length + this.#fresh.length;
  }

  /** Records results, the first unrecorded deliveries, and the place of the last of these deliveries. */
  async #recordUpTo(
    known: readonly Delivery[],
    results: ReadonlyMap<string, Delivery>,
    signal: AbortSignal,
  ): Promise<void> {
    const isAll = known.length === this.#fresh.length;
    const last = known.at(-1);
    const lastRef = last === undefined ? this.#record.state.through : { runId: last.runId, seq: last.seq };
    const through = isAll ? this.#placeRef : lastRef;
    const unattempted = known.filter(({ id }) => !results.has(id));
    await this.#record.append((state) => {
      const valid = [...results.values()].filter((result) => !isOverridden(result, state));
      return { type: 'DeliveriesChanged', data: { through, changed: [...unattempted, ...valid] } };
    }, signal);
    this.#fresh = this.#fresh.slice(known.length);
    for (const id of results.keys()) this.#results.delete(id);
    this.#unrecorded = 0;
  }

  /** The unrecorded deliveries up to the last one with a result. */
  #freshUpTo(results: ReadonlyMap<string, Delivery>): readonly Delivery[] {
    return this.#fresh.slice(0, this.#fresh.findLastIndex(({ id }) => results.has(id)) + 1);
  }
}

/** Whether a human has asked for another attempt while the one with this result, which failed, was in progress. */
function isOverridden({ id, status, attempts }: Delivery, { waiting }: Deliveries): boolean {
  const recorded = waiting.find((each) => each.id === id);
  return status === 'waiting' && recorded !== undefined && recorded.attempts < attempts - 1;
}
