/** Reads a blueprint's stream: each event with the one before it, which its hash covers. */
import type { System } from '../system/system.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { headAt } from '../eventsourcing/aggregate.js';
import { BROKEN_LINK, GENESIS_HASH, hashOf, isLinked } from '../eventsourcing/hash-chain.js';
import type { Blueprint, BlueprintVersion } from '../generated/schemas.js';
import { fieldOf, reasonOf } from '../system/untrusted.js';
import { BlueprintCorrupt } from './errors.js';
import { blueprintAfter, blueprintIdOf, blueprintStream } from './events.js';

/** An event of a blueprint's stream. */
export interface LinkedEvent {
  readonly event: RecordedEvent;
  /** Null for the first event. */
  readonly before: RecordedEvent | null;
}

interface NewestRange {
  /** Revision of the first event to read. Default: the last of the stream. */
  readonly from?: number;
  /** Most events to read. Default: all. */
  readonly max?: number;
}

/** A blueprint's events, newest first. */
async function* newestFirst(
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

/** The last event of a blueprint's stream, or null if it is empty. */
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
 * The blueprint after an event, or null if it is deleted; undefined for an unknown type.
 *
 * @throws {BlueprintCorrupt} when its hash does not follow, or it lacks its record
 */
export function checkedBlueprint(linked: LinkedEvent, sha256: System['sha256']): Blueprint | null | undefined {
  assertLinked(linked, sha256);
  return blueprintAfter(linked.event);
}

/** A blueprint on the log, or null if it is deleted or unknown. @throws {BlueprintCorrupt} */
export async function currentBlueprint(
  blueprintId: string,
  { log, sha256 }: { readonly log: Pick<EventLog, 'readStream'>; readonly sha256: System['sha256'] },
): Promise<Blueprint | null> {
  const last = await newestEvent(log, blueprintId);
  return last === null ? null : (checkedBlueprint(last, sha256) ?? null);
}

/** @throws {BlueprintCorrupt} when an event's hash does not follow from its data and the event before it */
export function assertLinked({ event, before }: LinkedEvent, sha256: System['sha256']): void {
  const previousHash = before === null ? GENESIS_HASH : headAt(before).hash;
  const corrupt = (reason: string, cause?: unknown): BlueprintCorrupt => {
    const { stream, revision: seq } = event;
    return new BlueprintCorrupt({ blueprintId: blueprintIdOf(stream) ?? stream, seq, reason }, { cause });
  };
  try {
    if (isLinked(previousHash, event, sha256)) return;
  } catch (cause) {
    throw corrupt(reasonOf(cause), cause);
  }
  throw corrupt(BROKEN_LINK);
}

// The saves of a blueprint: each of its events holds the complete record.

/** Characters of records after which a page ends, so that an answer is bounded. */
const PAGE_CHARS = 2 * 1024 * 1024;

export interface VersionsPage {
  /** Newest first. */
  readonly versions: readonly BlueprintVersion[];
  /** Whether there are older versions. */
  readonly hasMore: boolean;
}

export interface VersionsRange {
  readonly limit: number;
  /** Only saves before the event of this revision. Default: all. */
  readonly before?: number | undefined;
}

/**
 * The saves of a blueprint, also of a deleted one, or null if there never was one.
 *
 * @throws {BlueprintCorrupt}
 */
export async function blueprintVersions(
  { log, sha256 }: { readonly log: Pick<EventLog, 'readStream'>; readonly sha256: System['sha256'] },
  blueprintId: string,
  { limit, before }: VersionsRange,
): Promise<VersionsPage | null> {
  if ((await newestEvent(log, blueprintId)) === null) return null;
  const versions: BlueprintVersion[] = [];
  if (before === 0) return { versions, hasMore: false };
  let [deleted, chars]: [BlueprintVersion['deleted'], number] = [null, 0];
  for await (const linked of newestFirst(log, blueprintId, before === undefined ? {} : { from: before - 1 })) {
    const { event } = linked;
    const blueprint = checkedBlueprint(linked, sha256);
    if (blueprint === undefined) continue;
    if (blueprint === null) {
      deleted = saveInfo(event);
      continue;
    }
    if (versions.length === limit || chars >= PAGE_CHARS) return { versions, hasMore: true };
    versions.push({ ...saveInfo(event), hash: hashOf(event), deleted, ...blueprint });
    chars += event.data.length;
    deleted = null;
  }
  return { versions, hasMore: false };
}

/** Revision, time and author of a save. The time is empty if another program wrote the event. */
function saveInfo({ revision: seq, data, metadata }: RecordedEvent): Pick<BlueprintVersion, 'seq' | 'at' | 'actor'> {
  const actor = fieldOf(JSON.parse(data), 'actor');
  return { seq, at: metadata['occurredAt'] ?? '', actor: typeof actor === 'string' ? actor : null };
}
