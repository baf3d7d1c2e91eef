/** The query of a list of runs: filter, order and page. */
import type { RunStatus } from '../run/state.js';
import type { Page, RunSummary } from './run-summary.js';

/** A run must pass all given fields. */
export interface RunFilter {
  readonly status?: RunStatus | undefined;
  readonly blueprintId?: string | undefined;
  /** Name of the key that started the run. */
  readonly actor?: string | undefined;
  /** Id of the run that the run was forked from. */
  readonly parent?: string | undefined;
  /** Bounds of the time of the start, inclusive: ISO 8601, UTC, milliseconds. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Bounds of the score, inclusive. They exclude runs without a score. */
  readonly minScore?: number | undefined;
  readonly maxScore?: number | undefined;
  /**
   * Words of the topic and the final draft, all of which a run must contain. A word with `*` at its end is a prefix.
   */
  readonly q?: string | undefined;
}

/** Runs without a score come last in both orders. `waiting` lists paused runs first, the longest wait first. */
export const RUN_SORTS = ['-created_at', 'created_at', '-score', 'score', 'waiting'] as const;

export type RunSort = (typeof RUN_SORTS)[number];

/**
 * The place of a run in an order. Ties are sorted newest first, but oldest first for `created_at` and `score`, and then
 * by id.
 */
export interface RunPlace {
  /** The value by which the order sorts, or null if the run has none. The time of the start is a separate field. */
  readonly value: number | string | null;
  readonly createdAt: string;
  readonly id: string;
}

export interface RunListQuery extends Page {
  readonly filter?: RunFilter;
  readonly sort?: RunSort;
  /** Place after which the list begins, before the offset is applied. Default: the beginning. */
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
