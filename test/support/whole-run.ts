import type { RunState } from '../../src/run/state.js';
import { completedAtOf, failureOf, finalDraftOf, pauseOf } from '../../src/run/state.js';

/** A run's state without its request as one flat record; empty if there is no run. */
export function flatState(run: RunState | null | undefined): object {
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
