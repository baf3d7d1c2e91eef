/** Verifies an export, alone or against the record of the service. */
import type { Difference } from '../../audit/verify.js';
import { readExport } from '../../audit/export.js';
import type { VerificationResult } from '../records/record.js';
import { linesIn, verificationResult } from '../records/record.js';
import type { VerifyOptions } from '../records/verify-record.js';
import { verifyEvents } from '../records/verify-record.js';

export interface VerifyExportDeps extends VerifyOptions {
  /** The lines of the service's record of a run, or null to verify the export alone. */
  readonly recorded: ((runId: string) => AsyncGenerator<string>) | null;
}

/**
 * Verifies the bytes of an export.
 *
 * @throws what reading the record of the service throws
 */
export async function verifyExport(
  chunks: AsyncIterable<Uint8Array>,
  { head, sha256, recorded }: VerifyExportDeps,
): Promise<VerificationResult> {
  const lines = linesIn(chunks, '');
  const first = await firstOf(lines);
  const runId = first.runId;
  const other = recorded === null || runId === '' ? null : recorded(runId);
  const comparison: Comparison = { difference: null, isEqual: false };
  try {
    const read = other === null ? first.lines : compared(first.lines, other, comparison);
    const found = await verifyEvents(runId, readExport(runId, read), { head, sha256 });
    const firstDifference = earlier(found.firstDifference, comparison.difference);
    return verificationResult({ ...found, firstDifference, isComplete: found.isComplete || comparison.isEqual }, head);
  } finally {
    await other?.return(undefined);
  }
}

interface Comparison {
  difference: Difference | null;
  /** Whether the export and the record are equal to the last line. */
  isEqual: boolean;
}

/** The run id in the first line of an export, or '' if there is none, and all lines. */
async function firstOf(
  lines: AsyncGenerator<string>,
): Promise<{ readonly runId: string; readonly lines: AsyncIterable<string> }> {
  let first: IteratorResult<string, unknown>;
  try {
    first = await lines.next();
  } catch (error) {
    return { runId: '', lines: failing(error) };
  }
  const line = first.done === true ? null : first.value;
  async function* all(): AsyncGenerator<string> {
    if (line === null) return;
    yield line;
    yield* lines;
  }
  return { runId: line === null ? '' : runIdIn(line), lines: all() };
}

async function* failing(error: unknown): AsyncGenerator<string> {
  throw error;
}

function runIdIn(line: string): string {
  const event = parsed(line);
  const data: unknown = typeof event === 'object' && event !== null ? Reflect.get(event, 'data') : null;
  const runId: unknown = typeof data === 'object' && data !== null ? Reflect.get(data, 'runId') : null;
  return typeof runId === 'string' ? runId : '';
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Passes the lines through and notes the first difference from the other record. */
async function* compared(
  lines: AsyncIterable<string>,
  other: AsyncGenerator<string>,
  comparison: Comparison,
): AsyncGenerator<string> {
  let seq = 0;
  for await (const line of lines) {
    if (comparison.difference === null) {
      const recorded = await other.next();
      if (recorded.done === true) comparison.difference = { seq, what: 'the record of the service ends before it' };
      else if (recorded.value !== line)
        comparison.difference = { seq, what: 'the record of the service has another event there' };
    }
    yield line;
    seq += 1;
  }
  if (comparison.difference !== null) return;
  const isMore = (await other.next()).done !== true;
  if (isMore) comparison.difference = { seq, what: 'the export ends before it, the record of the service continues' };
  else comparison.isEqual = true;
}

function earlier(one: Difference | null, other: Difference | null): Difference | null {
  if (one === null || other === null) return one ?? other;
  return other.seq < one.seq ? other : one;
}
