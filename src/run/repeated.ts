/** What an earlier request with the same Idempotency-Key has led to, as the run's own stream tells it. */
import { KeyReused } from '../errors.js';
import type { RunRequestedData } from '../generated/schemas.js';
import type { EventLog } from '../log/port.js';
import type { GateOutcome } from './gate.js';
import { outcomeOf } from './gate.js';
import { readRun } from './stream.js';

/**
 * What the start of a run asked for; null when there is no such run.
 *
 * @throws {KeyReused} its body was another
 */
export async function requestedBefore(
  log: EventLog,
  runId: string,
  bodyHash: string,
): Promise<RunRequestedData | null> {
  for await (const { type, data } of readRun(log, runId, { max: 1 })) {
    if (type !== 'RunRequested') break;
    if (data.bodyHash !== bodyHash) throw new KeyReused({ runId });
    return data;
  }
  return null;
}

/**
 * What a decision with this key made of the run; null when there was none, or no key is given. Reads the stream, which
 * the limit of node executions bounds.
 *
 * @throws {KeyReused} its body was another
 */
export async function decidedBefore(
  log: EventLog,
  runId: string,
  { keyHash, bodyHash }: { readonly keyHash: string | null; readonly bodyHash: string },
): Promise<GateOutcome | null> {
  if (keyHash === null) return null;
  for await (const { type, data } of readRun(log, runId)) {
    if (type !== 'GateDecided' || data.keyHash !== keyHash) continue;
    if (data.bodyHash !== bodyHash) throw new KeyReused({ runId });
    return outcomeOf(data.action);
  }
  return null;
}
