/** `council verify`: checks the record of a run, or an export of one. */
import { nodeSystem } from '../../system/system.js';
import { bytesIn } from '../records/files.js';
import type { VerificationResult } from '../records/record.js';
import type { Styler } from '../terminal/printer.js';
import { ReaderGone, inOneLine } from '../terminal/printer.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess } from './command.js';
import { UsageFault, VERIFIED } from './exit-codes.js';
import type { RecordDeps } from './record-command.js';
import { JSON_OPTION, RECORD_OPTIONS, onRecord, runsIn, show } from './record-command.js';

const USAGE = `Usage: council verify RUN|FILE [--head HASH] [--json] [--url URL]

Checks the record of a run, or an export of one, which needs no service and no database. An argument that is not the
id of a run is a file; - is standard input.

  --head HASH  hash of the last event, which finds events that are cut off
  --json       print the result as one JSON object
  --url URL    check the record at a running service, for example http://127.0.0.1:8000, instead of the one in
               DATA_DIR; compare FILE with it
  --help       show this text

Exit code: 0 consistent, 1 not consistent, 2 could not tell, 130 after Ctrl-C.`;

const OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION, head: { type: 'string' } } as const;

const SPEC = { usage: USAGE, options: OPTIONS, exitOnError: VERIFIED.cannotTell } as const;

export function verify(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, SPEC, async ({ values, positionals }, deps) => {
    const [subject] = runsIn(positionals, { what: 'A run or a file' });
    const head = hashIn(values.head);
    const result = isRunId(subject)
      ? await deps.reading((records) => records.verify(subject, head))
      : await verifyFile(subject, { head, here, deps });
    await showResult(result, { isJson: values.json === true, head }, deps);
    if (result.isValid === null) return VERIFIED.cannotTell;
    return result.isValid ? VERIFIED.valid : VERIFIED.notValid;
  });
}

interface FileOptions {
  readonly head: string | null;
  readonly here: CommandProcess;
  readonly deps: RecordDeps;
}

async function verifyFile(file: string, { head, here, deps }: FileOptions): Promise<VerificationResult> {
  const { url, service } = deps;
  const { verifyExport } = await import('../records/verification.js');
  const recorded = url === null ? null : (await service(url)).lines;
  return await verifyExport(bytesIn(file, here.stdin), { sha256: nodeSystem().sha256, head, recorded });
}

async function showResult(
  result: VerificationResult,
  { isJson, head }: { readonly isJson: boolean; readonly head: string | null },
  deps: RecordDeps,
): Promise<void> {
  try {
    await show(isJson ? verificationJson(result) : verificationText(result, deps.style, head), deps);
  } catch (error) {
    // Without a reader the exit code still gives the result.
    if (!(error instanceof ReaderGone)) throw error;
  }
}

const UNFINISHED =
  'the run has not ended in this record, so events may be missing; compare with a hash that you trust (--head HASH)';

/** @param head the hash that the last event must have, or null if the user has named none */
function verificationText(result: VerificationResult, style: Styler, head: string | null): string {
  const { isValid, runId, events, headHash, firstDifference } = result;
  const count = countOf(events, 'consistent event');
  const lines = [`run   ${inOneLine(runId) || 'unknown'}`, `head  ${headHash}`];
  if (firstDifference !== null) {
    const { seq, what } = firstDifference;
    const verdict = style('red', 'not consistent');
    return textOf([`${verdict}: event ${seq}: ${inOneLine(what)}`, `${count} before it`, ...lines]);
  }
  if (isValid === true) {
    const advice = head === null ? ['Compare the head hash with one that you trust (--head HASH)'] : [];
    return textOf([`${style('green', 'consistent')}: ${countOf(events, 'event')}`, ...lines, ...advice]);
  }
  return textOf([`${style('yellow', 'cannot tell')}: ${UNFINISHED}`, count, ...lines]);
}

/** The shape of GET /api/runs/{run_id}/verify; `valid` is null if the result is undecided. */
function verificationJson({ isValid, runId, events, headHash, firstDifference }: VerificationResult): object {
  return { run_id: runId, valid: isValid, events, head_hash: headHash, first_difference: firstDifference };
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** Run ids are UUIDs. */
function isRunId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

function hashIn(text: string | undefined): string | null {
  if (text === undefined) return null;
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase();
  throw new UsageFault('--head takes 64 hexadecimal digits');
}
