/** A human's decision on a pause, as facts. The instance that accepts it claims the run in the same append. */
import type {
  BudgetChange,
  DecisionReview,
  GateAction,
  GateChoice,
  GateDecidedData,
  RunResumedData,
  StateOverride,
  VoteCastData,
} from '../../generated/schemas.js';
import { canonical } from '../../eventsourcing/canonical-json.js';
import type { ApprovalRule } from '../../graph/approvals.js';
import { jsonBytes } from '../../graph/limits.js';
import type { Caller } from '../../keys/caller.js';
import { approversOf, isDue, refusalOf, ruleAt, votesFor } from './approvals.js';
import { humanSource } from '../frontier/branch.js';
import { scheduleNext } from '../decide.js';
import { fail } from '../ends.js';
import type { Chart, RunSnapshot } from '../chart/machine.js';
import type { DecisionContext } from '../pending-events.js';
import { budgetAfter } from '../budget/decision.js';
import { REJECTED } from '../budget/end.js';
import { AnotherDraftSeen, KeyReused, NotApprover, PauseMoved, VotesUsedUp } from '../errors.js';
import { PendingEvents } from '../pending-events.js';
import { effectiveOverride, routeUnderOverride } from './override.js';
import type { Replay } from '../replay.js';
import type { KeyedDecision, RunPause, RunState } from '../state.js';
import { openPauseOf } from '../state.js';

/** A request for a decision on a paused run, or a vote on it. */
export interface DecisionRequest {
  /** The caller that decides or votes. */
  readonly caller: Caller;
  readonly comment: string | null;
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string | null;
  readonly bodyHash: string;
  /** Revision of the pause that it answers, or null to answer any open pause. */
  readonly expectedSeq: number | null;
  /** At a pause for the budget: the new totals. */
  readonly budget?: BudgetChange | undefined;
  /** What the person had before them, if their client says so. */
  readonly review?: DecisionReview | undefined;
  /** The choice, or what is wrong with it, which is thrown only if the run is paused and this caller may decide. */
  readonly choice: GateChoice | Error;
}

/** A choice, with the override as sent; `sentState` is absent if there was none or it is not applied. */
type SentChoice = GateChoice & Pick<GateDecidedData, 'sentState'>;

/** Most votes recorded at one pause, so that approvers who change their votes again and again cannot fill the log. */
const MAX_VOTES = 1_000;

/** The run's status right after a decision. */
export interface DecisionOutcome {
  readonly status: 'running' | 'failed' | 'paused';
  readonly error: string | null;
}

/** The outcome of a vote: the pause waits for more. */
const VOTED: DecisionOutcome = { status: 'paused', error: null };

/** The outcome of an action. It depends on nothing else, so that a repeated request gets the same answer. */
function outcomeOf(action: GateAction): DecisionOutcome {
  return action === 'reject' ? { status: 'failed', error: REJECTED } : { status: 'running', error: null };
}

/**
 * The outcome of an earlier decision with the key of a request, or null if there was none or the request has no key.
 *
 * @param vote with this key that the record does not hold
 * @throws {KeyReused} when its body differs
 */
export function decidedBefore(
  { runId, decisions }: RunState,
  { keyHash, bodyHash }: DecisionRequest,
  vote: KeyedDecision | undefined,
): DecisionOutcome | null {
  const earlier = keyHash === null ? undefined : (decisions.find((each) => each.keyHash === keyHash) ?? vote);
  if (earlier === undefined) return null;
  if (earlier.bodyHash !== bodyHash) throw new KeyReused({ runId });
  return earlier.isVote ? VOTED : outcomeOf(earlier.action);
}

/**
 * What a request decides at the open pause: a decision, or only a vote before the quorum is reached; no facts if this
 * approver has cast the same vote before.
 *
 * @throws {NotApprover | PauseMoved | AnotherDraftSeen | OverrideRefused | VotesUsedUp | BudgetRefused} or the request's `choice`, if it is an error
 */
export function decisionOn(
  { chart, snapshot }: Replay,
  pause: RunPause,
  { request, context }: { readonly request: DecisionRequest; readonly context: DecisionContext },
): { readonly pending: PendingEvents; readonly action: GateAction; readonly outcome: DecisionOutcome } {
  const pending = new PendingEvents(chart, snapshot, context);
  const { run } = pending;
  const { caller, comment, keyHash, bodyHash, expectedSeq, review } = request;
  const { actor } = caller;
  // 1. Whether this caller may decide, what it chooses, and whether it answers this pause.
  assertApprover(run, pause, { caller });
  if (request.choice instanceof Error) throw request.choice;
  const { sentState, ...choice } = effectiveChoice(run, pause, request.choice);
  const { action } = choice;
  if (expectedSeq !== null && expectedSeq !== pause.seq) {
    throw new PauseMoved({ runId: run.runId, expectedSeq, actualSeq: pause.seq });
  }
  // 2. How the run continues: an override may lead to nodes that need other approvers.
  const continuation = continuationOf(run, pause, choice);
  const rule = assertApprover(run, pause, { caller, chosen: continuation.nextNodes });
  const budget = budgetAfter(run, pause, { decision: { action, budget: request.budget }, context });
  // 3. What the person had before them.
  const reference = pauseReference(pending, pause);
  const reviewed = review && reviewOf(run, review, reference);
  // 4. The decision, if it has its quorum; else a vote, unless it is cast already.
  const data = { ...choice, comment, keyHash, bodyHash, ...reviewed, actor };
  if (action === 'reject' || approversOf(pause, { ...choice, actor }).size >= (rule?.quorum ?? 1)) {
    const sent = { ...(sentState !== undefined && { sentState }), ...(budget !== null && { budget }) };
    pending.write({ type: 'GateDecided', data: { ...data, ...sent, ...reference, ...continuation } });
    applyDecision(pending, pause, { ...continuation, failure: action === 'reject' ? REJECTED : null });
    return { pending, action, outcome: outcomeOf(action) };
  }
  const { gate, shownDraftHash } = reference;
  castVote(pending, pause, { ...data, gate, shownDraftHash });
  return { pending, action, outcome: VOTED };
}

/** Records a vote, unless this approver has cast the same one before. @throws {VotesUsedUp} */
function castVote(pending: PendingEvents, pause: RunPause, data: VoteCastData): void {
  if (votesFor(pause.votes, data).some((vote) => vote.actor === data.actor)) return;
  if (pause.votesCast >= MAX_VOTES) throw new VotesUsedUp({ runId: pending.run.runId, limit: MAX_VOTES });
  pending.write({ type: 'VoteCast', data });
}

/** The approval rule of a pause, or null if it has none. @throws {NotApprover} when it does not let the caller decide */
function assertApprover(
  run: RunState,
  pause: RunPause,
  { caller, chosen = [] }: { readonly caller: Caller; readonly chosen?: readonly string[] },
): ApprovalRule | null {
  const rule = ruleAt(run, pause, chosen);
  const reason = refusalOf(run.request, rule, caller);
  if (reason !== null) throw new NotApprover({ runId: run.runId, actor: caller.actor, reason });
  return rule;
}

/** Continues after a decision: fails the run, or resumes it with the next nodes. */
function applyDecision(
  pending: PendingEvents,
  { number: gate }: RunPause,
  { nextNodes, failure }: Pick<GateDecidedData, 'nextNodes'> & { readonly failure: string | null },
): void {
  if (failure !== null) return fail(pending, { kind: 'rejected', error: failure, node: null });
  resume(pending, { gate, nextNodes: [...nextNodes] });
  scheduleNext(pending, nextNodes);
}

/** What the deadline of the open pause leads to; no facts if it has no deadline or the deadline has not passed. */
export function applyDeadline(chart: Chart, snapshot: RunSnapshot, context: DecisionContext): PendingEvents {
  const pending = new PendingEvents(chart, snapshot, context);
  const { run } = pending;
  const pause = openPauseOf(run);
  const deadline = pause === null ? null : (ruleAt(run, pause)?.deadline ?? null);
  if (pause === null || deadline === null || !isDue(run, pause, context.at)) return pending;
  const { then: action, after_ms: afterMs } = deadline;
  if (typeof action === 'object') {
    pending.write({ type: 'PauseEscalated', data: { gate: pause.number, to: action.escalate } });
    return pending;
  }
  const choice: GateChoice = { action, modifiedState: null };
  const continuation = continuationOf(run, pause, choice);
  const byDeadline = { by: 'deadline', actor: null, comment: null, keyHash: null } as const;
  const bodyHash = context.sha256(canonical({ action }));
  const data = { ...choice, ...byDeadline, bodyHash, ...pauseReference(pending, pause), ...continuation };
  pending.write({ type: 'GateDecided', data });
  const failure = action === 'reject' ? `Rejected in God Mode: nobody decided within ${afterMs} ms` : null;
  applyDecision(pending, pause, { ...continuation, failure });
  return pending;
}

/** Resumes the run. The instance that accepts the decision becomes its owner. */
function resume(pending: PendingEvents, resumed: Omit<RunResumedData, 'epoch'>): void {
  const { run, context } = pending;
  const epoch = run.ownership.epoch + 1;
  pending.write({ type: 'RunClaimed', data: { epoch, instanceId: context.instanceId, reason: 'resumed' } });
  pending.write({ type: 'RunResumed', data: { epoch, ...resumed } });
}

/** The pause that a decision answers, and the draft that it showed. */
function pauseReference({ run, context }: PendingEvents, { number: gate, seq }: RunPause) {
  const { draft } = run.progress.shown;
  return { gate, answers: seq, shownDraftHash: draft === null ? null : context.sha256(draft) };
}

/** What a decision records of what its person saw. @throws {AnotherDraftSeen} */
function reviewOf(
  { runId }: RunState,
  review: DecisionReview,
  { shownDraftHash }: { readonly shownDraftHash: string | null },
): { readonly review: DecisionReview } {
  if (review.draftSha256 !== shownDraftHash) throw new AnotherDraftSeen({ runId });
  return { review };
}

/** How the run continues after a decision. */
type Continuation = Pick<GateDecidedData, 'nextNodes' | 'route' | 'overrideVersion'>;

/** @throws {OverrideRefused} when no edge of the last node holds under the override */
function continuationOf(
  run: RunState,
  { number, nextNodes: shown }: RunPause,
  { action, modifiedState }: GateChoice,
): Continuation {
  if (action === 'reject') return { nextNodes: [], route: null };
  if (action === 'approve' || modifiedState === null) return { nextNodes: [...shown], route: null };
  const { nextNodes, route } = routeUnderOverride(run, modifiedState, {
    source: humanSource(number, run.progress.steps),
    shown,
  });
  return { nextNodes: [...nextNodes], route, overrideVersion: 2 };
}

/**
 * A choice reduced to its effect, with the override as sent. The effect of an override is its difference from what the
 * pause shows.
 *
 * @throws {OverrideRefused} when the override is not allowed
 */
function effectiveChoice(run: RunState, { nextNodes }: RunPause, choice: GateChoice): SentChoice {
  if (choice.action !== 'modify' || choice.modifiedState === null) return choice;
  const modifiedState = effectiveOverride(run, choice.modifiedState, nextNodes);
  return { action: 'modify', modifiedState, sentState: recordedOverride(modifiedState, choice.modifiedState) };
}

/** Limit of the sent and the applied override together, in bytes of JSON: both share an append with other facts. */
const MAX_STATES_BYTES = 384 * 1024;

/** The override as sent; of a large one only the fields that are not applied. */
function recordedOverride(applied: StateOverride, sent: StateOverride): StateOverride {
  if (jsonBytes([applied, sent]) <= MAX_STATES_BYTES) return sent;
  return Object.fromEntries(Object.entries(sent).filter(([key]) => !Object.hasOwn(applied, key)));
}
