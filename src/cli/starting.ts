/** Starts a run at a service, so that it is started once and its id is known whatever becomes of the answers. */
import { CouncilError } from '../errors.js';
import type { RunOrder } from './driver.js';
import type { Reading } from './reading.js';
import type { Patience } from './persist.js';
import { isAway, openOutage } from './persist.js';
import type { RestCalls } from './rest.js';
import { ServiceUnreachable } from './rest.js';

/** Longest that the clean-up after a start is waited for, in milliseconds. */
const CLEAN_UP_DEADLINE_MS = 5_000;

/** Nobody knows whether the service has started the run. */
export class StartUnknown extends CouncilError {
  readonly code = 'cli.start-unknown';
  constructor(cause: Error) {
    super(`Cannot tell whether the run has started: ${cause.message}`, {}, { cause });
  }
}

export interface Starting {
  readonly rest: RestCalls;
  readonly read: Reading;
  readonly patience: Patience;
  /** Of this start alone. */
  readonly idempotencyKey: string;
}

/**
 * Resolves with the id of the run. A blueprint is saved for the start alone: the run keeps it frozen, the service does
 * not; one that cannot be deleted again is told by its id.
 *
 * @throws {ServiceRefused | ServiceUnreachable | StartUnknown}
 */
export async function startRun({ topic, isGodMode, blueprint }: RunOrder, starting: Starting): Promise<string> {
  const { rest, read, patience } = starting;
  const { tell, signal } = patience;
  const body = { input_topic: topic, god_mode: isGodMode };
  if (blueprint === null) return await startSurely('/api/councils/run', body, starting);
  const { name, nodes, edges } = blueprint;
  const draft = { name, nodes, ...(edges && { edges }) };
  const { id } = read(await rest.send('POST', '/api/councils/', { body: draft, signal }), 'blueprint.json');
  try {
    return await startSurely(`/api/councils/${id}/run`, body, starting);
  } finally {
    await rest
      .send('DELETE', `/api/councils/${id}`, { signal: AbortSignal.timeout(CLEAN_UP_DEADLINE_MS) })
      .catch((error: unknown) => tell(`Warning: blueprint "${id}" stays at the service: ${messageOf(error)}`));
  }
}

/** A start whose answer is lost is sent again with the same key: the service starts it once. */
async function startSurely(path: string, body: object, starting: Starting): Promise<string> {
  const { rest, read, patience, idempotencyKey } = starting;
  const outage = openOutage(patience);
  for (let isUnsure = false; ; isUnsure = true) {
    try {
      const reply = await rest.send('POST', path, { body, idempotencyKey, signal: patience.signal });
      return read(reply, 'run-start.json').run_id;
    } catch (error) {
      const isUnsent = error instanceof ServiceUnreachable && !error.data.isSent;
      if (!isAway(error) || (isUnsent && !isUnsure)) throw error;
      if (!(await outage.sitOut())) throw new StartUnknown(error);
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
