/** A run's state as one flat record, to compare some of its fields at once. */
import type { RunState } from '../../src/run/state.js';
import { completedAtOf, failureOf, finalDraftOf, pauseOf } from '../../src/run/state.js';

/** Every field of a run but those of its request; empty when there is no run. */
export function wholeOf(run: RunState | null | undefined): object {
  if (run === null || run === undefined) return {};
  return {
    runId: run.runId,
    createdAt: run.createdAt,
    requestedTopic: run.request.inputTopic,
    ...run.head,
    ...run.phase,
    ...run.ownership,
    ...run.progress,
    pause: pauseOf(run),
    completedAt: completedAtOf(run),
    finalDraft: finalDraftOf(run),
    failure: failureOf(run),
  };
}
