/** Cancels an unfinished run: live here or elsewhere, paused or pending. */
import { handleCommand } from '../../eventsourcing/handle-command.js';
import type { RunCommand } from '../decide.js';
import { decide } from '../decide.js';
import { RunFinished, RunUnknown } from '../errors.js';
import type { RunActor } from '../live/actor.js';
import type { LiveRuns } from '../live/live-runs.js';
import type { RunRepository } from '../live/run-repository.js';
import type { RunState } from '../state.js';

export interface CancelDeps {
  readonly runs: RunRepository;
  readonly liveRuns: LiveRuns;
}

/** @throws {RunUnknown | RunFinished | RunCorrupt | ServiceStopping} */
export async function cancelRun(runId: string, actor: string | null, deps: CancelDeps): Promise<RunState> {
  const command: RunCommand = { type: 'CancelRun', actor };
  for (;;) {
    deps.runs.assertTakingWork();
    const live = deps.liveRuns.actor(runId);
    const run = live === null ? await cancelAtRest(runId, command, deps) : await cancelLive(live, command);
    if (run !== null) return run;
  }
}

/** @returns the cancelled run, or null if its actor has stopped meanwhile */
async function cancelLive(actor: RunActor, command: RunCommand): Promise<RunState | null> {
  const facts = await actor.send(command);
  if (facts?.length === 0) throw finishedError(actor.run);
  return facts === null ? null : actor.run;
}

/** @returns the cancelled run, or null if it has become live here meanwhile */
function cancelAtRest(runId: string, command: RunCommand, { runs, liveRuns }: CancelDeps): Promise<RunState | null> {
  return handleCommand({
    read: () => runs.load(runId),
    decide(replayed) {
      if (liveRuns.has(runId)) return null;
      if (replayed === null) throw new RunUnknown({ runId });
      const { facts } = decide(replayed.chart, replayed.snapshot, { command, context: runs.decisionContext() });
      if (facts.length === 0) throw finishedError(replayed.snapshot.context.run);
      return { replayed, facts };
    },
    append: async (cancelled) => cancelled && (await runs.append(runId, cancelled.replayed, cancelled.facts)),
  });
}

function finishedError({ runId, phase }: RunState): RunFinished {
  return new RunFinished({ runId, status: phase.status, action: 'cancel' });
}
