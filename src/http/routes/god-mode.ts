/** God Mode: shows an open pause and applies decisions. */
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { mayDecide } from '../../run/pauses/approvals.js';
import { BudgetRefused, RunNotPaused, RunUnknown, SessionUnknown } from '../../run/errors.js';
import type { ApprovalRequest, DecisionReview, GateChoice, RunResult, StateOverride } from '../../generated/schemas.js';
import { pauseViewOf } from '../../run/pauses/pause-view.js';
import type { Caller } from '../../keys/caller.js';
import type { ReadBody } from '../body.js';
import { bodyOf } from '../body.js';
import { keyed } from '../starts.js';
import { outcomeUnknown, isRunId, runIdIn, runIdText } from '../route.js';
import type { ActingRequest } from '../starts.js';
import { assertFits, overrideOf, refuseOverride } from '../override.js';
import { RequestRefused, brokenRules } from '../../api/problems.js';
import { neededBudget } from '../../run/frontier/start.js';
import { nextAttempts } from '../../run/frontier/next-calls.js';
import type { HttpContext, Route } from '../route.js';
import { decisionResult, godModeState } from '../../api/serializers/runs.js';
import { runStream } from '../../run/events.js';
import { nextCalls } from '../../api/serializers/next-calls.js';
import { summaryOf } from '../../projections/run-summary.js';
import { openPauseOf } from '../../run/state.js';
import { permitsFor, withPermit } from '../concurrency.js';
import { NO_TIMESTAMP, timestampIn } from '../timestamp.js';

/** Place of the override in a decision's body. */
const AT = ['body', 'modified_state'];

/** Lists of next calls at a time; each has the prompts of the waiting nodes in memory. */
const LISTS_AT_A_TIME = 4;

/** POST /api/councils/run/{run_id}/approve, GET /api/councils/run/{run_id}/state and GET /api/runs/{run_id}/next. */
export function godModeRoutes(http: HttpContext): readonly Route[] {
  return [approveRoute(http), stateRoute(http), nextRoute(http)];
}

function approveRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'approval-request.json', { isRequired: true });
  return {
    method: 'POST',
    path: '/api/councils/run/{run_id}/approve',
    access: 'approve',
    name: 'approveRun',
    summary: 'Approves, rejects or modifies a paused run',
    description:
      'Exactly one of several decisions on a pause wins; the others are refused because the run is no longer paused. If a ' +
      'pause needs several approvers, it stays `paused` until enough of them agree. Other callers get 403.',
    tag: 'god mode',
    body,
    isKeyed: true,
    hasUnknown: false,
    success: { status: 200, description: 'The decision or vote is recorded', schema: 'run-result.json' },
    problems: [400],
    async handle(ctx, caller) {
      const request = await body.readToCompare(ctx);
      return { status: 200, body: await decidePause(ctx, http, { runId: runIdText(ctx), request, caller }) };
    },
  };
}

interface Decision {
  readonly runId: string;
  readonly request: ReadBody<ApprovalRequest>;
  readonly caller: Caller;
}

/** Decides a pause, or votes on it. @throws any error of problems.ts */
export async function decidePause(
  ctx: ActingRequest,
  http: HttpContext,
  { runId, request, caller }: Decision,
): Promise<RunResult> {
  assertFits(request.value.modified_state);
  const { comment = null, expected_seq: expectedSeq = null, action, budget } = request.value;
  const review = reviewIn(request.value);
  const { keyHash, bodyHash } = keyed(ctx, http, { body: request, caller });
  assertPausable(runId);
  const choice = choiceOf(request.value, http.schemas.validator('state-override.json'));
  const decision = { caller, comment, keyHash, bodyHash, expectedSeq, budget, review, choice };
  const deciding = http.registry.decidePause(runId, decision).catch(refuseDecision);
  const outcome = await http.withinDeadline(deciding, outcomeUnknown(runStream(runId)));
  const what = outcome.status === 'paused' ? 'vote cast' : 'pause decided';
  if (!outcome.isRepeated) http.log.info({ runId, action, actor: caller.actor }, what);
  return decisionResult(runId, outcome);
}

/** @throws {RequestRefused} 422 for a decision that its pause does not allow; any other error again */
function refuseDecision(error: unknown): never {
  if (!(error instanceof BudgetRefused)) return refuseOverride(error, AT);
  const { loc, reason } = error.data;
  throw brokenRules([{ loc: ['body', ...loc], msg: reason, type: 'budget' }]);
}

/** @throws {RequestRefused} 422 for a time that is none */
function reviewIn({ review }: ApprovalRequest): DecisionReview | undefined {
  if (review === undefined) return undefined;
  const { draft_sha256: draftSha256 = null, opened_at: openedAt } = review;
  if (timestampIn(openedAt, 'first') === null) {
    throw brokenRules([{ loc: ['body', 'review', 'opened_at'], ...NO_TIMESTAMP }]);
  }
  return { draftSha256, openedAt };
}

/** A malformed id gets the same answer as a run that is not paused. */
function assertPausable(runId: string): void {
  if (!isRunId(runId)) throw new RunNotPaused({ runId, status: 'unknown' });
}

/** The choice of a request, or the refusal of the request if it has none: 422, which leaves the pause as it is. */
function choiceOf(
  { action, modified_state: sent = null }: ApprovalRequest,
  isOverride: ValidateFunction<StateOverride>,
): GateChoice | RequestRefused {
  if (action === 'approve' || action === 'reject') return { action, modifiedState: sent };
  if (action !== 'modify') {
    const msg = 'Input should be one of ["approve","reject","modify"]';
    return brokenRules([{ loc: ['body', 'action'], msg, type: 'enum' }]);
  }
  try {
    return { action, modifiedState: sent === null ? null : overrideOf(sent, { isOverride, at: AT }) };
  } catch (error) {
    if (error instanceof RequestRefused) return error;
    throw error;
  }
}

function stateRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/councils/run/{run_id}/state',
    access: 'read',
    name: 'getGodModeState',
    summary: 'Returns the state of a run in God Mode, or of one that has paused for its budget',
    tag: 'god mode',
    success: { status: 200, description: 'The God Mode session', schema: 'god-mode-state.json' },
    async handle(ctx, caller) {
      const runId = runIdText(ctx);
      const run = isRunId(runId) ? await http.withinDeadline(http.queries.state(runId)) : null;
      const pauseView = run === null ? null : pauseViewOf(run);
      if (pauseView === null) throw new SessionUnknown({ runId });
      const { run: shown } = pauseView;
      const access = {
        mayDecide: mayDecide(shown, caller),
        needed: neededBudget(shown, http.registry.decisionContext()),
      };
      return { status: 200, body: godModeState(pauseView, access) };
    },
  };
}

function nextRoute(http: HttpContext): Route {
  const permits = permitsFor(LISTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/next',
    access: 'read',
    name: 'getNextCalls',
    summary: 'Returns what a paused run sends to its models if it is approved unchanged, and what that may cost',
    description:
      'The waiting nodes with their models, tools and exact prompts. The texts change if a decision modifies the state, and ' +
      'if a tool becomes available or unavailable before the decision.',
    tag: 'god mode',
    success: { status: 200, description: 'The next calls', schema: 'next-calls.json' },
    async handle(ctx, caller) {
      const runId = runIdIn(ctx);
      const run = await withPermit(permits, { http, caller }, () => http.queries.state(runId));
      if (run === null) throw new RunUnknown({ runId });
      const context = http.registry.decisionContext();
      const [attempts, needed] = [nextAttempts(run, context), neededBudget(run, context)];
      const view = { run, pause: openPauseOf(run), attempts, needed, usage: summaryOf(run).usage };
      return { status: 200, body: nextCalls(view) };
    },
  };
}
