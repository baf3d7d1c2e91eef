/** A blueprint's stream as it is read: each event with the one before it, which its hash covers. */
import type { System } from '../system/system.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { headAt } from '../eventsourcing/handle-command.js';
import { BROKEN_LINK, GENESIS_HASH, hashOf, isLinked } from '../eventsourcing/hash-chain.js';
import type { Blueprint, BlueprintVersion } from '../generated/schemas.js';
import { fieldOf, reasonOf } from '../system/untrusted.js';
import { BlueprintCorrupt } from './errors.js';
import { blueprintAfter, blueprintIdOf, blueprintStream } from './events.js';

/** An event of a blueprint's stream. */
export interface LinkedEvent {
  readonly event: RecordedEvent;
  /** Null: it is the first. */
  readonly before: RecordedEvent | null;
}

interface NewestRange {
  /** Revision of the first event given; absent: the last of the stream. */
  readonly from?: number;
  /** Most events given; absent: all. */
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

/** A blueprint as the log has it, or null if it is deleted or unknown. @throws {BlueprintCorrupt} */
export async function currentBlueprint(
  blueprintId: string,
  { log, sha256 }: { readonly log: Pick<EventLog, 'readStream'>; readonly sha256: System['sha256'] },
): Promise<Blueprint | null> {
  const last = await newestEvent(log, blueprintId);
  return last === null ? null : (checkedBlueprint(last, sha256) ?? null);
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
    throw corrupt(reasonOf(cause), cause);
  }
  throw corrupt(BROKEN_LINK);
}

// Every save of a blueprint: each of its events holds the whole record.

/** Characters of saved records after which a page ends, so that an answer is bounded however large they are. */
const PAGE_CHARS = 2 * 1024 * 1024;

export interface VersionsPage {
  /** Newest first. */
  readonly versions: readonly BlueprintVersion[];
  /** Whether there are older ones. */
  readonly hasMore: boolean;
}

export interface VersionsRange {
  readonly limit: number;
  /** Only what was saved before the event of this revision; absent: all. */
  readonly before?: number | undefined;
}

/**
 * The saves of a blueprint, also of one that is deleted; null when nothing was ever saved by that id.
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
      deleted = savedBy(event);
      continue;
    }
    if (versions.length === limit || chars >= PAGE_CHARS) return { versions, hasMore: true };
    versions.push({ ...savedBy(event), hash: hashOf(event), deleted, ...blueprint });
    chars += event.data.length;
    deleted = null;
  }
  return { versions, hasMore: false };
}

/** Empty texts where another program wrote the event, as in an export. */
function savedBy({ revision: seq, data, metadata }: RecordedEvent): Pick<BlueprintVersion, 'seq' | 'at' | 'actor'> {
  const actor = fieldOf(JSON.parse(data), 'actor');
  return { seq, at: metadata['occurredAt'] ?? '', actor: typeof actor === 'string' ? actor : null };
}
