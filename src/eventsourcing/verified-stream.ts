/** Reads a stream back: every event is checked to follow from the one before it. */
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import type { System } from '../system/system.js';
import type { ExportedEvent } from './hash-chain.js';
import { GENESIS_HASH, checkLink } from './hash-chain.js';

/** Whose stream is read. */
export interface VerifiedStream<E extends ExportedEvent> {
  readonly stream: string;
  /** A recorded event as the domain reads it; throws for one that is none of its own. */
  readonly eventOf: (recorded: RecordedEvent) => E;
  /** The domain's error for an event that does not follow. */
  readonly corrupt: (seq: number, cause: unknown) => Error;
}

export interface VerifiedRange {
  readonly sha256: System['sha256'];
  /** Revision of the first event given; default: 0. */
  readonly from?: number | undefined;
  /** Most events; default: all. */
  readonly max?: number | undefined;
}

/** A stream's events in order; a missing stream has none. Throws `corrupt` at the first that does not follow. */
export async function* readVerified<E extends ExportedEvent>(
  log: Pick<EventLog, 'readStream'>,
  { stream, eventOf, corrupt }: VerifiedStream<E>,
  { sha256, from = 0, max }: VerifiedRange,
): AsyncGenerator<E> {
  // The event before the first is read too, for its hash.
  const first = Math.max(0, from - 1);
  let [previous, next] = [first === 0 ? GENESIS_HASH : null, first];
  const range = { from: first, ...(max !== undefined && { max: max + (from - first) }) };
  for await (const recorded of log.readStream(stream, range)) {
    const event = eventOf(recorded);
    try {
      if (event.seq !== next) throw new Error(`event ${event.seq} stands there`);
      if (previous !== null) assertLink(previous, event, sha256);
    } catch (cause) {
      throw corrupt(next, cause);
    }
    previous = event.hash;
    next += 1;
    if (event.seq >= from) yield event;
  }
}

/** @throws {Error} when an event's hash does not follow from the hash before it and its own fields */
export function assertLink(previousHash: string, event: ExportedEvent, sha256: System['sha256']): void {
  if (checkLink(previousHash, event, sha256)) return;
  throw new Error('its hash does not follow from the event before it and its own fields');
}
