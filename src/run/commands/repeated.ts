/** What an earlier request with the same Idempotency-Key has led to, as the run's own stream tells it. */
import { KeyReused } from '../../errors.js';
import type { RunRequestedData } from '../../generated/schemas.js';
import type { EventLog } from '../../eventlog/port.js';
import type { GateOutcome } from '../human-decision.js';
import { outcomeOf } from '../human-decision.js';
import type { RunState } from '../state.js';
import { readRun } from '../stream.js';

/**
 * What the start of a run asked for; null when there is no such run.
 *
 * @param bodyHashes that an equal body may have been recorded with
 * @throws {KeyReused} its body was another
 */
export async function requestedBefore(
  log: EventLog,
  runId: string,
  bodyHashes: readonly string[],
): Promise<RunRequestedData | null> {
  for await (const { type, data } of readRun(log, runId, { max: 1 })) {
    if (type !== 'RunRequested') break;
    if (!bodyHashes.includes(data.bodyHash)) throw new KeyReused({ runId });
    return data;
  }
  return null;
}

/** How a decision is known again. */
interface KeyedRequest {
  readonly keyHash: string | null;
  readonly bodyHash: string;
  /** What earlier versions, which hashed bodies as they were sent, recorded of an equal request. */
  readonly sentHash?: string;
}

/**
 * What a decision with this key made of the run; null when there was none, or no key is given.
 *
 * @throws {KeyReused} its body was another
 */
export function decidedBefore(
  { runId, decisions }: RunState,
  { keyHash, bodyHash, sentHash }: KeyedRequest,
): GateOutcome | null {
  const earlier = decisions.find((each) => each.keyHash === keyHash);
  if (earlier === undefined) return null;
  if (earlier.bodyHash !== bodyHash && earlier.bodyHash !== sentHash) throw new KeyReused({ runId });
  return outcomeOf(earlier.action);
}
