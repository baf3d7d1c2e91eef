/** Cancels an unfinished run, wherever it is: live here or elsewhere, paused or still pending. */
import { RunFinished, RunUnknown } from '../errors.js';
import type { RunActor } from '../live/actor.js';
import { handleCommand } from '../../eventsourcing/handle-command.js';
import type { RunCommand } from '../decide.js';
import { decide } from '../decide.js';
import type { RunFact } from '../events.js';
import type { DecisionContext } from '../pending-events.js';
import type { RunState } from '../state.js';
import type { Replay } from '../replay.js';

/** What the registry provides. */
export interface CancelDeps {
  /** Name of the key that cancels; null: the service has none. */
  readonly actor: string | null;
  readonly context: () => DecisionContext;
  /** The run's actor when it is live here. */
  readonly live: () => RunActor | undefined;
  /** The run as it is recorded; null when there is none. @throws {ServiceStopping} */
  readonly replay: () => Promise<Replay | null>;
  /** @throws {RevisionConflict} when another append came first */
  readonly record: (replayed: Replay, facts: readonly RunFact[]) => Promise<RunState>;
}

/** @throws {RunUnknown | RunFinished | RunCorrupt} */
export async function cancelRun(runId: string, deps: CancelDeps): Promise<RunState> {
  for (;;) {
    const actor = deps.live();
    const run = actor === undefined ? await cancelAtRest(runId, deps) : await cancelLive(actor, commandOf(deps));
    if (run !== null) return run;
  }
}

/** @returns null when the run has left the actor in the meantime */
async function cancelLive(actor: RunActor, command: RunCommand): Promise<RunState | null> {
  const facts = await actor.send(command);
  if (facts?.length === 0) throw tooLate(actor.run);
  return facts === null ? null : actor.run;
}

/** @returns null when the run has become live here in the meantime */
function cancelAtRest(runId: string, deps: CancelDeps): Promise<RunState | null> {
  const { live, replay, record, context } = deps;
  return handleCommand({
    read: replay,
    decide(replayed) {
      if (live() !== undefined) return null;
      if (replayed === null) throw new RunUnknown({ runId });
      const { facts } = decide(replayed.chart, replayed.snapshot, {
        command: commandOf(deps),
        context: context(),
      });
      if (facts.length === 0) throw tooLate(replayed.snapshot.context.run);
      return { replayed, facts };
    },
    append: async (cancelled) => cancelled && (await record(cancelled.replayed, cancelled.facts)),
  });
}

function commandOf({ actor }: CancelDeps): RunCommand {
  return { type: 'CancelRun', actor };
}

function tooLate({ runId, phase }: RunState): RunFinished {
  return new RunFinished({ runId, status: phase.status, action: 'cancel' });
}
