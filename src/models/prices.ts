/**
 * What calls to models cost, by a table of prices in the field names of LiteLLM's price file. `schemas/tables/prices.json`
 * is shipped; PRICES_FILE adds to it and wins.
 */
import type { ExactDollars } from '../system/dollars.js';
import { costOfTokens, dollarsOf, exactDollars } from '../system/dollars.js';
import { isRecord } from '../system/untrusted.js';
import type { ModelUsage } from './port.js';

/** US dollars a token. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
  /** Of a token read from the provider's cache, or null if it costs as much as another. */
  readonly cacheRead: number | null;
  /** Of a token written to it, likewise. */
  readonly cacheWrite: number | null;
  /** Of a token written to it for an hour, or null if it costs as much as another written token. Absent: null. */
  readonly cacheWriteHour?: number | null;
}

/** What a model costs: for short prompts, and for prompts above a number of tokens. */
export interface ModelPrice extends TokenPrices {
  /** By rising numbers. All tokens of a call are charged at the last tier that its prompt is above. Absent: none. */
  readonly tiers?: readonly PriceTier[];
}

/** The prices of the calls with long prompts. */
export interface PriceTier extends TokenPrices {
  /** Tokens of the prompt, cached ones included, above which these prices apply. */
  readonly above: number;
}

export interface PriceTable {
  /** The price of a model by its full name (`provider/model`), or null if the table has none. */
  priceOf(fullName: string): ModelPrice | null;
  /** Where the price of a model comes from: its table, and the source and date that the table names, or null if it has none. */
  originOf(fullName: string): string | null;
  /** The same as separate values, or null if the model has no price. */
  sourceOf(fullName: string): PriceSource | null;
  /** The models with a price, in alphabetical order: full names, and names for any provider. */
  models(): readonly string[];
  /** SHA-256 of what the table holds, lower-case hex. */
  readonly hash: string;
}

/** Where a price comes from. */
export interface PriceSource {
  /** Name of the table. */
  readonly table: string;
  /** The table's source, or null if the table does not name it with a date. */
  readonly source: string | null;
  /** The day on which the source was read, or null likewise. */
  readonly readAt: string | null;
}

/** One table after another; the first that names a model wins, by its full name before its bare one. */
interface Source {
  readonly name: string;
  readonly entries: Readonly<Record<string, unknown>>;
}

/**
 * @param shipped the service's own table
 * @param own that of PRICES_FILE, or null if there is none
 * @param sha256 of a text, lower-case hex
 */
export function priceTable(
  shipped: Readonly<Record<string, unknown>>,
  own: Readonly<Record<string, unknown>> | null,
  sha256: (text: string) => string,
): PriceTable {
  const sources: readonly Source[] = [
    ...(own === null ? [] : [{ name: 'PRICES_FILE', entries: own }]),
    { name: 'shipped table', entries: shipped },
  ];
  const find = (fullName: string): Found | null => foundIn(sources, fullName);
  const sourceOf = (fullName: string): PriceSource | null => {
    const found = find(fullName);
    if (found === null || !isRecord(found.entry)) return null;
    const { read_at: readAt, source } = found.entry;
    const isDated = typeof readAt === 'string' && typeof source === 'string';
    return { table: found.source, source: isDated ? source : null, readAt: isDated ? readAt : null };
  };
  return {
    // The offline model is part of the service.
    priceOf: (fullName) => (isOffline(fullName) ? FREE : (find(fullName)?.price ?? null)),
    originOf(fullName) {
      if (isOffline(fullName)) return 'part of the service';
      const found = sourceOf(fullName);
      if (found === null) return null;
      const { table, source, readAt } = found;
      return source === null ? table : `${table}: ${source}, read on ${readAt}`;
    },
    sourceOf,
    models() {
      const priced = sources.flatMap(({ entries }) =>
        Object.keys(entries).filter((key) => priceIn(entries[key]) !== null),
      );
      return [...new Set(priced)].toSorted();
    },
    hash: sha256(JSON.stringify(sources.map(({ entries }) => sorted(entries)))),
  };
}

interface Found {
  readonly source: string;
  readonly entry: unknown;
  readonly price: ModelPrice;
}

/** The first price of a model, with its entry and the name of its table, or null. */
function foundIn(sources: readonly Source[], fullName: string): Found | null {
  for (const { name, entries } of sources) {
    for (const key of [fullName, fullName.slice(fullName.indexOf('/') + 1)]) {
      const entry = Object.hasOwn(entries, key) ? entries[key] : undefined;
      const price = priceIn(entry);
      if (price !== null) return { source: name, entry, price };
    }
  }
  return null;
}

/**
 * What is wrong with a table: the first entry that cannot be used and what it needs, or null. LiteLLM's own entries without
 * prices per token, such as those of image models, are ignored.
 */
export function faultIn(
  entries: Readonly<Record<string, unknown>>,
): { readonly model: string; readonly accepted: string } | null {
  for (const [model, entry] of Object.entries(entries)) {
    if (!isRecord(entry)) return { model, accepted: 'an object for each model' };
    if ('litellm_provider' in entry && !REQUIRED.every((field) => field in entry)) continue;
    const optional = Object.keys(entry).filter((field) => IS_PRICE.test(field) && (entry[field] ?? null) !== null);
    const wrong = [...REQUIRED, ...optional].find((field) => (amount(entry[field]) ?? Infinity) > MAX_PER_TOKEN);
    if (wrong !== undefined)
      return { model, accepted: `US dollars per token from 0 to ${MAX_PER_TOKEN} in "${wrong}"` };
  }
  return null;
}

/** In US dollars a token. No model costs as much: a higher price is one per million tokens in a field per token. */
const MAX_PER_TOKEN = 1;

const REQUIRED = ['input_cost_per_token', 'output_cost_per_token'];

/** The fields of an entry that hold a price which the service reads. Others, such as those of batches, are ignored. */
const IS_PRICE =
  /^(?:input_cost_per_token|output_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost(?:_above_1hr)?)(?:_above_([1-9]\d{0,5})k_tokens)?$/;

/**
 * The cost of a call in US dollars, or null if its price, its input tokens or its output tokens are unknown. A call whose
 * prompt is above a tier costs the prices of that tier for all its tokens.
 */
export function costOf(usage: ModelUsage, price: ModelPrice | null): number | null {
  if (usage.costUsd !== undefined) return usage.costUsd;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, cacheWriteHourTokens } = usage;
  if (price === null || inputTokens === null || outputTokens === null) return null;
  const { input, output, cacheRead, cacheWrite, cacheWriteHour } = pricesAt(price, inputTokens);
  const cached = Math.min(cachedInputTokens ?? 0, inputTokens);
  const written = Math.min(cacheWriteTokens ?? 0, inputTokens - cached);
  const ofHour = Math.min(cacheWriteHourTokens ?? 0, written);
  const plain = inputTokens - cached - written;
  return dollarsOf(
    costOfTokens([
      [plain, input],
      [cached, cacheRead ?? input],
      [written - ofHour, cacheWrite ?? input],
      [ofHour, cacheWriteHour ?? cacheWrite ?? input],
      [outputTokens, output],
    ]),
  );
}

/** The prices of a call whose prompt has so many tokens. */
function pricesAt(price: ModelPrice, inputTokens: number): TokenPrices {
  return price.tiers?.findLast(({ above }) => inputTokens > above) ?? price;
}

/**
 * The most that a call may cost in US dollars whose prompt and answer have at most so many tokens: at the most expensive
 * prices that a prompt of up to that length may reach (contract 6.3). No cached tokens are assumed.
 */
export function mostCostOf(
  { inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number },
  price: ModelPrice,
): ExactDollars {
  const reached = [price, ...(price.tiers ?? []).filter(({ above }) => inputTokens > above)];
  const costs = reached.map(({ input, output }) =>
    costOfTokens([
      [inputTokens, input],
      [outputTokens, output],
    ]),
  );
  return costs.reduce((most, each) => (each > most ? each : most), 0n);
}

const FREE: ModelPrice = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

function isOffline(fullName: string): boolean {
  return fullName.startsWith('offline/');
}

function priceIn(entry: unknown): ModelPrice | null {
  if (!isRecord(entry)) return null;
  const input = amount(entry['input_cost_per_token']);
  const output = amount(entry['output_cost_per_token']);
  if (input === null || output === null) return null;
  const base = { input, output, ...cachePricesIn(entry, '') };
  const sizes = new Set(Object.keys(entry).flatMap((field) => Number(IS_PRICE.exec(field)?.[1] ?? 0) || []));
  const tiers: PriceTier[] = [];
  for (const thousands of [...sizes].toSorted((a, b) => a - b)) {
    const suffix = `_above_${thousands}k_tokens`;
    // A tier names the prices that differ from those of shorter prompts.
    const before: TokenPrices = tiers.at(-1) ?? base;
    const own = {
      input: amount(entry[`input_cost_per_token${suffix}`]),
      output: amount(entry[`output_cost_per_token${suffix}`]),
      ...cachePricesIn(entry, suffix),
    };
    const given = Object.fromEntries(Object.entries(own).filter(([, each]) => each !== null));
    tiers.push({ ...before, ...given, above: thousands * 1000 });
  }
  return tiers.length === 0 ? base : { ...base, tiers };
}

function cachePricesIn(
  entry: Readonly<Record<string, unknown>>,
  suffix: string,
): Required<Pick<TokenPrices, 'cacheRead' | 'cacheWrite' | 'cacheWriteHour'>> {
  return {
    cacheRead: amount(entry[`cache_read_input_token_cost${suffix}`]),
    cacheWrite: amount(entry[`cache_creation_input_token_cost${suffix}`]),
    cacheWriteHour: amount(entry[`cache_creation_input_token_cost_above_1hr${suffix}`]),
  };
}

function amount(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

function sorted(entries: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return Object.keys(entries)
    .toSorted()
    .map((key) => [key, priceIn(entries[key])]);
}

/** A price of a token as US dollars for a million tokens, without the rounding errors of binary fractions. */
export function perMillion(usdPerToken: number): number {
  return dollarsOf(1_000_000n * exactDollars(usdPerToken));
}
