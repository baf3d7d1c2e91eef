/** `council export`: writes the events of a run as lines of JSON. */
import { nodeSystem } from '../../system/system.js';
import { writeAtomically } from '../records/files.js';
import type { RunRecords } from '../records/record.js';
import { linesIn } from '../records/record.js';
import type { CommandProcess } from './command.js';
import { EXIT } from './exit-codes.js';
import type { RecordDeps } from './record-command.js';
import { PLACES, RECORD_OPTIONS, jsonText, onRecord, runsIn } from './record-command.js';

const USAGE = `Usage: council export RUN [--out FILE] [--url URL]

Writes the events of a run as lines of JSON, which council verify checks anywhere.

  --out FILE   write to FILE instead of standard output; FILE is complete or unchanged
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, out: { type: 'string' } } as const;

export function exportRun(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run] = runsIn(positionals);
    const { out } = values;
    return await deps.reading(async (records) => {
      if (out === undefined) return await exportTo(deps, records, run);
      await writeAtomically(out, records.export(run), { uuid: nodeSystem().uuid, signal: here.signal });
      return EXIT.done;
    });
  });
}

/** Prints an export byte for byte, but on a terminal with the characters escaped that would control it. */
export async function exportTo(deps: RecordDeps, records: RunRecords, run: string): Promise<number> {
  const { print, isTerminal } = deps;
  if (isTerminal) for await (const line of linesIn(records.export(run), run)) await print(jsonText(line, deps));
  else for await (const chunk of records.export(run)) await print(chunk);
  return EXIT.done;
}
