/** The overview of ended runs and of waiting ones: what the stored views count, and figures from it. */

/** How a run ended. `rejected` and `cancelled` have the status `failed`. */
export type Outcome = 'completed' | 'failed' | 'rejected' | 'cancelled';

export interface OverviewQuery {
  /** The first and the last day, both included, as in `2026-11-27`; in UTC. */
  readonly days: readonly [string, string];
  /** Times for the ages of waits, ISO 8601. */
  readonly waitingSince: readonly string[];
}

/** What the calls of ended runs have used. */
export interface UsageRow {
  /** Of a council (empty for the built-in one), a model or a month. */
  readonly name: string;
  readonly calls: number;
  /** Calls without reported tokens, and without a known cost: the sums lack them. */
  readonly unmetered: number;
  readonly unpriced: number;
  readonly input: number;
  readonly output: number;
  readonly costUsd: number;
}

/** Counts of the stored views. */
export interface OverviewRows {
  /** Ids of the councils with the most runs, most first; empty for the built-in council. */
  readonly councils: readonly string[];
  readonly outcomes: readonly { readonly day: string; readonly outcome: Outcome; readonly runs: number }[];
  /** Of completed runs, without waits for humans. */
  readonly durations: readonly DurationRow[];
  readonly scores: readonly ScoreRow[];
  readonly byCouncil: readonly UsageRow[];
  readonly byModel: readonly UsageRow[];
  readonly byMonth: readonly UsageRow[];
  /** The waiting runs, the time of the first wait, and how many waits began before each of the times of the query. */
  readonly waiting: { readonly runs: number; readonly first: string | null; readonly before: readonly number[] };
}

export interface DurationRow {
  readonly day: string;
  readonly bucket: number;
  readonly runs: number;
}

export interface ScoreRow {
  readonly council: string;
  readonly day: string;
  readonly runs: number;
  /** Runs with a score, and the sum of their scores. */
  readonly scored: number;
  readonly score: number;
}

/** Each bucket ends at this multiple of its beginning, so that a figure is at most 2.5 % from the true one. */
const BUCKET_RATIO = 1.05;

/** The bucket of a duration in milliseconds. */
export function bucketOf(durationMs: number): number {
  return Math.floor(Math.log(durationMs + 1) / Math.log(BUCKET_RATIO));
}

/** A percentile of durations in milliseconds, or null without runs. @param share from 0 to 1 */
export function durationAt(rows: readonly Pick<DurationRow, 'bucket' | 'runs'>[], share: number): number | null {
  const total = rows.reduce((sum, { runs }) => sum + runs, 0);
  let left = Math.max(1, Math.ceil(share * total));
  for (const { bucket, runs } of [...rows].sort((one, other) => one.bucket - other.bucket)) {
    left -= runs;
    if (left <= 0) return Math.round(BUCKET_RATIO ** (bucket + 0.5) - 1);
  }
  return null;
}
