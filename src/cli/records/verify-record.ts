/** Verifies a record by replaying it. */
import type { Verified, VerifyDeps } from '../../audit/verify.js';
import { parentDifference, verifyRecord, verifyStored } from '../../audit/verify.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import { RunUnknown } from '../../run/errors.js';
import { chartCache } from '../../run/chart/machine.js';
import type { RequestInState, RunState } from '../../run/state.js';
import { isFinished } from '../../run/state.js';
import type { System } from '../../system/system.js';
import type { VerificationResult, VerifiedRecord } from './record.js';
import { verificationResult } from './record.js';

export interface VerifyOptions extends Pick<System, 'sha256'> {
  /** Expected hash of the last event, or null for any. */
  readonly head: string | null;
}

/** Verifies events by replaying them, and finds the event with the expected hash. */
export function verifyEvents(
  runId: string,
  events: AsyncIterable<ExportedEvent>,
  options: VerifyOptions,
): Promise<VerifiedRecord> {
  return verifiedBy((deps) => verifyRecord(runId, events, deps), { runId, ...options });
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
