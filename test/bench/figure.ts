/** A figure of the benchmark: a measured value and its target. */
import type { Spread } from './statistics.js';
import { spreadOf } from './statistics.js';

export type Target = { readonly atLeast: number } | { readonly atMost: number };

interface Named {
  readonly name: string;
  /** Unit of the values, as printed after them; empty for plain numbers. */
  readonly unit: string;
  readonly target: Target | null;
}

export type Figure =
  | (Named & { readonly kind: 'measured'; readonly spread: Spread })
  | (Named & { readonly kind: 'unmeasured'; readonly reason: string });

/** A part of the benchmark that can be run alone. */
export interface Part {
  /** The name that `--only` takes. */
  readonly name: string;
  /** One or two sentences for the reader of the table: how the figures are measured. */
  readonly method: (effort: Effort) => string;
  readonly measure: (effort: Effort) => Promise<readonly Figure[]>;
}

/** How long and how often the benchmark measures. */
export interface Effort {
  /** Repetitions of each measurement. The table shows their median. */
  readonly rounds: number;
  readonly warmUpSeconds: number;
  readonly engineSeconds: number;
  readonly restSeconds: number;
  /** How long runs are started in the http-models part. */
  readonly httpSeconds: number;
  /** Turns of each contestant at each number of concurrent runs, and the processor time of a turn. */
  readonly contestRounds: number;
  readonly contestSeconds: number;
  /** Finished runs before memory is measured, or as many as `fillSeconds` allow. */
  readonly memoryRuns: number;
  readonly fillSeconds: number;
  /** Finished runs in the logs of the start-up part, and starts of each. */
  readonly startUpRuns: readonly number[];
  readonly starts: number;
  /** Runs in the views of the lists part. */
  readonly listedRuns: number;
  /** Chunks in the indexes of the search part. */
  readonly chunks: readonly number[];
  /** Timed requests of each kind. */
  readonly requests: number;
}

/** Numbers of concurrent runs at which the engine is measured. */
export const CONCURRENCIES = [1, 50, 500];

/** Takes about ten minutes. */
export const FULL_EFFORT: Effort = {
  rounds: 3,
  warmUpSeconds: 1,
  engineSeconds: 4,
  restSeconds: 6,
  httpSeconds: 8,
  contestRounds: 5,
  contestSeconds: 3,
  memoryRuns: 10_000,
  fillSeconds: 35,
  startUpRuns: [0, 10_000],
  starts: 7,
  listedRuns: 1_000_000,
  chunks: [10_000, 100_000],
  requests: 100,
};

/** Shows only that the benchmark works: too short for figures that mean anything. */
export const QUICK_EFFORT: Effort = {
  rounds: 1,
  warmUpSeconds: 0.1,
  engineSeconds: 0.4,
  restSeconds: 0.5,
  httpSeconds: 0.5,
  contestRounds: 1,
  contestSeconds: 0.4,
  memoryRuns: 100,
  fillSeconds: 5,
  startUpRuns: [0, 100],
  starts: 2,
  listedRuns: 2_000,
  chunks: [100, 1_000],
  requests: 20,
};

/** @param values one of each round */
export function figure(name: string, unit: string, values: readonly number[], target: Target | null = null): Figure {
  if (values.length === 0) return unmeasured(name, unit, 'no values');
  return { kind: 'measured', name, unit, target, spread: spreadOf(values) };
}

export function unmeasured(name: string, unit: string, reason: string): Figure {
  return { kind: 'unmeasured', name, unit, target: null, reason };
}

/** Whether the median meets the target, or null if there is no target or no median. */
export function isMet(of: Figure): boolean | null {
  if (of.kind === 'unmeasured' || of.target === null) return null;
  const { median } = of.spread;
  return 'atLeast' in of.target ? median >= of.target.atLeast : median <= of.target.atMost;
}
