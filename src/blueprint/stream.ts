/** A blueprint's stream as it is read: each event with the one before it, which its hash covers. */
import type { System } from '../system/system.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { headAt } from '../eventsourcing/handle-command.js';
import { GENESIS_HASH, isLinked } from '../eventsourcing/hash-chain.js';
import type { Blueprint } from '../generated/schemas.js';
import { BlueprintCorrupt } from './errors.js';
import { blueprintAfter, blueprintIdOf, blueprintStream } from './events.js';

/** An event of a blueprint's stream. */
export interface LinkedEvent {
  readonly event: RecordedEvent;
  /** Null: it is the first. */
  readonly before: RecordedEvent | null;
}

export interface NewestRange {
  /** Revision of the first event given; absent: the last of the stream. */
  readonly from?: number;
  /** Most events given; absent: all. */
  readonly max?: number;
}

/** A blueprint's events, newest first. */
export async function* newestFirst(
  log: Pick<EventLog, 'readStream'>,
  blueprintId: string,
  { from, max = Number.MAX_SAFE_INTEGER - 1 }: NewestRange = {},
): AsyncGenerator<LinkedEvent> {
  const range = { direction: 'backwards', max: max + 1, ...(from !== undefined && { from }) } as const;
  let event: RecordedEvent | null = null;
  let left = max;
  for await (const before of log.readStream(blueprintStream(blueprintId), range)) {
    if (event !== null) yield { event, before };
    if (event !== null && (left -= 1) === 0) return;
    event = before;
  }
  if (event !== null) yield { event, before: null };
}

/** The last event of a blueprint's stream; null: it has none. */
export async function newestEvent(log: Pick<EventLog, 'readStream'>, blueprintId: string): Promise<LinkedEvent | null> {
  for await (const newest of newestFirst(log, blueprintId, { max: 1 })) return newest;
  return null;
}

/** An event with the one before it. */
export async function linkedEvent(log: Pick<EventLog, 'readStream'>, event: RecordedEvent): Promise<LinkedEvent> {
  const { stream, revision } = event;
  return { event, before: revision === 0 ? null : await lastEvent(log, stream, revision - 1) };
}

/**
 * The blueprint as an event leaves it: its record, null when it is deleted; undefined for an event of another kind.
 *
 * @throws {BlueprintCorrupt} when its hash does not follow, or it should hold a record and does not
 */
export function checkedBlueprint(linked: LinkedEvent, sha256: System['sha256']): Blueprint | null | undefined {
  assertLinked(linked, sha256);
  return blueprintAfter(linked.event);
}

/** @throws {BlueprintCorrupt} when an event's hash does not follow from the one before it and what it holds */
export function assertLinked({ event, before }: LinkedEvent, sha256: System['sha256']): void {
  const previousHash = before === null ? GENESIS_HASH : headAt(before).hash;
  const corrupt = (reason: string, cause?: unknown): BlueprintCorrupt => {
    const { stream, revision: seq } = event;
    return new BlueprintCorrupt({ blueprintId: blueprintIdOf(stream) ?? stream, seq, reason }, { cause });
  };
  try {
    if (isLinked(previousHash, event, sha256)) return;
  } catch (cause) {
    throw corrupt(cause instanceof Error ? cause.message : String(cause), cause);
  }
  throw corrupt('its hash does not follow from the event before it and its own fields');
}
