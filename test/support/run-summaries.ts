/** Runs as rows of the stored history. */
import type { RunSummary } from '../../src/projections/run-summary.js';

/** A running run of the built-in council, with these fields changed. */
export function summaryWith(id: string, fields: Partial<RunSummary> = {}): RunSummary {
  return {
    id,
    seq: 0,
    blueprintId: null,
    actor: null,
    parent: null,
    owner: null,
    inputTopic: 'The sea',
    status: 'running',
    executionMode: 'auto-pilot',
    activeNode: null,
    finalDraft: null,
    criticScore: null,
    iterationCount: null,
    error: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    completedAt: null,
    waitingSince: null,
    deadlineAt: null,
    approvers: null,
    waitedMs: 0,
    usage: null,
    session: null,
    ...fields,
  };
}
