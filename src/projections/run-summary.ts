/** What poll and history tell of a run: one flat record, derived from the fold alone. */
import type { ExecutionMode } from '../generated/schemas.js';
import type { RunState, RunStatus } from '../run/state.js';
import { iterationShown } from '../run/state.js';

/** A cut of the history. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

export interface RunSummary {
  readonly id: string;
  /** Revision of the last event it was folded from. */
  readonly seq: number;
  readonly blueprintId: string | null;
  /** The topic of the start, whatever a human made of it later. */
  readonly inputTopic: string;
  readonly status: RunStatus;
  readonly executionMode: ExecutionMode;
  /** Instance that runs it now; null when none does. */
  readonly owner: string | null;
  /** Node started last; while paused the first that waits; `done` after completion. */
  readonly activeNode: string | null;
  readonly finalDraft: string | null;
  readonly criticScore: number | null;
  /** Null before the first draft. */
  readonly iterationCount: number | null;
  readonly error: string | null;
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string;
  /** Time of the terminal event, of failures too. */
  readonly completedAt: string | null;
  /** What a human decides on: set only in God Mode. */
  readonly session: { readonly nextNodes: readonly string[]; readonly currentDraft: string | null } | null;
}

export function summaryOf(run: RunState): RunSummary {
  return {
    id: run.runId,
    seq: run.seq,
    blueprintId: run.blueprintId,
    inputTopic: run.requestedTopic,
    status: run.status,
    executionMode: run.executionMode,
    owner: run.owner,
    activeNode: run.activeNode,
    finalDraft: run.finalDraft,
    criticScore: run.shown.score,
    iterationCount: iterationShown(run),
    error: run.failure?.error ?? null,
    createdAt: run.createdAt,
    completedAt: run.completedAt,
    session: sessionOf(run),
  };
}

function sessionOf(run: RunState): RunSummary['session'] {
  if (!run.godMode) return null;
  const waiting = run.status === 'paused' && run.gate !== null ? run.gate.nextNodes : [];
  return { nextNodes: waiting, currentDraft: run.shown.draft };
}
