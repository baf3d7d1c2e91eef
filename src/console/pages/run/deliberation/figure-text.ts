/** A computed number with at most two decimals. */
export function figureText(value: number): string {
  return String(Number(value.toFixed(2)));
}
