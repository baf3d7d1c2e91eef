/** The deliveries of a webhook, folded from their stream. */
import type { EventLog } from '../eventlog/port.js';
import type { StreamHead } from '../eventsourcing/aggregate.js';
import { headOf } from '../eventsourcing/aggregate.js';
import type { SealedEvent } from '../eventsourcing/hash-chain.js';
import type { RecordedDelivery } from '../generated/schemas.js';
import type { DeliveryFact } from './events.js';
import { deliveryEventOf, deliveryStream } from './events.js';

/** Most deliveries of each kind that are kept once they have ended. */
const MAX_FAILED = 100;
const MAX_DELIVERED = 20;

export type Delivery = Readonly<RecordedDelivery>;

/** An event of a run. It names a place in any copy of the log, which a position does not. */
export interface RunEventRef {
  readonly runId: string;
  readonly seq: number;
}

export interface Deliveries {
  /** The instance that delivers, or null if none has claimed the webhook yet, or the last one has released it. */
  readonly owner: string | null;
  /** The last event of a run that was considered, or null if there was none since the registration. */
  readonly through: RunEventRef | null;
  /** Deliveries to attempt. The deliveries of a run are in the order of its events. */
  readonly waiting: readonly Delivery[];
  /** The last ones, oldest first. */
  readonly failed: readonly Delivery[];
  readonly delivered: readonly Delivery[];
  readonly head: StreamHead | null;
  /** Events since the last one that holds the whole state. */
  readonly sinceClaim: number;
}

const NO_DELIVERIES: Deliveries = {
  owner: null,
  through: null,
  waiting: [],
  failed: [],
  delivered: [],
  head: null,
  sinceClaim: 0,
};

/** A delivery before its first attempt. */
export function newDelivery(id: string, type: string, { runId, seq }: RunEventRef): Delivery {
  return { id, runId, seq, type, ...UNATTEMPTED };
}

const UNATTEMPTED: Omit<Delivery, 'id' | 'runId' | 'seq' | 'type'> = {
  status: 'waiting',
  attempts: 0,
  firstAttemptAt: null,
  lastAttemptAt: null,
  nextAttemptAt: null,
  responseStatus: null,
  error: null,
};

/** The delivery with this id that waits or is kept, or undefined if there is none. */
export function deliveryIn({ waiting, failed, delivered }: Deliveries, id: string): Delivery | undefined {
  const isIt = (each: Delivery): boolean => each.id === id;
  return waiting.find(isIt) ?? failed.find(isIt) ?? delivered.find(isIt);
}

export function evolveDeliveries(state: Deliveries, event: SealedEvent<DeliveryFact>): Deliveries {
  const sinceClaim = event.type === 'DeliveriesClaimed' ? 0 : state.sinceClaim + 1;
  return { ...afterFact(state, event), head: headOf(event), sinceClaim };
}

/** The state after a fact, without its new head. */
export function afterFact(state: Deliveries, { type, data }: DeliveryFact): Deliveries {
  switch (type) {
    case 'DeliveriesClaimed':
      return { ...state, ...data };
    case 'DeliveriesChanged':
      return data.changed.reduce(withDelivery, { ...state, through: data.through });
    case 'DeliveriesReleased':
      return { ...state, owner: null };
    case 'DeliveryRetried': {
      const found = deliveryIn(state, data.deliveryId);
      if (found === undefined) return state;
      const rest = withoutDelivery(state, found.id);
      // It becomes the first, unless earlier events of its run wait.
      const isBefore = ({ runId, seq }: Delivery): boolean => runId === found.runId && seq < found.seq;
      const place = rest.waiting.findLastIndex(isBefore) + 1;
      return { ...rest, waiting: rest.waiting.toSpliced(place, 0, { ...found, ...UNATTEMPTED }) };
    }
    default:
      return type satisfies never;
  }
}

function withDelivery(state: Deliveries, delivery: Delivery): Deliveries {
  if (delivery.status === 'waiting') {
    const isKnown = state.waiting.some(({ id }) => id === delivery.id);
    const waiting = isKnown
      ? state.waiting.map((each) => (each.id === delivery.id ? delivery : each))
      : [...state.waiting, delivery];
    return { ...state, waiting };
  }
  const rest = withoutDelivery(state, delivery.id);
  return delivery.status === 'failed'
    ? { ...rest, failed: [...rest.failed, delivery].slice(-MAX_FAILED) }
    : { ...rest, delivered: [...rest.delivered, delivery].slice(-MAX_DELIVERED) };
}

function withoutDelivery(state: Deliveries, id: string): Deliveries {
  const others = (list: readonly Delivery[]): readonly Delivery[] => list.filter((each) => each.id !== id);
  const { waiting, failed, delivered } = state;
  return { ...state, waiting: others(waiting), failed: others(failed), delivered: others(delivered) };
}

/** A fact that holds the whole state. */
export function claimedBy(owner: string, { through, waiting, failed, delivered }: Deliveries): DeliveryFact {
  const lists = { waiting: [...waiting], failed: [...failed], delivered: [...delivered] };
  return { type: 'DeliveriesClaimed', data: { owner, through, ...lists } };
}

/** Reads the stream back to the last event that holds the whole state. @throws {WebhookCorrupt | LogUnavailable} */
export async function readDeliveries(log: Pick<EventLog, 'readStream'>, webhookId: string): Promise<Deliveries> {
  const events: SealedEvent<DeliveryFact>[] = [];
  for await (const recorded of log.readStream(deliveryStream(webhookId), { direction: 'backwards' })) {
    const event = deliveryEventOf(recorded);
    events.unshift(event);
    if (event.type === 'DeliveriesClaimed') break;
  }
  return events.reduce(evolveDeliveries, NO_DELIVERIES);
}

/** Reads what follows a state. @throws {WebhookCorrupt | LogUnavailable} */
export async function readDeliveriesOn(
  log: Pick<EventLog, 'readStream'>,
  webhookId: string,
  state: Deliveries,
): Promise<Deliveries> {
  let next = state;
  const range = { from: (state.head?.seq ?? -1) + 1 };
  for await (const recorded of log.readStream(deliveryStream(webhookId), range))
    next = evolveDeliveries(next, deliveryEventOf(recorded));
  return next;
}
