/**
 * A human's decision on a pause, as facts: approve, modify or reject. The instance that takes the decision claims the run
 * in the same append.
 */
import type { GateAction, GateChoice, GateDecidedData, RunResumedData } from '../generated/schemas.js';
import { humanSource } from './branch.js';
import { fail, proceed } from './decide.js';
import type { RunFact } from './events.js';
import type { Chart, RunSnapshot } from './machine.js';
import type { DecisionContext } from './pending-events.js';
import { PendingEvents } from './pending-events.js';
import { effectiveOverride } from './override.js';
import { routeUnderOverride } from './override.js';
import type { Gate, RunState } from './state.js';
import { openGate } from './state.js';

/** What is decided, by whom and why, and the hashes by which a repeated request is recognized. */
export type GateDecision = GateChoice & {
  /** Name of the key; null: the service has none. */
  readonly actor: string | null;
  readonly comment: string | null;
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string | null;
  readonly bodyHash: string;
};

/** Error of a rejected run (contract, section 2). */
const REJECTED = 'Rejected by the user in God Mode';

/** The run's status after a decision, as far as the decision alone determines it. */
export interface GateOutcome {
  readonly status: 'running' | 'failed';
  readonly error: string | null;
}

/** The outcome of an action. Depends on nothing else, so that a repeated request gets the same answer. */
export function outcomeOf(action: GateAction): GateOutcome {
  return action === 'reject' ? { status: 'failed', error: REJECTED } : { status: 'running', error: null };
}

/**
 * The facts a decision on the open pause leads to; none when no pause is open.
 *
 * @throws {OverrideRefused}
 */
export function decideGate(
  chart: Chart,
  snapshot: RunSnapshot,
  { decision, context }: { readonly decision: GateDecision; readonly context: DecisionContext },
): readonly RunFact[] {
  const { run } = snapshot.context;
  const gate = openGate(run);
  if (gate === null) return [];
  const pending = new PendingEvents(chart, snapshot, context);
  const continuation = continuationOf(run, gate, decision);
  pending.write({ type: 'GateDecided', data: { ...decision, ...answeredPause(pending, gate), ...continuation } });
  if (decision.action === 'reject') {
    fail(pending, { kind: 'rejected', error: REJECTED, node: null });
  } else {
    resume(pending, { gate: gate.gate, nextNodes: continuation.nextNodes });
    proceed(pending, continuation.nextNodes);
  }
  return pending.facts;
}

/** The instance that takes a decision owns the run from then on. */
function resume(pending: PendingEvents, resumed: Omit<RunResumedData, 'epoch'>): void {
  const { run, context } = pending;
  const epoch = run.ownership.epoch + 1;
  pending.write({ type: 'RunClaimed', data: { epoch, instanceId: context.instanceId, reason: 'resumed' } });
  pending.write({ type: 'RunResumed', data: { epoch, ...resumed } });
}

/** Which pause a decision answers, and what was shown at it. */
function answeredPause({ run, context }: PendingEvents, { gate, seq }: Gate) {
  const { draft } = run.progress.shown;
  return { gate, answers: seq, shownDraftHash: draft === null ? null : context.sha256(draft) };
}

/** How the run continues after a decision. */
type Continuation = Pick<GateDecidedData, 'nextNodes' | 'route' | 'overrideVersion'>;

/** @throws {OverrideRefused} when no edge of the last node holds under the override */
function continuationOf(
  run: RunState,
  { gate, nextNodes: shown }: Gate,
  { action, modifiedState }: GateDecision,
): Continuation {
  if (action === 'reject') return { nextNodes: [], route: null };
  if (action === 'approve' || modifiedState === null) return { nextNodes: [...shown], route: null };
  const { nextNodes, route } = routeUnderOverride(run, modifiedState, {
    source: humanSource(gate, run.progress.steps),
    shown,
  });
  return { nextNodes: [...nextNodes], route, overrideVersion: 2 };
}

/**
 * A choice reduced to its effect: of an override only what differs from what is shown at the pause.
 *
 * @throws {OverrideRefused} when the override is not allowed
 */
export function effectiveChoice(run: RunState, { nextNodes }: Gate, choice: GateChoice): GateChoice {
  if (choice.action !== 'modify' || choice.modifiedState === null) return choice;
  return { action: 'modify', modifiedState: effectiveOverride(run, choice.modifiedState, nextNodes) };
}
