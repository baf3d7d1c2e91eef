/** `council prices`: lists what the service charges for the tokens of a model, and where each price comes from. */
import { createPrices } from '../../app/model.js';
import { readConfig } from '../../config.js';
import type { PriceTable } from '../../models/prices.js';
import { modelCatalog } from '../../models/providers.js';
import { nodeSystem } from '../../system/system.js';
import { inOneLine } from '../terminal/printer.js';
import type { CommandProcess } from './command.js';
import { HELP, execute } from './command.js';
import { EXIT } from './exit-codes.js';

const USAGE = `Usage: council prices [MODEL...]

Lists the price of each MODEL, named as a node of a blueprint names it, or of all known models. It reads the settings of the
service, PRICES_FILE among them, and needs no running service.

  --help  show this text

Exit code: 0 done, 1 a MODEL has no price, 2 wrong usage or setting.`;

const TITLES = ['MODEL', 'INPUT', 'OUTPUT', 'CACHE READ', 'CACHE WRITE', 'FROM'];

export function prices(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: HELP }, async ({ positionals }, { print }) => {
    const config = readConfig(here.env);
    const table = createPrices(config.prices, nodeSystem().sha256);
    const { names, fullName } = modelCatalog(config.providers);
    const known = table.models();
    // A full name in the table needs no configured provider.
    const named = positionals.map((word) => (known.includes(word) ? word : fullName(word)));
    const models = [...new Set(named.length > 0 ? named : [...names.map(fullName), ...known])];
    const rows = [TITLES, ...models.map((model) => rowOf(model, table))];
    await print(`US dollars per million tokens, pricesHash ${table.hash}\n${aligned(rows)}`);
    const isPriced = models.every((model) => table.priceOf(model) !== null);
    return named.length === 0 || isPriced ? EXIT.done : EXIT.failed;
  });
}

/** The prices that a call is charged at: a cached token without a price of its own costs as much as another. */
function rowOf(model: string, table: PriceTable): readonly string[] {
  const price = table.priceOf(model);
  if (price === null) return [inOneLine(model), 'no price'];
  const { input, output, cacheRead, cacheWrite } = price;
  const amounts = [input, output, cacheRead ?? input, cacheWrite ?? input].map(perMillion);
  return [model, ...amounts, table.originOf(model) ?? ''].map(inOneLine);
}

/** Without the rounding errors of binary fractions. */
function perMillion(dollarsPerToken: number): string {
  return String(Number((dollarsPerToken * 1_000_000).toPrecision(9)));
}

/** Columns two spaces apart. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths = TITLES.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const lineOf = (row: readonly string[]): string => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ');
  return rows.map((row) => `${lineOf(row).trimEnd()}\n`).join('');
}
