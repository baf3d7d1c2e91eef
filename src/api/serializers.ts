/** Serializers of answers: the one place that writes the wire's snake_case names. */
import type { RunVerification } from '../audit/verify.js';
import type {
  Document,
  DocumentVerification,
  FoldedRun,
  ForkPlan as ForkPlanAnswer,
  GodModeState,
  HistoryRecord,
  Key,
  NewKey,
  PauseApprovals as PauseApprovalsShown,
  PauseVote,
  RunRequestedData,
  RunResult,
  RunStart,
  RunTotals,
  Session,
  Verification,
} from '../generated/schemas.js';
import type { DocumentCheck } from '../documents/verify.js';
import type { DocumentRecord } from '../documents/events.js';
import type { Grant } from '../keys/caller.js';
import type { Key as KeyState } from '../keys/state.js';
import type { NewKey as AddedKey } from '../keys/store.js';
import type { ListedDocument } from '../projections/documents.js';
import type { RunSummary } from '../projections/run-summary.js';
import type { ModelEffort } from '../run/effort.js';
import type { ForkPlan } from '../run/fork.js';
import type { DecisionOutcome } from '../run/human-decision.js';
import type { PauseApprovals, PauseView } from '../run/pause-view.js';
import type { RunState, Vote } from '../run/state.js';

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

/** The answer to a decision: only what the decision itself settles. */
export function decisionResult(runId: string, { status, error }: DecisionOutcome): RunResult {
  return {
    run_id: runId,
    status,
    final_draft: null,
    critic_score: null,
    iteration_count: null,
    error,
    paused: null,
    next_nodes: null,
    current_draft: null,
  };
}

/** The state a human decides on, and whether the caller may decide. */
export function godModeState({ run, pause, seq, branches, approvals }: PauseView, isAllowed: boolean): GodModeState {
  const { runId, progress, request } = run;
  const { shown } = progress;
  return {
    run_id: runId,
    paused: pause !== null,
    next_nodes: pause === null ? [] : [...pause.nextNodes],
    current_state: {
      input_topic: progress.inputTopic,
      current_draft: shown.draft,
      critic_score: shown.score,
      iteration_count: progress.iterationCount,
      feedback_history: shown.feedback.map(({ text }) => text),
      route_decision: shown.verdict,
      active_node: progress.activeNode,
      run_id: runId,
    },
    seq,
    paused_at: pause?.pausedAt ?? null,
    allowed_actions: pause === null ? [] : ['approve', 'reject', 'modify'],
    blueprint: { id: request.blueprintId, name: request.blueprintName, hash: request.graphHash },
    ...(branches.length > 1 && { branches: branches.map(({ node, draft }) => ({ node, current_draft: draft })) }),
    ...(approvals !== null && { approvals: pauseApprovals(approvals, isAllowed) }),
  };
}

/** The approvers of a pause, and their votes. */
function pauseApprovals(
  { by, notByStarter, quorum, votes, deadline, deadlineThen }: PauseApprovals,
  isAllowed: boolean,
): PauseApprovalsShown {
  return {
    by: by === null ? null : [...by],
    not_by_starter: notByStarter,
    quorum,
    deadline,
    ...(deadlineThen !== null && { deadline_then: deadlineThen }),
    votes: votes.map(pauseVote),
    may_decide: isAllowed,
  };
}

/** One of several approvers' word on a pause. */
export function pauseVote({ actor, choice, at, comment }: Vote): PauseVote {
  return { actor, action: choice.action, at, comment };
}

/** A run as the history shows it. */
export function historyRecord(run: RunSummary): HistoryRecord {
  return {
    id: run.id,
    blueprint_id: run.blueprintId,
    actor: run.actor,
    input_topic: run.inputTopic,
    status: run.status,
    execution_mode: run.executionMode,
    final_draft: run.finalDraft,
    critic_score: run.criticScore,
    iteration_count: run.iterationCount,
    error: run.error,
    created_at: run.createdAt,
    completed_at: run.completedAt,
    duration_ms: run.completedAt === null ? null : Date.parse(run.completedAt) - Date.parse(run.createdAt),
    waited_ms: run.waitedMs,
    usage: run.usage === null ? null : usage(run.usage),
  };
}

function usage({ byModel, ...total }: RunTotals): NonNullable<HistoryRecord['usage']> {
  return {
    ...counts(total),
    by_model: byModel.map((each) => ({ model: each.model, ...counts(each) })),
  };
}

function counts({ calls, repeatedCalls, meteredCalls, inputTokens, outputTokens }: Omit<ModelEffort, 'model'>) {
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    calls,
    repeated_calls: repeatedCalls,
    unmetered_calls: calls - meteredCalls,
  };
}

/** A run as the record has it after an event. */
export function foldedRun(run: RunState): FoldedRun {
  const { phase, progress } = run;
  const { shown } = progress;
  return {
    run_id: run.runId,
    seq: run.head.seq,
    status: phase.status,
    active_node: progress.activeNode,
    input_topic: progress.inputTopic,
    current_draft: shown.draft,
    final_draft: phase.status === 'completed' ? phase.finalDraft : null,
    critic_score: shown.score,
    iteration_count: progress.iterationCount,
    feedback_history: shown.feedback.map(({ text }) => text),
    route_decision: shown.verdict,
    error: phase.status === 'failed' ? phase.failure.error : null,
    paused: phase.status === 'paused',
    next_nodes: phase.status === 'paused' ? [...phase.pause.nextNodes] : [],
  };
}

/** A document in the list; a corrupt one has an error beside its recorded fields. */
export function listedDocument({ isCorrupt, ...record }: ListedDocument): Document {
  return { ...documentRecord(record), ...(isCorrupt && { error: 'The record of this document is damaged' }) };
}

/** A document as it is shown. */
export function documentRecord({ id, filename, pages, chunks, ingestedAt }: DocumentRecord): Document {
  return { id, filename, pages, chunks, ingested_at: ingestedAt };
}

/** The result of verifying a run's record. */
export function verification(runId: string, { events, headHash, firstDifference }: RunVerification): Verification {
  return {
    run_id: runId,
    valid: firstDifference === null,
    events,
    head_hash: headHash,
    first_difference: firstDifference,
  };
}

/** The result of verifying a document's record. */
export function documentVerification(documentId: string, check: DocumentCheck): DocumentVerification {
  const { events, headHash, firstDifference } = check;
  const valid = firstDifference === null;
  return { document_id: documentId, valid, events, head_hash: headHash, first_difference: firstDifference };
}

/** What a fork would do. */
export function forkPlan({ reusedResults, nextNodes }: ForkPlan): ForkPlanAnswer {
  return { reused_results: reusedResults, new_calls_at_least: nextNodes.length, next_nodes: [...nextNodes] };
}

// Keys and sessions.

/** A key as it is listed. */
export function keyRecord({ name, scopes, addedAt, addedBy, expiresAt, revoked, lastUsed }: KeyState): Key {
  return {
    name,
    scopes: [...scopes],
    created_at: addedAt,
    created_by: addedBy,
    expires_at: expiresAt,
    revoked_at: revoked?.at ?? null,
    revoked_by: revoked?.by ?? null,
    last_used: lastUsed,
  };
}

/** A key with its text: the one answer that ever shows it. */
export function newKey({ key, text }: AddedKey): NewKey {
  const { name, scopes, addedAt, expiresAt } = key;
  return { name, scopes: [...scopes], created_at: addedAt, expires_at: expiresAt, key: text };
}

/** The caller. */
export function session({ actor, scopes, expiresAt }: Grant): Session {
  return { actor, scopes: [...scopes], expires_at: expiresAt };
}
