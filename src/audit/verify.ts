/**
 * Whether a run's record bears out: every link of its hash chain computed again, every event asked of the chart that
 * its first event freezes. No model is called, and nothing is needed beside the events.
 */
import { RunDamaged } from '../errors.js';
import type { ExportedEvent } from '../log/chain.js';
import type { RunState } from '../run/state.js';
import type { ReplayMeans } from '../run/replay.js';
import { Replaying } from '../run/replay.js';

/** Where a record first fails to bear out, and why. */
export interface Difference {
  /** Revision of the event, or where it should have stood. */
  readonly seq: number;
  readonly what: string;
}

export interface Verified {
  /** Events that bear out, from the first. */
  readonly events: number;
  /** Hash of the last of them; 64 zeros when there is none. */
  readonly headHash: string;
  readonly firstDifference: Difference | null;
  /** The run after them; null when there is none. */
  readonly run: RunState | null;
}

export interface VerifyMeans extends ReplayMeans {
  /** Told of the run after each event that bears out. */
  readonly onTaken?: (run: RunState) => void;
}

/**
 * Replays the events of a run up to the first that does not bear out.
 *
 * @param events in order; what their iteration throws as RunDamaged counts as a difference, anything else is thrown on
 */
export async function verifyRecord(
  runId: string,
  events: AsyncIterable<ExportedEvent>,
  means: VerifyMeans,
): Promise<Verified> {
  const replaying = new Replaying(runId, means);
  const verified = (firstDifference: Difference | null): Verified => ({
    events: replaying.events,
    headHash: replaying.headHash,
    firstDifference,
    run: replaying.replay?.snapshot.context.run ?? null,
  });
  try {
    for await (const event of events) {
      replaying.take(event);
      if (replaying.replay !== null) means.onTaken?.(replaying.replay.snapshot.context.run);
    }
    return verified(null);
  } catch (error) {
    if (!(error instanceof RunDamaged)) throw error;
    return verified({ seq: error.data.seq, what: error.data.reason });
  }
}
