/** Every save of a blueprint, from its stream: each of its events holds the whole record. */
import type { BlueprintVersion } from '../generated/schemas.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import type { System } from '../system/system.js';
import { fieldOf } from '../system/untrusted.js';
import { checkedBlueprint, newestEvent, newestFirst } from './stream.js';

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
    versions.push({ ...savedBy(event), hash: event.metadata['hash'] ?? '', deleted, ...blueprint });
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
