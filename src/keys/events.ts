/** Reads the events of keys, sessions and tickets from their streams and checks each. */
import type { EventValidators } from '../generated/recorded-events.js';
import { keyEvents, sessionEvents, ticketEvents } from '../generated/recorded-events.js';
import type { KeyFacts, SessionFacts, TicketFacts } from '../generated/schemas.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { whyInvalid } from '../eventsourcing/event-data.js';
import type { ExportedEvent, SealedEvent } from '../eventsourcing/hash-chain.js';
import { exportedOf, readVerified } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { KeysCorrupt } from './errors.js';
import { reasonOf } from '../system/untrusted.js';

/** An event of one of the types in `Facts`, before it is recorded. */
type FactOf<Facts> = {
  [T in keyof Facts & string]: { readonly type: T; readonly data: Facts[T] & object };
}[keyof Facts & string];

export type KeyFact = FactOf<KeyFacts>;
export type KeyEvent = SealedEvent<KeyFact>;
export type SessionFact = FactOf<SessionFacts>;
export type TicketFact = FactOf<TicketFacts>;

/** The stream of all keys of a log. */
export const KEYS_STREAM = 'keys-all';

/** Reads the streams of one kind. */
export interface EventReader<F extends ExportedEvent> {
  /** @throws {KeysCorrupt} the event has another type or other data */
  eventOf(recorded: RecordedEvent): F;
  /** The events in order; each is verified to follow the previous one. @throws {KeysCorrupt} */
  read(log: ReadableLog, stream: string, range: EventRange): AsyncGenerator<F>;
}

export interface EventRange {
  readonly sha256: System['sha256'];
  /** Revision of the first event. Default: 0. */
  readonly from?: number;
  /** Largest number of events. Default: all. */
  readonly max?: number;
}

type ReadableLog = Pick<EventLog, 'readStream'>;

export const keyEventReader = readerOf<KeyFacts>(keyEvents);
export const sessionEventReader = readerOf<SessionFacts>(sessionEvents);
export const ticketEventReader = readerOf<TicketFacts>(ticketEvents);

function readerOf<Facts>(validators: EventValidators<Facts>): EventReader<SealedEvent<FactOf<Facts>>> {
  type Event = SealedEvent<FactOf<Facts>>;
  function assertEvent(event: ExportedEvent): asserts event is ExportedEvent & Event {
    const misfit = whyInvalid(event, validators);
    if (misfit !== null) throw new Error(misfit);
  }
  const eventOf = (recorded: RecordedEvent): ExportedEvent & Event => {
    try {
      const event = exportedOf(recorded);
      assertEvent(event);
      return event;
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

function corruption(stream: string, seq: number, cause: unknown): KeysCorrupt {
  return new KeysCorrupt({ stream, seq, reason: reasonOf(cause) }, { cause });
}
