/** Serializers of runs: from the domain's records to the wire's snake_case names. */
import { shownParent } from './parent-run.js';
import type { RunVerification } from '../../audit/verify.js';
import type {
  BudgetStatus,
  FoldedRun,
  ForkPlan as ForkPlanAnswer,
  GateAction,
  GodModeState,
  HistoryRecord,
  PauseApprovals as PauseApprovalsShown,
  PauseVote,
  Reservation,
  RunRequestedData,
  RunResult,
  RunStart,
  RunUsage,
  Verification,
} from '../../generated/schemas.js';
import type { RunSummary } from '../../projections/run-summary.js';
import { durationOf } from '../../projections/run-summary.js';
import type { RunSpending } from '../../run/budget/spending.js';
import type { UsageTotals } from '../../run/effort.js';
import type { ForkPlan } from '../../run/fork.js';
import type { DecisionOutcome } from '../../run/pauses/human-decision.js';
import type { PauseApprovals, PauseView } from '../../run/pauses/pause-view.js';
import type { RunPause, RunState, Vote } from '../../run/state.js';
import { dollarsOf, roundedDollars } from '../../system/dollars.js';

/** The answer to a start. It depends only on the first event, so that a repeated request gets the same answer. */
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

/** The answer to a poll. @param needed what the next calls need in all, or null if the run is not paused for its budget */
export function runResult(run: RunSummary, needed: Reservation | null = null): RunResult {
  const { session } = run;
  return {
    run_id: run.id,
    status: run.status,
    final_draft: run.finalDraft,
    final_output: run.finalOutput ?? null,
    critic_score: run.criticScore,
    iteration_count: run.iterationCount,
    error: run.error,
    material_bytes: run.materialBytes ?? 0,
    ...shownParent(run.parentRun),
    paused: session === null ? null : run.status === 'paused',
    next_nodes: session === null ? null : [...session.nextNodes],
    current_draft: session === null ? null : session.currentDraft,
    usage: run.usage === null ? null : runUsage(run.usage),
    ...(run.pauseReason !== undefined && { pause_reason: run.pauseReason }),
    ...(run.budget !== undefined && { budget: budgetStatus(run.budget, needed) }),
  };
}

/** The budget of a run, and what it needs to go on, or null if the run is not paused for its budget. */
export function budgetOfRun({ budget, spent }: RunSpending, needed: Reservation | null): BudgetStatus {
  const spentUsd = spent.usd === null ? null : dollarsOf(spent.usd);
  return budgetStatus({ ...budget, spentUsd, spentTokens: spent.tokens }, needed);
}

function budgetStatus(
  { usd, tokens, spentUsd, spentTokens, onExceeded }: NonNullable<RunSummary['budget']>,
  needed: Reservation | null,
): BudgetStatus {
  const status = { usd, tokens, spent_usd: dollars(spentUsd), spent_tokens: spentTokens, on_exceeded: onExceeded };
  return needed === null ? status : { ...status, needed_usd: needed.usd, needed_tokens: needed.tokens };
}

/** The answer to a decision: only its immediate effect. */
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

/** What a client sees of a pause beside its view. */
export interface PauseAccess {
  /** Whether the caller may decide. */
  readonly mayDecide: boolean;
  /** What the next calls need in all, or null if the run is not paused for its budget. */
  readonly needed: Reservation | null;
}

/** The state for a human's decision. */
export function godModeState(
  { run, pause, seq, branches, approvals }: PauseView,
  { mayDecide, needed }: PauseAccess,
): GodModeState {
  const { runId, progress, request, spending } = run;
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
    allowed_actions: actionsAt(pause),
    ...(pause?.reason === 'budget' && { pause_reason: pause.reason }),
    ...(spending !== null && { budget: budgetOfRun(spending, needed) }),
    blueprint: { id: request.blueprintId, name: request.blueprintName, hash: request.graphHash },
    ...(branches.length > 1 && { branches: branches.map(({ node, draft }) => ({ node, current_draft: draft })) }),
    ...(approvals !== null && { approvals: pauseApprovals(approvals, mayDecide) }),
  };
}

function actionsAt(pause: RunPause | null): GateAction[] {
  if (pause === null) return [];
  return pause.reason === 'budget' ? ['approve', 'reject'] : ['approve', 'reject', 'modify'];
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

/** One approver's vote on a pause. */
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
    material_bytes: run.materialBytes ?? 0,
    ...shownParent(run.parentRun),
    status: run.status,
    execution_mode: run.executionMode,
    final_draft: run.finalDraft,
    critic_score: run.criticScore,
    iteration_count: run.iterationCount,
    error: run.error,
    created_at: run.createdAt,
    completed_at: run.completedAt,
    duration_ms: durationOf(run),
    waited_ms: run.waitedMs,
    usage: run.usage === null ? null : runUsage(run.usage),
    trial: run.isTrial,
  };
}

/** What a run has used. */
export function runUsage(usage: UsageTotals): RunUsage {
  return { ...totals(usage), by_model: usage.byModel.map((each) => ({ model: each.model, ...totals(each) })) };
}

function totals(usage: Omit<UsageTotals, 'byModel'>): Omit<RunUsage, 'by_model'> {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    reasoning_tokens: usage.reasoningTokens,
    cost_usd: dollars(usage.costUsd),
    calls: usage.calls,
    repeated_calls: usage.repeatedCalls,
    unmetered_calls: usage.calls - usage.toldCalls,
    unpriced_calls: usage.calls - usage.pricedCalls,
  };
}

/** US dollars rounded to 10^-12, or null if unknown. */
export function dollars(usd: number | null): number | null {
  return usd === null ? null : roundedDollars(usd);
}

/** A run folded from its events. */
export function foldedRun(run: RunState): FoldedRun {
  const { phase, progress } = run;
  const { shown } = progress;
  return {
    run_id: run.runId,
    seq: run.head.seq,
    status: phase.status,
    active_node: progress.activeNode,
    input_topic: progress.inputTopic,
    material: run.request.material ?? null,
    current_draft: shown.draft,
    final_draft: phase.status === 'completed' ? phase.finalDraft : null,
    final_output: phase.status === 'completed' ? (phase.finalOutput ?? null) : null,
    critic_score: shown.score,
    iteration_count: progress.iterationCount,
    feedback_history: shown.feedback.map(({ text }) => text),
    route_decision: shown.verdict,
    error: phase.status === 'failed' ? phase.failure.error : null,
    paused: phase.status === 'paused',
    next_nodes: phase.status === 'paused' ? [...phase.pause.nextNodes] : [],
  };
}

/** The result of verifying a run's record. @param ledger the place of its leaf, or null if it has none */
export function verification(
  runId: string,
  { events, headHash, firstDifference }: RunVerification,
  ledger: Verification['ledger'],
): Verification {
  return {
    run_id: runId,
    valid: firstDifference === null,
    events,
    head_hash: headHash,
    first_difference: firstDifference,
    ledger,
  };
}

/** What a fork would do. */
export function forkPlan({ reusedResults, nextNodes }: ForkPlan): ForkPlanAnswer {
  return { reused_results: reusedResults, new_calls_at_least: nextNodes.length, next_nodes: [...nextNodes] };
}
