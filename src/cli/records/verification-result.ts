/** The result of verifying a record: valid, not valid, or undecided. */
import type { Difference, Verified } from '../../audit/verify.js';
import { verifyRecord } from '../../audit/verify.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import { isFinished } from '../../run/state.js';
import type { ReplayDeps } from '../../run/replay.js';
import { inOneLine } from '../terminal/printer.js';
import type { Styler } from '../terminal/printer.js';

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

/** Verifies events by replaying them, and finds the one with the expected head's hash. */
export async function verifyEvents(
  runId: string,
  events: AsyncIterable<ExportedEvent>,
  { head, ...replayDeps }: ReplayDeps & { readonly head: string | null },
): Promise<VerifiedRecord> {
  let headSeq: number | null = null;
  const onTaken = ({ seq, hash }: { readonly seq: number; readonly hash: string }): void => {
    if (hash === head) headSeq = seq;
  };
  const {
    events: count,
    headHash,
    firstDifference,
    run,
  } = await verifyRecord(runId, events, { ...replayDeps, onTaken });
  return { runId, events: count, headHash, firstDifference, isWhole: run !== null && isFinished(run), headSeq };
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
