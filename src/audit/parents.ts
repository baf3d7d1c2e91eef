/** What the parents of a fork had recorded before it. */
import { isUnreadable } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import type { RunState } from '../run/state.js';

/** Folds a run's events in order from the first one: all of them, or the first `max`. @throws {RunCorrupt} */
export type FoldEvents = <T>(
  runId: string,
  fold: (events: AsyncIterable<RunEvent>) => Promise<T>,
  max?: number,
) => Promise<T>;

/** What a fold keeps of a run so that its parents can be read. */
export interface Generation {
  readonly parent: RunState['request']['parent'];
  /** Hash of the last event that was folded. */
  readonly headHash: string;
}

/** Most generations that are read of a fork and its parents. */
const MAX_GENERATIONS = 20;

/**
 * The parents of a run, the nearest first, each folded up to the event from which its fork continues. Ends at a parent that
 * cannot be read, or whose event does not have the hash that its fork has recorded.
 */
export async function parentsOf<G extends Generation>(
  own: G,
  folded: FoldEvents,
  foldOf: (runId: string, events: AsyncIterable<RunEvent>) => Promise<G | null>,
): Promise<readonly G[]> {
  const parents: G[] = [];
  for (let { parent } = own; parent !== null && parents.length + 1 < MAX_GENERATIONS;) {
    const { runId, at, hash } = parent;
    const found = await orNull(folded(runId, (events) => foldOf(runId, events), at + 1));
    if (found?.headHash !== hash) break;
    parents.push(found);
    ({ parent } = found);
  }
  return parents;
}

/** The result, or null if the record is corrupt or erased. */
async function orNull<T>(folding: Promise<T>): Promise<T | null> {
  try {
    return await folding;
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}
