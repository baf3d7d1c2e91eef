/** `council prices`: lists what the service charges for the tokens of a model, and where each price comes from. */
import { createPrices } from '../../app/model.js';
import { readConfig } from '../../config.js';
import type { PriceTable } from '../../models/prices.js';
import { perMillion } from '../../models/prices.js';
import type { ModelCatalog } from '../../models/providers.js';
import { modelCatalog } from '../../models/providers.js';
import { nodeSystem } from '../../system/system.js';
import { inOneLine } from '../terminal/printer.js';
import { tableText } from '../terminal/table.js';
import type { CommandProcess } from './command.js';
import { HELP, execute } from './command.js';
import { EXIT } from './exit-codes.js';

const USAGE = `Usage: council prices [MODEL...]

Lists the price of each MODEL, named as a node of a blueprint names it, or of all known models. It reads the settings of the
service, PRICES_FILE among them, and needs no running service.

  --help  show this text

Exit code: 0 done, 1 a MODEL has no price or no provider, 2 wrong usage or setting.`;

const TITLES = ['MODEL', 'INPUT', 'OUTPUT', 'CACHE READ', 'CACHE WRITE', 'FROM'];

export function prices(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: HELP }, async ({ positionals }, { print, notify }) => {
    const config = readConfig(here.env);
    const table = createPrices(config.prices, nodeSystem().sha256);
    const catalog = modelCatalog(config.providers);
    const known = table.models();
    const asked = positionals.map((word) => askedAs(word, catalog, table));
    for (const { word, full, fault } of asked) {
      if (fault === null && full !== word) notify(`"${word}" is asked as ${full}`);
    }
    const all = [...new Set([...catalog.names.map(catalog.fullName), ...known])];
    const listed = asked.length > 0 ? asked : all.map((full) => ({ word: full, full, fault: null }));
    const rows = new Map(listed.map(({ word, full, fault }) => [fault === null ? full : word, fault]));
    const lines = [TITLES, ...[...rows].map(([model, fault]) => rowOf(model, fault, table))];
    const head = `US dollars per million tokens, default provider ${catalog.names[0] ?? ''}, pricesHash ${table.hash}`;
    await print(`${head}\n${tableText(lines)}`);
    const isPriced = asked.every(({ full, fault }) => fault === null && table.priceOf(full) !== null);
    return isPriced ? EXIT.done : EXIT.failed;
  });
}

interface Asked {
  readonly word: string;
  /** The full name of the model that a node with this word asks. */
  readonly full: string;
  /** Why the word names no model with a price, or null if it does, or may. */
  readonly fault: string | null;
}

/** A full name in the table needs no configured provider. */
function askedAs(word: string, { names, fullName }: ModelCatalog, table: PriceTable): Asked {
  if (table.models().includes(word)) return { word, full: word, fault: null };
  const full = fullName(word);
  const [prefix = ''] = word.split('/');
  const isNamed = prefix === word || names.includes(prefix);
  // The offline model costs nothing under any name: it would hide the missing provider.
  const isPriced = names[0] !== 'offline' && table.priceOf(full) !== null;
  return { word, full, fault: isNamed || isPriced ? null : `no provider named "${prefix}"` };
}

/** The prices that a call is charged at: a cached token without a price of its own costs as much as another. */
function rowOf(model: string, fault: string | null, table: PriceTable): readonly string[] {
  const price = table.priceOf(model);
  if (fault !== null || price === null) return [inOneLine(model), fault ?? 'no price'];
  const { input, output, cacheRead, cacheWrite } = price;
  const amounts = [input, output, cacheRead ?? input, cacheWrite ?? input].map((price) => String(perMillion(price)));
  return [model, ...amounts, table.originOf(model) ?? ''].map(inOneLine);
}
