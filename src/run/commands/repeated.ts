/** Finds the outcome of an earlier request with the same Idempotency-Key in the run's own stream. */
import { KeyReused } from '../errors.js';
import type { RunRequestedData } from '../../generated/schemas.js';
import type { EventLog } from '../../eventlog/port.js';
import type { GateOutcome } from '../human-decision.js';
import { outcomeOf } from '../human-decision.js';
import type { RunState } from '../state.js';
import { readRun } from '../stream.js';

/**
 * The recorded request of a run; null when there is no such run.
 *
 * @param bodyHashes hashes that an equal body may have been recorded with
 * @throws {KeyReused} when its body was another
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

/** The hashes by which a repeated decision is recognized. */
interface KeyedRequest {
  readonly keyHash: string | null;
  readonly bodyHash: string;
  /** The body hash that earlier versions, which hashed bodies as sent, recorded for an equal request. */
  readonly sentHash?: string;
}

/**
 * The outcome of an earlier decision with this key; null when there was none, or no key is given.
 *
 * @throws {KeyReused} when its body was another
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
