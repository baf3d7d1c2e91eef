/**
 * Verifies a record by replaying it: an export, alone or against the record of a service, or the record in the folder of a
 * stopped service.
 */
import { readExport } from '../../audit/export.js';
import type { Difference, Verified, VerifyDeps } from '../../audit/verify.js';
import { parentDifference, verifyRecord, verifyStored } from '../../audit/verify.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { RunUnknown } from '../../run/errors.js';
import { chartCache } from '../../run/chart/machine.js';
import type { RequestInState, RunState } from '../../run/state.js';
import { isFinished } from '../../run/state.js';
import type { System } from '../../system/system.js';
import { fieldOf } from '../../system/untrusted.js';
import type { VerificationResult, VerifiedRecord } from './record.js';
import { linesIn, verificationResult } from './record.js';

interface VerifyOptions extends Pick<System, 'sha256'> {
  /** Expected hash of the last event, or null for any. */
  readonly head: string | null;
}

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
    const verify = (deps: VerifyDeps): Promise<Verified> => verifyRecord(runId, readExport(runId, read), deps);
    const found = await verifiedBy(verify, { runId, head, sha256 });
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
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    return '';
  }
  const runId = fieldOf(fieldOf(event, 'data'), 'runId');
  return typeof runId === 'string' ? runId : '';
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

/** Verifies the record in a folder. For a fork it also finds the forked event in the parent. @throws {RunUnknown} */
export async function verifyInFolder(
  runId: string,
  { log, head, sha256 }: VerifyOptions & { readonly log: ReadOnlyLog },
): Promise<VerificationResult> {
  const verify = (deps: VerifyDeps): Promise<Verified> => verifyStored(runId, { ...deps, log });
  const found = await verifiedBy(verify, { runId, head, sha256 });
  if (found.events === 0 && found.firstDifference === null) throw new RunUnknown({ runId });
  const ofParent = () => parentDifference(found.parent, { log, sha256, onCorrupt: () => undefined });
  const firstDifference = found.firstDifference ?? (await ofParent());
  return verificationResult({ ...found, firstDifference }, head);
}

/** Verifies by a replay, and finds the event with the expected hash. */
async function verifiedBy(
  verify: (deps: VerifyDeps) => Promise<Verified>,
  { runId, head, sha256 }: VerifyOptions & { readonly runId: string },
): Promise<VerifiedRecord & { readonly parent: RequestInState['parent'] }> {
  let headSeq: number | null = null;
  const onReplayed = ({ head: last }: RunState): void => {
    if (last.hash === head) headSeq = last.seq;
  };
  const { events, headHash, firstDifference, run } = await verify({
    charts: chartCache(),
    sha256,
    onReplayed,
  });
  const isComplete = run !== null && isFinished(run);
  return { runId, events, headHash, firstDifference, isComplete, headSeq, parent: run?.request.parent ?? null };
}
