/** Costs in words, for the console and the terminal. */

/** US dollars with two digits that count: `$12.30`, `$0.042`, `less than $0.0001`. */
export function dollarText(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars < 0.0001) return 'less than $0.0001';
  return `$${dollars < 0.995 ? dollars.toPrecision(2) : dollars.toFixed(2)}`;
}

/** A cost as part of a sentence. @param costUsd or null if it is unknown */
export function costText(costUsd: number | null): string {
  return costUsd === null ? 'cost not reported' : dollarText(costUsd);
}
