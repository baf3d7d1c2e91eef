/** Copies a log into another, event by event in the global order, and verifies the copy. */
import { CouncilError } from '../errors.js';
import { appendWithRetry, MAX_APPEND_BYTES, lastEvent } from '../eventlog/port.js';
import type { RetryPolicy, EventLog, NewEvent, RecordedEvent } from '../eventlog/port.js';
import { canonical } from './canonical-json.js';
import { checkLink, exportedOf, GENESIS_HASH, hashOf, isChained } from './hash-chain.js';

export interface CopyOptions extends RetryPolicy {
  /** SHA-256 of a text's UTF-8 as lower-case hex. */
  readonly sha256: (text: string) => string;
  /** Whether to skip a stream, such as heartbeats. */
  readonly isSkipped?: (stream: string) => boolean;
  /** Called about every thousand events with their number so far. */
  readonly onProgress?: (events: number) => void;
}

export interface Copied {
  /** Events of the log, without skipped streams. */
  readonly events: number;
  readonly streams: number;
  /** Events that an earlier, interrupted copy has written. */
  readonly found: number;
}

/** A log cannot be copied, or the copy differs. */
export class CopyRefused extends CouncilError<{ stream: string; revision: number; reason: string }> {
  readonly code = 'log.copy-refused';
  constructor(data: { stream: string; revision: number; reason: string }) {
    super(`Cannot copy the log: at revision ${data.revision} of stream "${data.stream}" ${data.reason}`, data);
  }
}

const PROGRESS_EVERY = 1_000;
/** Half the limit, because an adapter may add to an event. */
const BATCH_BYTES = MAX_APPEND_BYTES / 2;

/** The last event of a stream: how far it is copied, and what the copy must end with. */
interface StreamEnd {
  readonly revision: number;
  readonly id: string;
  readonly hash: string;
}

/**
 * Copies every stream with ids, types, data, metadata and order. Continues an interrupted copy. Reads the whole copy back
 * and verifies its hash chains.
 *
 * @throws {CopyRefused} if the target holds other events, or the source or the copy is corrupt
 */
export async function copyLog(from: EventLog, to: EventLog, options: CopyOptions): Promise<Copied> {
  const ends = new Map<string, StreamEnd>();
  const there = new Map<string, StreamEnd | null>();
  let [events, found] = [0, 0];
  for await (const batch of batchesOf(from, options)) {
    const [first] = batch;
    if (first === undefined) continue;
    options.signal.throwIfAborted();
    const { stream } = first;
    if (!there.has(stream)) there.set(stream, await endOf(to, stream));
    const missing = missingOf(batch, there.get(stream) ?? null);
    if (missing.length > 0) await append(to, missing, options);
    for (const event of batch) ends.set(stream, streamEndAfter(ends.get(stream), event, options.sha256));
    found += batch.length - missing.length;
    const before = events;
    events += batch.length;
    if (Math.floor(events / PROGRESS_EVERY) > Math.floor(before / PROGRESS_EVERY)) options.onProgress?.(events);
  }
  await verifyCopy(to, ends, options);
  return { events, streams: ends.size, found };
}

/** Consecutive events of one stream, as many as fit one append. */
async function* batchesOf(from: EventLog, { isSkipped }: CopyOptions): AsyncIterable<readonly RecordedEvent[]> {
  let batch: RecordedEvent[] = [];
  let bytes = 0;
  for await (const event of from.readAll(null)) {
    if (isSkipped?.(event.stream) === true) continue;
    const size = sizeOf(event);
    if (batch.length > 0 && (batch[0]?.stream !== event.stream || bytes + size > BATCH_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(event);
    bytes += size;
  }
  yield batch;
}

/** An upper bound: UTF-8 takes at most three bytes for a UTF-16 unit. */
function sizeOf({ type, data, metadata }: RecordedEvent): number {
  return 3 * (type.length + data.length + JSON.stringify(metadata).length);
}

async function endOf(log: EventLog, stream: string): Promise<StreamEnd | null> {
  const event = await lastEvent(log, stream);
  return event && { revision: event.revision, id: event.id, hash: hashOf(event) };
}

/** The events of a batch that are not copied yet. */
function missingOf(batch: readonly RecordedEvent[], there: StreamEnd | null): readonly RecordedEvent[] {
  if (there === null) return batch;
  const last = batch.find(({ revision }) => revision === there.revision);
  if (last !== undefined && last.id !== there.id) {
    throw refused(last, 'the target holds another event at this revision');
  }
  return batch.filter(({ revision }) => revision > there.revision);
}

async function append(to: EventLog, events: readonly RecordedEvent[], retryPolicy: RetryPolicy): Promise<void> {
  const [first] = events;
  if (first === undefined) return;
  const { stream, revision } = first;
  const expected = revision === 0 ? ('none' as const) : revision - 1;
  await appendWithRetry(to, { stream, events: events.map(newEventOf), expected }, retryPolicy);
}

/** A recorded event as it is appended elsewhere. */
export function newEventOf({ id, type, data, metadata }: RecordedEvent): NewEvent {
  return { id, type, data, metadata };
}

/** @throws {CopyRefused} when the event does not follow, by its revision and its hash */
function streamEndAfter(before: StreamEnd | undefined, event: RecordedEvent, sha256: CopyOptions['sha256']): StreamEnd {
  const exported = exportedOf(event);
  if (event.revision !== (before?.revision ?? -1) + 1) throw refused(event, 'an event before it is missing');
  const previous = before?.hash ?? GENESIS_HASH;
  // Where no hash is recorded, it is computed of source and copy, and compared at the end.
  if (!isChained(event.stream))
    return { revision: event.revision, id: event.id, hash: sha256(previous + event.id + canonical(exported.data)) };
  if (!checkLink(previous, exported, sha256)) {
    throw refused(event, 'its hash does not follow from the event before it');
  }
  return { revision: event.revision, id: event.id, hash: exported.hash };
}

/** Verifies every hash chain of the copy and compares the ends of all streams. */
async function verifyCopy(
  to: EventLog,
  ends: ReadonlyMap<string, StreamEnd>,
  { sha256, isSkipped }: CopyOptions,
): Promise<void> {
  const copied = new Map<string, StreamEnd>();
  for await (const event of to.readAll(null)) {
    if (isSkipped?.(event.stream) === true) continue;
    if (!ends.has(event.stream)) throw refused(event, 'the target holds a stream that the source does not have');
    copied.set(event.stream, streamEndAfter(copied.get(event.stream), event, sha256));
  }
  for (const [stream, end] of ends) {
    if (copied.get(stream)?.hash === end.hash) continue;
    throw refused({ stream, revision: end.revision }, 'the copy ends differently from the source');
  }
}

function refused({ stream, revision }: Pick<RecordedEvent, 'stream' | 'revision'>, reason: string): CopyRefused {
  return new CopyRefused({ stream, revision, reason });
}
