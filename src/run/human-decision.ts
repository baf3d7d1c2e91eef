/**
 * A human's word on a pause, as facts: approved, modified or rejected. What is chosen runs under this decision, claimed
 * by the instance that takes it in the same append.
 */
import type { GateAction, GateChoice, GateDecidedData, RunResumedData } from '../generated/schemas.js';
import { humanSource } from './branch.js';
import { fail, proceed } from './decide.js';
import type { RunFact } from './events.js';
import type { Chart, RunSnapshot } from './machine.js';
import type { DecisionContext } from './pending-events.js';
import { PendingEvents } from './pending-events.js';
import { effectiveOverride } from './override.js';
import { wayUnder } from './override.js';
import type { Gate, RunState } from './state.js';
import { openGate } from './state.js';

/** What is decided, and how the request can be known again. */
export type GateDecision = GateChoice & {
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string | null;
  readonly bodyHash: string;
};

/** What a run fails with when it is rejected (contract, section 2). */
const REJECTED = 'Rejected by the user in God Mode';

/** What a decision makes of the run, as far as the decision itself tells. */
export interface GateOutcome {
  readonly status: 'running' | 'failed';
  readonly error: string | null;
}

/** A function of the action alone, so that a repeated request gets the same answer. */
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
  const way = wayOn(run, gate, decision);
  pending.write({ type: 'GateDecided', data: { ...decision, ...recordOf(pending, gate), ...way } });
  if (decision.action === 'reject') {
    fail(pending, { kind: 'rejected', error: REJECTED, node: null });
  } else {
    resume(pending, { gate: gate.gate, nextNodes: way.nextNodes });
    proceed(pending, way.nextNodes);
  }
  return pending.facts;
}

/** The instance that takes a decision owns the run from there. */
function resume(pending: PendingEvents, resumed: Omit<RunResumedData, 'epoch'>): void {
  const { run, context } = pending;
  const epoch = run.epoch + 1;
  pending.write({ type: 'RunClaimed', data: { epoch, instanceId: context.instanceId, reason: 'resumed' } });
  pending.write({ type: 'RunResumed', data: { epoch, ...resumed } });
}

function recordOf({ run, context }: PendingEvents, { gate, seq }: Gate) {
  const { draft } = run.shown;
  return { gate, answers: seq, shownDraftHash: draft === null ? null : context.sha256(draft), actor: null };
}

/** Where the run goes under a decision. */
type WayOn = Pick<GateDecidedData, 'nextNodes' | 'route' | 'overrideVersion'>;

/** @throws {OverrideRefused} when no edge of the last node holds under the override */
function wayOn(run: RunState, { gate, nextNodes: shown }: Gate, { action, modifiedState }: GateDecision): WayOn {
  if (action === 'reject') return { nextNodes: [], route: null };
  if (action === 'approve' || modifiedState === null) return { nextNodes: [...shown], route: null };
  const { nextNodes, route } = wayUnder(run, modifiedState, { source: humanSource(gate, run.steps), shown });
  return { nextNodes: [...nextNodes], route, overrideVersion: 2 };
}

/**
 * What a choice comes to at a pause: of an override only what differs from what is shown.
 *
 * @throws {OverrideRefused} when it holds what it cannot
 */
export function effectiveChoice(run: RunState, { nextNodes }: Gate, choice: GateChoice): GateChoice {
  if (choice.action !== 'modify' || choice.modifiedState === null) return choice;
  return { action: 'modify', modifiedState: effectiveOverride(run, choice.modifiedState, nextNodes) };
}
