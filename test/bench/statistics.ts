/** Statistics of measured values. */

export interface Spread {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  /** Number of values. */
  readonly count: number;
}

/** @throws {RangeError} there are no values */
export function spreadOf(values: readonly number[]): Spread {
  return {
    median: percentile(values, 0.5),
    lowest: percentile(values, 0),
    highest: percentile(values, 1),
    count: values.length,
  };
}

/**
 * The smallest value that at least this share of all values does not exceed (nearest rank).
 *
 * @param share from 0 to 1
 * @throws {RangeError} there are no values
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  const found = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (found === undefined) throw new RangeError('Cannot compute a percentile: there are no values');
  return found;
}
