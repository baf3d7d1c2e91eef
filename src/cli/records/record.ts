/**
 * The record of a run as the commands read it, from a running service or from the data directory of a stopped one; the
 * result of its verification, and the lines of its export.
 */
import { CouncilError } from '../../errors.js';
import { RunCorrupt } from '../../run/errors.js';
import type { DeliberationRecord, DraftSource, FoldedRun } from '../../generated/schemas.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { Difference, Verified } from '../../audit/verify.js';

export interface StartedBetween {
  readonly from: string;
  readonly to: string;
}

export interface RunRecords {
  /** The export of a run: byte for byte the NDJSON of the events endpoint. @throws {RunUnknown} */
  export(runId: string): AsyncIterable<Uint8Array>;
  /** Ids of the runs that started in this time, bounds included: ISO 8601, UTC, milliseconds. */
  list(started: StartedBetween): AsyncIterable<string>;
  /** The events of a run that are recorded so far. @throws {RunUnknown} */
  events(runId: string): AsyncIterable<ExportedEvent>;
  /** The events of a run, each once: from a service until the run ends, from a folder up to the last. @throws {RunUnknown} */
  follow(runId: string): AsyncIterable<ExportedEvent>;
  /** A run after event `at`, or after its last event if `at` is null. @throws {RunUnknown | EventUnknown} */
  state(runId: string, at: number | null): Promise<FoldedRun>;
  /** What the members of its panels, ranks, judges and juries have answered. @throws {RunUnknown} */
  deliberation(runId: string): Promise<DeliberationRecord>;
  /** The pages of documents that its draft cites; a folder does not know the names of documents. @throws {RunUnknown} */
  sources(runId: string): Promise<readonly DraftSource[]>;
  /** @param head expected hash of the last event, or null for any @throws {RunUnknown} */
  verify(runId: string, head: string | null): Promise<VerificationResult>;
  close(): void;
}

/** The run has no such event. */
export class EventUnknown extends CouncilError<{ readonly runId: string; readonly at: number }> {
  readonly code = 'cli.event-unknown';
  constructor({ runId, at, last }: { readonly runId: string; readonly at: number; readonly last: number }) {
    super(`Cannot find event ${at} of run "${runId}": its last one is event ${last}`, { runId, at });
  }
}

const TERMINAL: readonly string[] = ['RunCompleted', 'RunFailed'];

/** Whether the event is the last one that a run can have. */
export function isTerminal({ type }: Pick<ExportedEvent, 'type'>): boolean {
  return TERMINAL.includes(type);
}

export interface VerificationResult {
  /** Whether the record is valid, or null if its events are valid but more may be missing. */
  readonly isValid: boolean | null;
  readonly runId: string;
  /** Number of valid events, from the first. */
  readonly events: number;
  /** Hash of the last valid event, or 64 zeros if there is none. */
  readonly headHash: string;
  readonly firstDifference: Difference | null;
}

export interface VerifiedRecord extends Pick<Verified, 'events' | 'headHash' | 'firstDifference'> {
  readonly runId: string;
  /** Whether the record is complete: the run has ended in it, or another record confirms it. */
  readonly isComplete: boolean;
  /** Number of the event with the expected hash, or null if there is none. */
  readonly headSeq: number | null;
}

/** @param head expected hash of the last event, or null for any */
export function verificationResult(
  { runId, events, headHash, firstDifference, isComplete, headSeq }: VerifiedRecord,
  head: string | null,
): VerificationResult {
  const difference = firstDifference ?? (head === null || head === headHash ? null : headDifference(events, headSeq));
  const isValid = difference === null && (isComplete || head !== null) ? true : difference === null ? null : false;
  return { isValid, runId, events, headHash, firstDifference: difference };
}

function headDifference(events: number, headSeq: number | null): Difference {
  if (headSeq !== null) return { seq: headSeq + 1, what: 'it follows the event with the expected last hash' };
  return { seq: events, what: 'the record ends before it, and no event has the expected last hash' };
}

/** Longest line accepted, in bytes: an append to the log has at most 1,000,000 bytes, and an escape makes six of one. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * Splits the bytes of an export into lines without their line feed.
 *
 * @throws {RunCorrupt} at a line without an end, too long or not UTF-8
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
