/**
 * Exact amounts of US dollars. Events and answers have dollars as JSON numbers, whose sums as binary fractions are wrong in
 * their last digits: 0.1 + 0.2 is not 0.3. An amount is exact from its decimal text, the shortest that names the number.
 */

/** An amount in units of 10^-24 US dollars: so a price of a billionth of a dollar keeps its 15 digits. */
export type ExactDollars = bigint;

const DECIMALS = 24;
const UNITS_PER_DOLLAR = 10n ** BigInt(DECIMALS);
/** 10^-12 US dollars. */
const UNITS_PER_PICODOLLAR = 10n ** BigInt(DECIMALS - 12);

/**
 * The amount that the decimal text of a number names, rounded up to a unit.
 *
 * @param usd finite
 */
export function exactDollars(usd: number): ExactDollars {
  if (usd === 0) return 0n;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(String(usd)) ?? [];
  const digits = BigInt(whole + fraction);
  const shift = DECIMALS - fraction.length + Number(exponent);
  const units = shift >= 0 ? digits * 10n ** BigInt(shift) : dividedUp(digits, 10n ** BigInt(-shift));
  return sign === '' ? units : -units;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/;

function dividedUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by;
}

/** The number nearest to an amount. */
export function dollarsOf(exact: ExactDollars): number {
  const units = String(exact < 0n ? -exact : exact).padStart(DECIMALS + 1, '0');
  const usd = Number(`${units.slice(0, -DECIMALS)}.${units.slice(-DECIMALS)}`);
  return exact < 0n ? -usd : usd;
}

/** An amount rounded up to 10^-12 US dollars, as a number that is not below it. At least 0. */
export function dollarsUp(exact: ExactDollars): number {
  const picodollars = dividedUp(exact, UNITS_PER_PICODOLLAR);
  // Above 1000 US dollars, numbers lie further apart.
  for (let more = 0n; ; more = 2n * more + 1n) {
    const usd = dollarsOf((picodollars + more) * UNITS_PER_PICODOLLAR);
    if (exactDollars(usd) >= exact) return usd;
  }
}

/** An amount of at least 0, rounded down to 10^-12 US dollars, as a number that is not above it. */
export function dollarsDown(exact: ExactDollars): number {
  const picodollars = exact / UNITS_PER_PICODOLLAR;
  for (let less = 0n; less < picodollars; less = 2n * less + 1n) {
    const usd = dollarsOf((picodollars - less) * UNITS_PER_PICODOLLAR);
    if (exactDollars(usd) <= exact) return usd;
  }
  return 0;
}

/** A recorded amount for an answer, rounded to 10^-12 US dollars: earlier versions recorded sums of binary fractions. */
export function roundedDollars(usd: number): number {
  const half = UNITS_PER_PICODOLLAR / 2n;
  return dollarsOf(((exactDollars(usd) + half) / UNITS_PER_PICODOLLAR) * UNITS_PER_PICODOLLAR);
}

/** The exact sum of amounts, as the number nearest to it. */
export function sumOfDollars(amounts: readonly number[]): number {
  return dollarsOf(amounts.reduce((sum, each) => sum + exactDollars(each), 0n));
}

/** The exact cost of tokens, each count at its price in US dollars a token. */
export function costOfTokens(counts: readonly (readonly [tokens: number, usdPerToken: number])[]): ExactDollars {
  return counts.reduce((sum, [tokens, price]) => sum + BigInt(tokens) * exactDollars(price), 0n);
}

/** A number as decimal digits without an exponent: `0.0000001`. */
export function dollarDigits(usd: number): string {
  const exact = exactDollars(usd);
  const fraction = String(exact % UNITS_PER_DOLLAR)
    .padStart(DECIMALS, '0')
    .replace(/0+$/, '');
  return `${exact / UNITS_PER_DOLLAR}${fraction === '' ? '' : `.${fraction}`}`;
}
