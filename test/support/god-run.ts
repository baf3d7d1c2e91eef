/** Runs in God Mode, and requests of their clients. */
import { nodeSystem } from '../../src/system/system.js';
import type { Context } from '../../src/app/context.js';
import type { GodModeState, Graph } from '../../src/generated/schemas.js';
import type { DecisionRequest } from '../../src/run/pauses/human-decision.js';
import type { RunState } from '../../src/run/state.js';
import { ANYONE } from '../../src/keys/caller.js';
import { runStream } from '../../src/run/events.js';
import { isFinished, openPauseOf, pauseOf } from '../../src/run/state.js';
import { runRequest } from './open-engine.js';
import type { RestClient } from './rest-client.js';
import { runWhen } from './run-when.js';

/** Starts a run that pauses before each node; resolves with its id at its first pause. */
export async function startGodRun(engine: Context, graph: Graph, topic = 'The sea'): Promise<string> {
  const runId = nodeSystem().uuid();
  await engine.registry.start(runRequest(runId, { topic, graph, godMode: true }));
  return runId;
}

export function approvePath(runId: string): string {
  return `/api/councils/run/${runId}/approve`;
}

export async function stateOf(rest: RestClient, runId: string): Promise<GodModeState> {
  return rest.read(await rest.get(`/api/councils/run/${runId}/state`), 200, 'god-mode-state.json');
}

/** Resolves with the revision of the pause when the run waits before these nodes. */
export async function pausedBefore(engine: Context, runId: string, ...nodes: readonly string[]): Promise<number> {
  const paused = await runWhen(engine, runId, (run) => openPauseOf(run)?.nextNodes.join() === nodes.join());
  return pauseOf(paused)?.seq ?? -1;
}

/** Approves every pause of a run, each with a new Idempotency-Key, until the run has ended. */
export async function approveAll(engine: Pick<Context, 'feed' | 'registry'>, runId: string): Promise<RunState> {
  for (let last = 0; ;) {
    const run = await runWhen(engine, runId, (each) => isFinished(each) || (openPauseOf(each)?.number ?? 0) > last);
    const pause = openPauseOf(run);
    if (pause === null) return run;
    last = pause.number;
    await engine.registry.decidePause(runId, decision('approve', { keyHash: `key ${last}` }));
  }
}

/** Makes the record of a paused run corrupt: appends an event whose hash does not follow. */
export async function corruptRecord({ log }: Pick<Context, 'log'>, runId: string): Promise<void> {
  let head = -1;
  for await (const { revision } of log.readStream(runStream(runId))) head = revision;
  const event = { id: nodeSystem().uuid(), type: 'RunFailed', data: '{}', metadata: { occurredAt: '', hash: '' } };
  await log.append(runStream(runId), [event], head);
}

/** A plain decision request for the registry. */
export function decision(action: 'approve' | 'reject', fields: Partial<DecisionRequest> = {}): DecisionRequest {
  const choice = { action, modifiedState: null };
  return { caller: ANYONE, comment: null, keyHash: null, bodyHash: action, expectedSeq: null, choice, ...fields };
}
