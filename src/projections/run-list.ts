/** What a list of runs is asked for: which of them, in which order, from which place on. */
import type { RunStatus } from '../run/state.js';
import type { Page, RunSummary } from './run-summary.js';

/** Each field that is given narrows the list further. */
export interface RunFilter {
  readonly status?: RunStatus | undefined;
  readonly blueprintId?: string | undefined;
  /** Name of the key that asked for the run. */
  readonly actor?: string | undefined;
  /** Id of the run that it was forked from. */
  readonly parent?: string | undefined;
  /** Bounds of the time of the start, inclusive: ISO 8601, UTC, milliseconds. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Bounds of the score, inclusive. A run without a score is outside of any. */
  readonly minScore?: number | undefined;
  readonly maxScore?: number | undefined;
  /** Words of the topic and the final draft: a run has to hold all of them. One with `*` behind is the beginning of words. */
  readonly q?: string | undefined;
}

/** Runs without a score come last, both ways. `waiting`: those that wait for a human, the longest wait first, then the others. */
export const RUN_SORTS = ['-created_at', 'created_at', '-score', 'score', 'waiting'] as const;

export type RunSort = (typeof RUN_SORTS)[number];

/** The place of a run in an order. Ties have the newest first, under `created_at` and `score` the oldest; then ids decide. */
export interface RunPlace {
  /** What the order is by, beside the time of the start; null: the run has none. */
  readonly value: number | string | null;
  readonly createdAt: string;
  readonly id: string;
}

export interface RunListQuery extends Page {
  readonly filter?: RunFilter;
  readonly sort?: RunSort;
  /** Runs behind this place; absent: from the first on. Offset counts from there. */
  readonly after?: RunPlace;
}

/** The place of a run in an order. */
export function placeOf(run: RunSummary, sort: RunSort): RunPlace {
  return { value: valueOf(run, sort), createdAt: run.createdAt, id: run.id };
}

function valueOf({ criticScore, waitingSince }: RunSummary, sort: RunSort): RunPlace['value'] {
  switch (sort) {
    case '-created_at':
    case 'created_at':
      return null;
    case '-score':
    case 'score':
      return criticScore;
    case 'waiting':
      return waitingSince;
    default:
      return sort satisfies never;
  }
}
