/** A human between the steps of a run: shows what is waiting, takes the decision (contract, section 2). */
import type { RouterContext } from '@koa/router';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { jsonBytes, MAX_DRAFT_BYTES, MAX_FEEDBACK_BYTES } from '../council/limits.js';
import { OverrideLeadsNowhere, RunNotPaused, SessionUnknown } from '../errors.js';
import type { ApprovalRequest, FieldError, GateChoice, StateOverride } from '../generated/schemas.js';
import { sessionOf } from '../run/session.js';
import { bodyOf } from './body.js';
import { keyed } from './idempotency.js';
import { brokenRules, RequestRefused } from './problems.js';
import type { Edge, Route } from './route.js';
import { isRunId, runIdText } from './route.js';
import { outcomeUnknown } from './start-once.js';
import { validated } from './validate.js';
import { decisionResult, godModeState } from './wire.js';

/** Largest modified_state, in bytes of its JSON text (contract, section 2). Larger ones might not fit one append. */
const MAX_OVERRIDE_BYTES = 256 * 1024;

/** POST /api/councils/run/{run_id}/approve and GET /api/councils/run/{run_id}/state. */
export function godModeRoutes(edge: Edge): readonly Route[] {
  return [approveRoute(edge), stateRoute(edge)];
}

function approveRoute(edge: Edge): Route {
  const body = bodyOf(edge.schemas, 'approval-request.json', { isRequired: true });
  const isOverride = edge.schemas.validator('state-override.json');
  return {
    method: 'POST',
    path: '/api/councils/run/{run_id}/approve',
    name: 'approveRun',
    summary: 'Decides a pause: approves, rejects or modifies',
    tag: 'god mode',
    body,
    isKeyed: true,
    hasUnknown: false,
    success: { status: 200, description: 'The decision is recorded', schema: 'run-result.json' },
    problems: [400, 503],
    async handle(ctx) {
      const request = await body.read(ctx);
      assertFits(request);
      const { keyHash, bodyHash } = keyed(ctx, edge, request);
      const runId = pausableRunId(ctx);
      const deciding = edge.registry.decideGate(runId, {
        keyHash,
        bodyHash,
        expectedSeq: request.expected_seq ?? null,
        choose: () => choiceOf(request, isOverride),
      });
      const answer = await edge.inTime(deciding.catch(refuseDeadEnd), outcomeUnknown(runId));
      if (!answer.isRepeated) edge.log.info({ runId, action: request.action }, 'pause decided');
      return { status: 200, body: decisionResult(runId, answer) };
    },
  };
}

/** An override that would leave the run nowhere to go breaks a rule, and leaves the pause as it is. */
function refuseDeadEnd(error: unknown): never {
  if (!(error instanceof OverrideLeadsNowhere)) throw error;
  throw brokenRules([{ loc: ['body', 'modified_state'], msg: error.data.reason, type: 'no_route' }]);
}

function assertFits({ modified_state: override }: ApprovalRequest): void {
  if (Buffer.byteLength(JSON.stringify(override ?? null)) <= MAX_OVERRIDE_BYTES) return;
  throw new RequestRefused(`modified_state is too large: at most ${MAX_OVERRIDE_BYTES} bytes of JSON are taken`, {
    status: 413,
  });
}

/** An id that no run can have is that of a run which is not paused. */
function pausableRunId(ctx: RouterContext): string {
  const runId = runIdText(ctx);
  if (!isRunId(runId)) throw new RunNotPaused({ runId, status: 'unknown' });
  return runId;
}

/** @throws {RequestRefused} 422, which leaves the pause as it is */
function choiceOf(request: ApprovalRequest, isOverride: ValidateFunction<StateOverride>): GateChoice {
  const { action, modified_state: sent = null } = request;
  switch (action) {
    case 'approve':
    case 'reject':
      return { action, modifiedState: sent };
    case 'modify':
      return { action, modifiedState: sent === null ? null : overrideOf(sent, isOverride) };
    default:
      throw brokenRules([
        { loc: ['body', 'action'], msg: 'Input should be one of ["approve","reject","modify"]', type: 'enum' },
      ]);
  }
}

function overrideOf(sent: object, isOverride: ValidateFunction<StateOverride>): StateOverride {
  const override = validated(isOverride, sent, ['body', 'modified_state']);
  const tooLong = tooLongIn(override);
  if (tooLong.length > 0) throw brokenRules(tooLong);
  return override;
}

/** Texts that no node could have written (contract, section 2, sizes). */
function tooLongIn({ current_draft: draft, feedback_history: feedback = [] }: StateOverride): readonly FieldError[] {
  const texts = [
    { way: ['current_draft'], text: draft ?? '', limit: MAX_DRAFT_BYTES },
    ...feedback.map((text, index) => ({ way: ['feedback_history', index], text, limit: MAX_FEEDBACK_BYTES })),
  ];
  return texts
    .filter(({ text, limit }) => jsonBytes(text) > limit)
    .map(({ way, limit }) => ({
      loc: ['body', 'modified_state', ...way],
      msg: `String should have at most ${limit} bytes as JSON`,
      type: 'string_too_long',
    }));
}

function stateRoute(edge: Edge): Route {
  return {
    method: 'GET',
    path: '/api/councils/run/{run_id}/state',
    name: 'getGodModeState',
    summary: 'Shows what waits for a decision',
    tag: 'god mode',
    success: { status: 200, description: 'The God Mode session', schema: 'god-mode-state.json' },
    async handle(ctx) {
      const runId = runIdText(ctx);
      const run = isRunId(runId) ? await edge.inTime(edge.queries.state(runId)) : null;
      const session = run === null ? null : sessionOf(run);
      if (session === null) throw new SessionUnknown({ runId });
      return { status: 200, body: godModeState(session) };
    },
  };
}
