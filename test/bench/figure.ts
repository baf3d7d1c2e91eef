/** A figure of the benchmark: what was measured, and what was wanted. */
import type { Spread } from './statistics.js';
import { spreadOf } from './statistics.js';

export type Target =
  | { readonly atLeast: number; /** Better still, without being asked for. */ readonly wished?: number }
  | { readonly atMost: number };

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
  /** As `--only` names it. */
  readonly name: string;
  /** How its figures are measured, in a sentence or two for the reader of the table. */
  readonly method: (effort: Effort) => string;
  readonly measure: (effort: Effort) => Promise<readonly Figure[]>;
}

/** How long and how often is measured. */
export interface Effort {
  /** Repetitions of each measurement; the median is what counts. */
  readonly rounds: number;
  readonly warmUpSeconds: number;
  /** Runs under way at once in the engine. */
  readonly concurrencies: readonly number[];
  readonly engineSeconds: number;
  /** Turns of each contestant at each concurrency. */
  readonly contestRounds: number;
  readonly contestSeconds: number;
  readonly rawSeconds: number;
  readonly restSeconds: number;
  readonly socketSeconds: number;
  /** Runs whose bytes are counted. */
  readonly diskRuns: number;
  /** Finished runs after which memory is measured. */
  readonly memoryRuns: number;
  /** Paused runs at which memory is measured. */
  readonly pausedRuns: number;
  /** Runs under way at once on a slow model. */
  readonly inFlightRuns: number;
  /** Clients that watch one run. */
  readonly watchers: number;
  /** Finished runs in the logs of the history part. */
  readonly historyRuns: readonly number[];
  /** Runs in the stored views of the lists part. */
  readonly listedRuns: number;
  /** Events in the logs of the audit part. */
  readonly auditEvents: readonly number[];
  /** Active runs of an instance that is stopped. */
  readonly handoverRuns: number;
  /** Requests timed of each kind. */
  readonly requests: number;
  readonly graphSeconds: number;
  /** Starts timed of each log. */
  readonly starts: number;
  /** Pages of the PDF whose text is extracted. */
  readonly pdfPages: number;
  /** Passages in the indexes that are searched. */
  readonly passages: readonly number[];
  /** Of a thousand events each, on the feed of the console. */
  readonly consoleSeconds: number;
  /** Events between two looks at the console's memory. */
  readonly consoleEvents: number;
  /** Longest time spent on making the runs that a measurement needs. */
  readonly fillSeconds: number;
}

/** A figure of the values measured, one a round; none make it an unmeasured one. */
export function figure(name: string, unit: string, values: readonly number[], target: Target | null = null): Figure {
  if (values.length === 0) return unmeasured(name, unit, 'no values');
  return { kind: 'measured', name, unit, target, spread: spreadOf(values) };
}

export function unmeasured(name: string, unit: string, reason: string): Figure {
  return { kind: 'unmeasured', name, unit, target: null, reason };
}

/** Whether the median meets the target; null when there is none, or no median. */
export function isMet(of: Figure): boolean | null {
  if (of.kind === 'unmeasured' || of.target === null) return null;
  const { median } = of.spread;
  return 'atLeast' in of.target ? median >= of.target.atLeast : median <= of.target.atMost;
}
