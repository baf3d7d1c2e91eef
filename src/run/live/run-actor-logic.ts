/**
 * The XState actor logic of a run. Transitions are computed by `Chart.next` before a fact is recorded; the actor only
 * moves to the resulting snapshot once the log has acknowledged it.
 */
import type { ActorLogic } from 'xstate';
import type { RunEvent } from '../events.js';
import type { RunSnapshot } from '../machine.js';
import { copyOf } from '../state.js';

/** An append has been acknowledged: its facts, and the snapshot after them. */
interface Recorded {
  readonly type: 'recorded';
  readonly facts: readonly RunEvent[];
  readonly to: RunSnapshot;
}

export type RunActorLogic = ActorLogic<RunSnapshot, Recorded | { readonly type: 'xstate.stop' }>;

export const runActorLogic: RunActorLogic = {
  transition: (snapshot, event) => (event.type === 'recorded' ? event.to : snapshot),
  getInitialSnapshot() {
    throw new Error('A run starts from its recorded facts');
  },
  getPersistedSnapshot: (snapshot) => snapshot,
};

/** A snapshot computed when its facts were decided, completed with the id and hash of the last as recorded. */
export function asRecorded(decided: RunSnapshot, last: RunEvent | undefined): RunSnapshot {
  const { run } = decided.context;
  if (last?.seq !== run.seq) throw new Error(`Event ${last?.seq} does not end the facts decided up to ${run.seq}`);
  const recorded = copyOf(run);
  recorded.hash = last.hash;
  recorded.lastEventId = last.id;
  return { ...decided, context: { run: recorded } };
}
