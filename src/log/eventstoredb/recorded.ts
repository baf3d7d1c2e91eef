/** Events as they come over the wire, given the port's shape. */
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { RecordedEvent } from '../port.js';
import { positionOf } from './position.js';
import type { StreamNames } from './stream-names.js';

/** The mark a deleted stream leaves has the greatest revision there is. */
const TOMBSTONE = '9223372036854775807';

/** An event under its name on the server; its stream here is null when it is not for readers of this log. */
export interface ReadEvent {
  readonly event: Omit<RecordedEvent, 'stream'>;
  readonly stream: string | null;
}

/** The event in an answer, null when it holds something else. */
export function eventIn(answer: ReadResp, names: StreamNames): ReadEvent | null {
  const record = answer.getEvent()?.getEvent();
  if (record === undefined) return null;
  const type = record.getMetadataMap().get('type') ?? '';
  const revision = record.getStreamRevision();
  const serverStream = Buffer.from(record.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString();
  return {
    stream: type.startsWith('$') || revision === TOMBSTONE ? null : names.fromServer(serverStream),
    event: {
      id: record.getId()?.getString() ?? '',
      type,
      data: Buffer.from(record.getData_asU8()).toString(),
      metadata: metadataIn(record.getCustomMetadata_asU8()),
      revision: Number(revision),
      position: positionOf({ commit: record.getCommitPosition(), prepare: record.getPreparePosition() }),
    },
  };
}

/** Another program's metadata that is no flat JSON is read as none: the event then has no hash, and the chain names it. */
function metadataIn(bytes: Uint8Array): Readonly<Record<string, string>> {
  try {
    const metadata: unknown = JSON.parse(Buffer.from(bytes).toString());
    return isFlat(metadata) ? metadata : {};
  } catch {
    return {};
  }
}

function isFlat(metadata: unknown): metadata is Readonly<Record<string, string>> {
  if (typeof metadata !== 'object' || metadata === null) return false;
  return Object.values(metadata).every((value) => typeof value === 'string');
}
