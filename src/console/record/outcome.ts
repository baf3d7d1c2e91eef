/** What a run is doing or how it ended, in the console's words. */
import type { HistoryQuery, HistoryRecord, RunCounts } from '../../generated/schemas.js';

export type RunStatus = HistoryRecord['status'];

/** A run's status, with "waiting" for paused, and "rejected" and "cancelled" apart from other failures. */
export type Outcome = 'pending' | 'running' | 'waiting' | 'completed' | 'failed' | 'rejected' | 'cancelled';

/** @param error of a failed run, as recorded; null if it is unknown or the run has not failed */
export function outcomeOf(status: RunStatus, error: string | null): Outcome {
  if (status === 'paused') return 'waiting';
  if (status !== 'failed') return status;
  if (error?.startsWith('Cancelled ') === true) return 'cancelled';
  return error?.startsWith('Rejected') === true ? 'rejected' : 'failed';
}

/** The filters by which runs are counted apart. */
export type CountFilter = { readonly [name in 'status' | 'outcome']?: HistoryQuery[name] | undefined };

/** The number of runs with a status or an outcome, or null before the answer. */
export function countIn(counts: RunCounts | null, { status, outcome }: CountFilter): number | null {
  if (counts === null) return null;
  return outcome === undefined ? counts[status ?? 'all'] : counts.outcomes[outcome];
}
