/** Reads the events of keys, sessions, tickets and the log's secret from their streams and checks each. */
import type { EventValidators } from '../generated/recorded-events.js';
import { keyEvents, secretEvents, sessionEvents, ticketEvents } from '../generated/recorded-events.js';
import type { KeyFacts, SecretFacts, SessionFacts, TicketFacts } from '../generated/schemas.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import type { FactOf } from '../eventsourcing/event-data.js';
import { eventReader } from '../eventsourcing/event-data.js';
import type { ExportedEvent, SealedEvent } from '../eventsourcing/hash-chain.js';
import { readVerified } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { KeysCorrupt } from './errors.js';
import { reasonOf } from '../system/untrusted.js';

export type KeyFact = FactOf<KeyFacts>;
export type KeyEvent = SealedEvent<KeyFact>;
export type SessionFact = FactOf<SessionFacts>;
export type TicketFact = FactOf<TicketFacts>;

/** The stream of all keys of a log. */
export const KEYS_STREAM = 'keys-all';

/** The stream of the log's secret (`id-secret.ts`). */
export const SECRET_STREAM = 'secret-ids';

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
export const secretEventReader = readerOf<SecretFacts>(secretEvents);

function readerOf<Facts>(validators: EventValidators<Facts>): EventReader<SealedEvent<FactOf<Facts>>> {
  const eventOf = eventReader(validators, corruption);
  return {
    eventOf,
    read: (log, stream, range) =>
      readVerified(log, { stream, eventOf, corrupt: (seq, cause) => corruption(stream, seq, cause) }, range),
  };
}

function corruption(stream: string, seq: number, cause: unknown): KeysCorrupt {
  return new KeysCorrupt({ stream, seq, reason: reasonOf(cause) }, { cause });
}
