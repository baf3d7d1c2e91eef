/**
 * A run's record as the commands read it, from a running service or the data directory of a stopped one; what its
 * verification found, and the lines of its export.
 */
import { CouncilError } from '../../errors.js';
import { RunCorrupt } from '../../run/errors.js';
import type { FoldedRun } from '../../generated/schemas.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { Difference, Verified } from '../../audit/verify.js';
import type { Styler } from '../terminal/printer.js';
import { inOneLine } from '../terminal/printer.js';

export interface RunRecords {
  /** A run's export: its events as lines, byte for byte as the events endpoint gives them. @throws {RunUnknown} */
  export(runId: string): AsyncIterable<Uint8Array>;
  /** A run's events as they are recorded, each once, to its end, or to what is there when nothing can follow here. @throws {RunUnknown} */
  follow(runId: string): AsyncIterable<ExportedEvent>;
  /** A run after an event; null: after its last. @throws {RunUnknown | EventUnknown} */
  state(runId: string, at: number | null): Promise<FoldedRun>;
  /** @param head hash that the last event should have; null: whatever it has @throws {RunUnknown} */
  verify(runId: string, head: string | null): Promise<VerificationResult>;
  close(): void;
}

/** The run has no such event yet. */
export class EventUnknown extends CouncilError<{ readonly runId: string; readonly at: number }> {
  readonly code = 'cli.event-unknown';
  constructor({ runId, at, last }: { readonly runId: string; readonly at: number; readonly last: number }) {
    super(`Cannot find event ${at} of run "${runId}": its last one is event ${last}`, { runId, at });
  }
}

const TERMINAL: readonly string[] = ['RunCompleted', 'RunFailed'];

/** Whether no event of a run can follow. */
export function isTerminal({ type }: Pick<ExportedEvent, 'type'>): boolean {
  return TERMINAL.includes(type);
}

// The result of verifying a record: valid, not valid, or undecided.

export interface VerificationResult {
  /** Null: all its events are valid, but whether it is complete cannot be known. */
  readonly isValid: boolean | null;
  readonly runId: string;
  /** Valid events, counted from the first. */
  readonly events: number;
  /** Hash of the last of them; 64 zeros when there is none. */
  readonly headHash: string;
  readonly firstDifference: Difference | null;
}

export interface VerifiedRecord extends Pick<Verified, 'events' | 'headHash' | 'firstDifference'> {
  readonly runId: string;
  /** Whether the record is known to be complete: nothing can follow its last event, or another record confirms it. */
  readonly isWhole: boolean;
  /** Revision of the event with the expected head's hash; null when there is none. */
  readonly headSeq: number | null;
}

/** @param head hash that the last event should have; null: whatever it has */
export function verificationResult(
  { runId, events, headHash, firstDifference, isWhole, headSeq }: VerifiedRecord,
  head: string | null,
): VerificationResult {
  const difference = firstDifference ?? (head === null || head === headHash ? null : headDifference(events, headSeq));
  const isValid = difference === null && (isWhole || head !== null) ? true : difference === null ? null : false;
  return { isValid, runId, events, headHash, firstDifference: difference };
}

function headDifference(events: number, headSeq: number | null): Difference {
  if (headSeq !== null) return { seq: headSeq + 1, what: 'it follows the event with the hash that should be the last' };
  return { seq: events, what: 'the record ends before it, and no event has the hash that should be the last' };
}

// The result as text for the terminal, and as JSON.

const UNFINISHED =
  'the run has not ended in it, so that more may belong to it: compare the head with one you trust (--head HASH)';

export function verificationText(result: VerificationResult, style: Styler): string {
  const { isValid, runId, events, headHash, firstDifference } = result;
  const count = `${events} ${events === 1 ? 'event bears' : 'events bear'} out`;
  const lines = [`run   ${inOneLine(runId) || 'unknown'}`, `head  ${headHash}`];
  if (firstDifference !== null) {
    const { seq, what } = firstDifference;
    const verdict = style('red', 'not valid');
    return textOf([`${verdict}: event ${seq}: ${inOneLine(what)}`, `${count} before it`, ...lines]);
  }
  if (isValid === true) return textOf([`${style('green', 'valid')}: ${count}`, ...lines]);
  return textOf([`${style('yellow', 'cannot tell')}: ${UNFINISHED}`, count, ...lines]);
}

/** As GET /api/runs/{run_id}/verify answers; `valid` is null when it is undecided. */
export function verificationJson({ isValid, runId, events, headHash, firstDifference }: VerificationResult): object {
  return { run_id: runId, valid: isValid, events, head_hash: headHash, first_difference: firstDifference };
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

// Splits the bytes of an export into lines, strictly: any deviation from the written form is a difference.

/** Longest line taken, in bytes: an append to the log is at most 512 KiB, each byte of it six in an escape. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * Each line without its line feed.
 *
 * @throws {RunCorrupt} at a line that has no end, is too long or is not UTF-8
 */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>, runId: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let seq = 0;
  let partial: Uint8Array[] = [];
  let bytes = 0;
  const corruptAt = (reason: string): RunCorrupt => new RunCorrupt({ runId, seq, reason });
  const keep = (chunk: Uint8Array): void => {
    bytes += chunk.length;
    if (bytes > MAX_LINE_BYTES) throw corruptAt(`its line is longer than ${MAX_LINE_BYTES} bytes`);
    if (chunk.length > 0) partial.push(chunk);
  };
  const line = (): string => {
    try {
      return decoder.decode(partial.length === 1 ? partial[0] : Buffer.concat(partial));
    } catch {
      throw corruptAt('its line is not UTF-8');
    }
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      keep(chunk.subarray(from, end));
      yield line();
      [seq, partial, bytes, from] = [seq + 1, [], 0, end + 1];
    }
    keep(chunk.subarray(from));
  }
  if (bytes > 0) throw corruptAt('its line is cut off');
}
