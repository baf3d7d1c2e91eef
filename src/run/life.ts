/** A run's life as an XState actor: it stands where its chart has come to by what is recorded. */
import type { ActorLogic } from 'xstate';
import type { RunEvent } from './events.js';
import type { Chart, RunSnapshot } from './machine.js';
import { copyOf } from './state-copy.js';

/** An append has been acknowledged. */
interface Recorded {
  readonly type: 'recorded';
  readonly facts: readonly RunEvent[];
  /** Where the facts lead, when that was worked out as they were decided; else it is worked out now. */
  readonly foreseen: RunSnapshot | null;
}

export type Life = ActorLogic<RunSnapshot, Recorded | { readonly type: 'xstate.stop' }>;

export function lifeOn(chart: Chart): Life {
  return {
    transition(snapshot, event) {
      if (event.type !== 'recorded') return snapshot;
      const { facts, foreseen } = event;
      return borneOut(foreseen, facts.at(-1)) ?? facts.reduce((before, fact) => chart.next(before, fact), snapshot);
    },
    getInitialSnapshot() {
      throw new Error('A run starts from its recorded facts');
    },
    getPersistedSnapshot: (snapshot) => snapshot,
  };
}

/** A snapshot foreseen, at its last fact as that was recorded: until then it had neither id nor hash. */
export function borneOut(foreseen: RunSnapshot | null, last: RunEvent | undefined): RunSnapshot | null {
  const run = foreseen?.context.run;
  if (run === undefined || last?.seq !== run.seq) return null;
  const borne = copyOf(run);
  borne.hash = last.hash;
  borne.lastEventId = last.id;
  return { ...foreseen, context: { run: borne } } as RunSnapshot;
}
