/**
 * The hash chain over a stream: each event's hash covers the one before it. A reader verifies with an export alone that
 * no event was changed, omitted or moved.
 */
import { canonical } from './canonical-json.js';
import type { EventLog, NewEvent, RecordedEvent, StreamRange } from '../eventlog/port.js';

/** The hash before a stream's first event. */
export const GENESIS_HASH = '0'.repeat(64);

/** Version of the events' data written today; readers upcast older ones (run/events.ts). */
export const SCHEMA_VERSION = 1;

/** Where a stream ends: its last event's place (-1: no event yet) and hash. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

/** An event before it has a number and a date. */
export interface Fact {
  readonly type: string;
  /** A JSON object. */
  readonly data: object;
}

/** An event without its hash: exactly what the hash covers. */
export interface HashedFields extends Fact {
  /** Place in the stream, from 0. */
  readonly seq: number;
  readonly id: string;
  /** ISO 8601 text. */
  readonly at: string;
}

/** An event as the audit endpoints show it. */
export interface ExportedEvent extends HashedFields {
  readonly hash: string;
}

/** Whether the events of a stream have hashes of a chain. A Merkle tree covers those of the ledger (ledger/tree.ts). */
export function isChained(stream: string): boolean {
  return stream !== 'ledger';
}

type Sha256 = (text: string) => string;

/** What an append's events have in common. */
export interface Sealing {
  /** When the facts were decided, ISO 8601. */
  readonly at: string;
  readonly nextId: () => string;
  readonly sha256: Sha256;
  /** The instance that appends them. */
  readonly instanceId: string;
  readonly correlationId: string;
  /** What caused the first event; each later one is caused by the one before it. */
  readonly causationId: string;
}

/** A fact as readers receive it after it is recorded. */
export type SealedEvent<F extends Fact> = F & Pick<ExportedEvent, 'seq' | 'id' | 'at' | 'hash'>;

/** Events ready for one append, and the same events as they will be exported. */
export interface Sealed<F extends Fact> {
  readonly events: readonly NewEvent[];
  readonly exported: readonly SealedEvent<F>[];
}

/**
 * Numbers, dates and hashes facts so that they follow a stream's head.
 *
 * @throws {TypeError} when a fact's data is no JSON
 */
export function sealEvents<F extends Fact>(head: ChainHead, facts: readonly F[], sealing: Sealing): Sealed<F> {
  const { at, nextId, sha256, instanceId, correlationId } = sealing;
  const events: NewEvent[] = [];
  const exported: SealedEvent<F>[] = [];
  let { seq, hash } = head;
  let causationId = sealing.causationId;
  const schemaVersion = String(SCHEMA_VERSION);
  for (const fact of facts) {
    const { type, data } = fact;
    const id = nextId();
    const text = canonical(data);
    seq += 1;
    hash = sha256(hash + hashedText({ at, id, seq, type }, text));
    const metadata = {
      $causationId: causationId,
      hash,
      instanceId,
      schemaVersion,
      $correlationId: correlationId,
      occurredAt: at,
    };
    events.push({ id, type, data: text, metadata });
    const sealed = { seq, id, type, at, data, hash };
    if (isOf(fact, sealed)) exported.push(sealed);
    causationId = id;
  }
  return { events, exported };
}

function isOf<F extends Fact>(fact: F, sealed: ExportedEvent): sealed is ExportedEvent & SealedEvent<F> {
  return sealed.type === fact.type && sealed.data === fact.data;
}

/** canonical({at, data, id, seq, type}), assembled around data that is canonical already. */
function hashedText({ at, id, seq, type }: Omit<HashedFields, 'data'>, canonicalData: string): string {
  return `{"at":${canonical(at)},"data":${canonicalData},"id":${canonical(id)},"seq":${seq},"type":${canonical(type)}}`;
}

/**
 * A recorded event as the audit endpoints show it. If another program wrote it, without the chain's metadata, `at` and
 * `hash` are empty, and its check fails.
 *
 * @throws {SyntaxError | TypeError} when its data is no JSON object
 */
export function exportedOf(recorded: RecordedEvent): ExportedEvent {
  const data: unknown = JSON.parse(recorded.data);
  if (typeof data !== 'object' || data === null) throw new TypeError(`Event ${recorded.id} holds no JSON object`);
  return {
    seq: recorded.revision,
    id: recorded.id,
    type: recorded.type,
    at: recorded.metadata['occurredAt'] ?? '',
    data,
    hash: hashOf(recorded),
  };
}

/** An event's hash, empty if another program wrote the event. */
export function hashOf({ metadata }: RecordedEvent): string {
  return metadata['hash'] ?? '';
}

/** The reason in an error about an event whose hash does not follow. */
export const BROKEN_LINK = 'its hash does not follow from the event before it and its own fields';

/** Whether an event's hash follows from the hash before it and its own fields. */
export function checkLink(previousHash: string, event: ExportedEvent, sha256: Sha256): boolean {
  return sha256(previousHash + hashedText(event, canonical(event.data))) === event.hash;
}

/** @throws {Error} when an event's hash does not follow from the hash before it and its own fields */
export function assertLink(previousHash: string, event: ExportedEvent, sha256: Sha256): void {
  if (!checkLink(previousHash, event, sha256)) throw new Error(BROKEN_LINK);
}

/**
 * Whether the hash of a recorded event follows. Parses its data only if the stored text is not the canonical one: some
 * logs return another text of the same value.
 *
 * @throws {SyntaxError | TypeError} when its data is no JSON object
 */
export function isLinked(previousHash: string, recorded: RecordedEvent, sha256: Sha256): boolean {
  const { id, type, revision: seq, data, metadata } = recorded;
  const fields = { at: metadata['occurredAt'] ?? '', id, seq, type };
  if (sha256(previousHash + hashedText(fields, data)) === hashOf(recorded)) return true;
  return checkLink(previousHash, exportedOf(recorded), sha256);
}

// Reads a stream back, and checks that every event follows from the one before it.

/** The stream of an aggregate. */
export interface VerifiedStream<E extends ExportedEvent> {
  readonly stream: string;
  /** A recorded event as the domain reads it; throws if it is not one of its events. */
  readonly eventOf: (recorded: RecordedEvent) => E;
  /** The domain's error for an event that does not follow. */
  readonly corrupt: (seq: number, cause: unknown) => Error;
}

export interface VerifiedRange {
  readonly sha256: Sha256;
  /** Revision of the first event given; default: 0. */
  readonly from?: number | undefined;
  /** Most events; default: all. */
  readonly max?: number | undefined;
  /** Hash of the event before the first, if the caller has verified it; default: reads that event for its hash. */
  readonly previousHash?: string | undefined;
  /** Ends after the event whose stored data reach this many characters in all; default: no bound. */
  readonly maxChars?: number | undefined;
  /** See `StreamRange`. */
  readonly pageChars?: number | undefined;
}

/** A stream's events in order; a missing stream has none. Throws `corrupt` at the first that does not follow. */
export async function* readVerified<E extends ExportedEvent>(
  log: Pick<EventLog, 'readStream'>,
  { stream, eventOf, corrupt }: VerifiedStream<E>,
  verifiedRange: VerifiedRange,
): AsyncGenerator<E> {
  const { sha256, from = 0, maxChars = Number.POSITIVE_INFINITY } = verifiedRange;
  const { first, hash, range } = readingOf(verifiedRange);
  let [previous, next] = [hash, first];
  let chars = 0;
  for await (const recorded of log.readStream(stream, range)) {
    const event = eventOf(recorded);
    try {
      if (event.seq !== next) throw new Error(`event ${event.seq} is in its place`);
      if (previous !== null && !isLinked(previous, recorded, sha256)) throw new Error(BROKEN_LINK);
    } catch (cause) {
      throw corrupt(next, cause);
    }
    previous = event.hash;
    next += 1;
    if (event.seq < from) continue;
    yield event;
    chars += recorded.data.length;
    if (chars >= maxChars) return;
  }
}

/** The range to read of the stream: with the event before the first, unless its hash is known. */
function readingOf({ from = 0, max, previousHash, pageChars }: VerifiedRange): {
  readonly first: number;
  /** Hash of the event before the range, or null if it is not known. */
  readonly hash: string | null;
  readonly range: StreamRange;
} {
  const first = previousHash === undefined ? Math.max(0, from - 1) : from;
  const page = pageChars === undefined ? {} : { pageChars };
  return {
    first,
    hash: first === 0 ? GENESIS_HASH : (previousHash ?? null),
    range: { from: first, ...(max !== undefined && { max: max + (from - first) }), ...page },
  };
}
