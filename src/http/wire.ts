/** What goes over the wire, in its names: the one place where this edge writes snake_case (specification, Resources). */
import type { HistoryRecord, RunEventsPage, RunRequestedData, RunResult, RunStart } from '../generated/schemas.js';
import type { EventsPage } from '../projections/run-queries.js';
import type { RunSummary } from '../projections/run-summary.js';

/** The answer to a start; a function of what was recorded first, so that a repeated request gets the same one. */
export function runStart({
  runId,
  blueprintName,
  godMode,
}: Pick<RunRequestedData, 'runId' | 'blueprintName' | 'godMode'>): RunStart {
  const council = blueprintName === null ? '' : ` of "${blueprintName}" (${godMode ? 'God Mode' : 'Auto-Pilot'})`;
  return {
    run_id: runId,
    status: 'pending',
    message: `Run ${runId}${council} is under way: follow it at /ws/council/${runId}`,
  };
}

/** The answer to a poll. */
export function runResult(run: RunSummary): RunResult {
  const { session } = run;
  return {
    run_id: run.id,
    status: run.status,
    final_draft: run.finalDraft,
    critic_score: run.criticScore,
    iteration_count: run.iterationCount,
    error: run.error,
    paused: session === null ? null : run.status === 'paused',
    next_nodes: session === null ? null : [...session.nextNodes],
    current_draft: session === null ? null : session.currentDraft,
  };
}

/** A run as the history shows it. */
export function historyRecord(run: RunSummary): HistoryRecord {
  return {
    id: run.id,
    blueprint_id: run.blueprintId,
    input_topic: run.inputTopic,
    status: run.status,
    execution_mode: run.executionMode,
    final_draft: run.finalDraft,
    critic_score: run.criticScore,
    iteration_count: run.iterationCount,
    error: run.error,
    created_at: run.createdAt,
    completed_at: run.completedAt,
  };
}

/** A page of a run's events. */
export function eventsPage(runId: string, { events, next }: EventsPage): RunEventsPage {
  return { run_id: runId, events: [...events], next };
}
