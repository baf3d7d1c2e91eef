/** The place in another run's record that a fork goes on from. */
import type { Ambient } from '../ambient.js';
import { RunDamaged } from '../errors.js';
import type { ExportedEvent } from '../log/chain.js';
import type { EventLog } from '../log/port.js';
import { readChecked } from '../run/stream.js';
import type { Difference } from './verify.js';

export interface Parent {
  readonly runId: string;
  readonly at: number;
  readonly hash: string;
}

export interface ParentMeans {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly sha256: Ambient['sha256'];
  /** Told of a parent's record that does not bear out. */
  readonly onDamaged: (error: RunDamaged) => void;
}

/** A run that goes on from another's event names it by its hash: null when the log has that event, or it is no fork. */
export async function parentDifference(
  first: ExportedEvent | null,
  { log, sha256, onDamaged }: ParentMeans,
): Promise<Difference | null> {
  const parent = parentIn(first);
  if (parent === null) return null;
  const { runId, at, hash } = parent;
  try {
    for await (const event of readChecked(log, runId, { sha256, from: at, max: 1 })) {
      if (event.hash === hash) return null;
    }
    return { seq: 0, what: `its parent "${runId}" has no event ${at} with the hash ${hash}` };
  } catch (error) {
    if (!(error instanceof RunDamaged)) throw error;
    onDamaged(error);
    return { seq: 0, what: `its parent "${runId}" is damaged at event ${error.data.seq}: ${error.data.reason}` };
  }
}

/** What the first event of a run tells of its parent; null when it is no fork. */
export function parentIn(first: ExportedEvent | null): Parent | null {
  const parent: unknown = first === null ? null : Reflect.get(first.data, 'parent');
  if (typeof parent !== 'object' || parent === null) return null;
  const { runId, at, hash } = parent as Record<string, unknown>;
  return { runId: String(runId), at: Number(at), hash: String(hash) };
}
