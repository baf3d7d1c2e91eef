/**
 * A run's life as an XState actor. Where its chart moves is worked out by `Chart.next`, before a fact is recorded; the
 * actor stands where what is recorded has led.
 */
import type { ActorLogic } from 'xstate';
import type { RunEvent } from '../events.js';
import type { RunSnapshot } from '../machine.js';
import { copyOf } from '../state.js';

/** An append has been acknowledged: its facts, and where the chart goes by them. */
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

/** A snapshot foreseen as its facts were decided, at the last of them as it was recorded: now with its id and hash. */
export function asRecorded(foreseen: RunSnapshot, last: RunEvent | undefined): RunSnapshot {
  const { run } = foreseen.context;
  if (last?.seq !== run.seq) throw new Error(`Event ${last?.seq} does not end the facts foreseen up to ${run.seq}`);
  const recorded = copyOf(run);
  recorded.hash = last.hash;
  recorded.lastEventId = last.id;
  return { ...foreseen, context: { run: recorded } };
}
