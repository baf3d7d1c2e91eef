/** `council draft`: writes the draft of a run as a file. */
import { CouncilError } from '../../errors.js';
import type { DraftSource } from '../../generated/schemas.js';
import { nodeSystem } from '../../system/system.js';
import { writeAtomically } from '../records/files.js';
import { printable } from '../terminal/printer.js';
import type { CommandProcess } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';
import { PLACES, RECORD_OPTIONS, onRecord, runsIn } from './record-command.js';

const USAGE = `Usage: council draft RUN [--format md|docx] [--out FILE] [--url URL]

Writes the final draft of a run, or its current draft if it has no final one.

  --format F   md (the default) for Markdown as it is, docx for Word
  --out FILE   write to FILE instead of standard output; FILE is complete or unchanged
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, format: { type: 'string' }, out: { type: 'string' } } as const;

export function draft(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [runId] = runsIn(positionals);
    const { format = 'md', out } = values;
    if (format !== 'md' && format !== 'docx') throw new UsageFault(`--format takes md or docx; not "${format}"`);
    if (format === 'docx' && out === undefined && deps.isTerminal) {
      throw new UsageFault('A .docx file cannot be shown on a terminal: add --out FILE');
    }
    const sources = (): Promise<readonly DraftSource[]> => deps.reading((records) => records.sources(runId));
    const run = await deps.reading((records) => records.state(runId, null));
    const text = run.final_draft ?? run.current_draft;
    if (text === null) throw new DraftMissing({ runId });
    const file = format === 'md' ? Buffer.from(text) : await docx(text, run.input_topic, await sources());
    if (out !== undefined) await writeAtomically(out, once(file), { uuid: nodeSystem().uuid, signal: here.signal });
    else await deps.print(deps.isTerminal ? `${printable(text)}\n` : file);
    return EXIT.done;
  });
}

/** The run has no draft yet. */
class DraftMissing extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.draft-missing';
  constructor({ runId }: { readonly runId: string }) {
    super(`Run "${runId}" has no draft yet`, { runId });
  }
}

async function docx(text: string, title: string, sources: readonly DraftSource[]): Promise<Buffer> {
  const { docxOf } = await import('../../docx/docx.js');
  return await docxOf(text, { title, sources }, nodeSystem());
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
