/** The query of a list of runs: filter, order and page. */
import type { RunStatus } from '../run/state.js';
import type { Outcome } from './overview.js';
import type { Page, RunSummary } from './run-summary.js';
import { durationOf } from './run-summary.js';

/** A run must pass all given fields. */
export interface RunFilter {
  readonly status?: RunStatus | undefined;
  readonly outcome?: Outcome | undefined;
  readonly blueprintId?: string | undefined;
  /** Only runs of the built-in council. */
  readonly isBuiltIn?: true | undefined;
  /** Only runs that try a council that is not saved, or only others. */
  readonly isTrial?: boolean | undefined;
  /** Name of the key that started the run. */
  readonly actor?: string | undefined;
  /** Id of the run that the run was forked from. */
  readonly parent?: string | undefined;
  /** Id of the run whose councils have started the run. */
  readonly parentRun?: string | undefined;
  /** Whether runs that councils have started are listed with the others. Default: no. */
  readonly withChildren?: boolean | undefined;
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

/** Numbers of runs: of unfinished ones by status, of ended ones by outcome. */
export type RunCounts = Readonly<Record<Exclude<RunStatus, 'completed' | 'failed'> | Outcome, number>>;

/** Runs without a value come last in both directions. `waiting` lists paused runs first, the longest wait first. */
export const RUN_SORTS = [
  ...(['-created_at', 'created_at', '-score', 'score', '-cost', 'cost'] as const),
  ...(['-duration', 'duration', '-iterations', 'iterations', 'waiting'] as const),
] as const;

export type RunSort = (typeof RUN_SORTS)[number];

/**
 * The place of a run in an order. Ties are sorted in the direction of the order by the time of the start, for
 * `waiting` newest first, and then by id.
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

function valueOf(run: RunSummary, sort: RunSort): RunPlace['value'] {
  switch (sort) {
    case '-created_at':
    case 'created_at':
      return null;
    case '-score':
    case 'score':
      return run.criticScore;
    case '-cost':
    case 'cost':
      return run.usage?.costUsd ?? null;
    case '-duration':
    case 'duration':
      return durationOf(run);
    case '-iterations':
    case 'iterations':
      return run.iterationCount;
    case 'waiting':
      return run.waitingSince;
    default:
      return sort satisfies never;
  }
}
