/** Verifies a record by replaying it. */
import { parentDifference, verifyRecord } from '../../audit/verify.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import { RunUnknown } from '../../run/errors.js';
import { machineCache } from '../../run/machine.js';
import type { RunState } from '../../run/state.js';
import { isFinished } from '../../run/state.js';
import { readRun } from '../../run/stream.js';
import type { System } from '../../system/system.js';
import type { VerificationResult, VerifiedRecord } from './record.js';
import { verificationResult } from './record.js';

export interface VerifyOptions extends Pick<System, 'sha256'> {
  /** Hash that the last event should have; null: whatever it has. */
  readonly head: string | null;
}

/** Verifies events by replaying them, and finds the one with the expected head's hash. */
export async function verifyEvents(
  runId: string,
  events: AsyncIterable<ExportedEvent>,
  { head, sha256 }: VerifyOptions,
): Promise<VerifiedRecord> {
  let headSeq: number | null = null;
  const onTaken = ({ head: last }: RunState): void => {
    if (last.hash === head) headSeq = last.seq;
  };
  const {
    events: count,
    headHash,
    firstDifference,
    run,
  } = await verifyRecord(runId, events, { machines: machineCache(), sha256, onTaken });
  return { runId, events: count, headHash, firstDifference, isWhole: run !== null && isFinished(run), headSeq };
}

/** Verifies the record in a folder, and that its parent has the event it was forked from. @throws {RunUnknown} */
export async function verifyStored(
  runId: string,
  { log, head, sha256 }: VerifyOptions & { readonly log: ReadOnlyLog },
): Promise<VerificationResult> {
  let first: ExportedEvent | null = null;
  async function* events(): AsyncGenerator<ExportedEvent> {
    for await (const event of readRun(log, runId)) {
      first ??= event;
      yield event;
    }
  }
  const found = await verifyEvents(runId, events(), { head, sha256 });
  if (found.events === 0 && found.firstDifference === null) throw new RunUnknown({ runId });
  const ofParent = () => parentDifference(first, { log, sha256, onCorrupt: () => undefined });
  const firstDifference = found.firstDifference ?? (await ofParent());
  return verificationResult({ ...found, firstDifference }, head);
}
