/**
 * The benchmark: `npm run bench -- [--quick] [--only engine,rest,… | --eventstore]`. Prints a Markdown table on standard
 * output and its progress on standard error.
 */
import { parseArgs } from 'node:util';
import { enginePart } from './engine.js';
import { eventStorePart } from './event-store.js';
import type { Effort, Figure, Part } from './figure.js';
import { FULL_EFFORT, QUICK_EFFORT, unmeasured } from './figure.js';
import { httpModelsPart } from './http-models.js';
import { listsPart } from './lists.js';
import { machineLine } from './machine.js';
import { memoryPart } from './memory.js';
import { restPart } from './rest.js';
import { searchPart } from './search.js';
import { startUpPart } from './start-up.js';
import { tableOf } from './table.js';

const PARTS = [enginePart, restPart, httpModelsPart, startUpPart, memoryPart, searchPart, listsPart];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    eventstore: { type: 'boolean', default: false },
  },
});
await main(values.eventstore ? [eventStorePart] : partsNamed(values.only), values.quick ? QUICK_EFFORT : FULL_EFFORT);

async function main(parts: readonly Part[], effort: Effort): Promise<void> {
  const machine = machineLine();
  const from = performance.now();
  const figures: Figure[] = [];
  for (const part of parts) figures.push(...(await measured(part, effort)));
  const seconds = Math.round((performance.now() - from) / 1_000);
  const quick = effort === QUICK_EFFORT ? ' Measured with --quick: a smoke test, no benchmark.' : '';
  process.stdout.write(
    `${machine}\n\nMedian of the rounds, lowest to highest and their number beside it; measured in ${seconds} s.${quick}\n\n` +
      `${tableOf(figures)}\n\n${parts.map((part) => `- **${part.name}**: ${part.method(effort)}`).join('\n')}\n`,
  );
}

/** A failed part is named in the table and sets the exit code; the other parts are measured anyway. */
async function measured(part: Part, effort: Effort): Promise<readonly Figure[]> {
  process.stderr.write(`bench: ${part.name} …\n`);
  try {
    return await part.measure(effort);
  } catch (error) {
    process.exitCode = 1;
    process.stderr.write(
      `bench: ${part.name} failed: ${error instanceof Error ? (error.stack ?? '') : String(error)}\n`,
    );
    return [unmeasured(part.name, '', error instanceof Error ? error.message : String(error))];
  }
}

function partsNamed(only: string | undefined): readonly Part[] {
  if (only === undefined) return PARTS;
  return only.split(',').map((name) => {
    const part = PARTS.find((each) => each.name === name.trim());
    if (part !== undefined) return part;
    throw new Error(`Cannot measure "${name}": the parts are ${PARTS.map((each) => each.name).join(', ')}`);
  });
}
