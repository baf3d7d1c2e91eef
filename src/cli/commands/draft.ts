/** `council draft`: writes the draft of a run as a file. */
import { CouncilError } from '../../errors.js';
import type { RunEvent } from '../../client/run-events.js';
import { readConfig } from '../../config.js';
import { runEventIn } from '../../client/run-events.js';
import type { DocxOptions } from '../../docx/docx.js';
import type { Marking } from '../../draft/marking.js';
import { frontMatter, markLine, markProperties, markingOf } from '../../draft/marking.js';
import { RunUnknown } from '../../run/errors.js';
import { nodeSystem } from '../../system/system.js';
import type { RunRecords } from '../records/record.js';
import { writeAtomically } from '../records/files.js';
import { printable } from '../terminal/printer.js';
import type { CommandProcess } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';
import { PLACES, RECORD_OPTIONS, onRecord, runsIn } from './record-command.js';

const USAGE = `Usage: council draft RUN [--format md|docx] [--out FILE] [--url URL]

Writes the final draft of a run, or its current draft if it has no final one.

  --format F   md (the default) for Markdown as it is, docx for Word
  --front-matter  put before the Markdown, as YAML: council, models, run, who approved it and when
  --out FILE   write to FILE instead of standard output; FILE is complete or unchanged
${PLACES}`;

const OPTIONS = {
  ...RECORD_OPTIONS,
  format: { type: 'string' },
  'front-matter': { type: 'boolean' },
  out: { type: 'string' },
} as const;

export function draft(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [runId] = runsIn(positionals);
    const { out } = values;
    const format = formatIn(values.format);
    if (format === 'docx' && out === undefined && deps.isTerminal) {
      throw new UsageFault('A .docx file cannot be shown on a terminal: add --out FILE');
    }
    const run = await deps.reading((records) => records.state(runId, null));
    const draft = run.final_draft ?? run.current_draft;
    if (draft === null) throw new DraftMissing({ runId });
    const marking = async (): Promise<Marking> => {
      const found = await deps.reading((records) =>
        markingOf(runId, (id, read, max) => read(eventsOf(records, id, max))),
      );
      if (found === null) throw new RunUnknown({ runId });
      return found;
    };
    const head = values['front-matter'] === true ? frontMatter(await marking()) : '';
    const file = async (): Promise<Buffer> => {
      const sources = await deps.reading((records) => records.sources(runId));
      return await docx(draft, { title: run.input_topic, sources, mark: markOf(await marking(), here) });
    };
    const bytes = format === 'md' ? Buffer.from(head + draft) : await file();
    if (out !== undefined) await writeAtomically(out, once(bytes), { uuid: nodeSystem().uuid, signal: here.signal });
    else await deps.print(deps.isTerminal ? `${printable(head + draft)}\n` : bytes);
    return EXIT.done;
  });
}

function formatIn(text = 'md'): 'md' | 'docx' {
  if (text === 'md' || text === 'docx') return text;
  throw new UsageFault(`--format takes md or docx; not "${text}"`);
}

/** The run has no draft yet. */
class DraftMissing extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.draft-missing';
  constructor({ runId }: { readonly runId: string }) {
    super(`Run "${runId}" has no draft yet`, { runId });
  }
}

async function* eventsOf(
  records: Pick<RunRecords, 'events'>,
  runId: string,
  max = Number.POSITIVE_INFINITY,
): AsyncGenerator<RunEvent> {
  for await (const event of records.events(runId)) {
    yield runEventIn(JSON.stringify(event));
    if (event.seq + 1 >= max) return;
  }
}

function markOf(marking: Marking, { env }: CommandProcess): DocxOptions['mark'] {
  const line = readConfig(env).marksExports ? markLine(marking) : null;
  return { properties: markProperties(marking), line };
}

async function docx(text: string, options: DocxOptions): Promise<Buffer> {
  const { docxOf } = await import('../../docx/docx.js');
  return await docxOf(text, options, nodeSystem());
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
