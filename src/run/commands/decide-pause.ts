/** Decides a pause. Of concurrent decisions on one pause, at any instance, the first append at its revision wins. */
import { PauseMoved, RunNotPaused } from '../../errors.js';
import type { GateChoice } from '../../generated/schemas.js';
import { nullOnConflict } from '../stream.js';
import type { RunFact } from '../events.js';
import type { GateOutcome } from '../human-decision.js';
import { decideGate, effectiveChoice, outcomeOf } from '../human-decision.js';
import type { DecisionContext } from '../pending-events.js';
import { decidedBefore } from './repeated.js';
import type { Gate } from '../state.js';
import { openGate } from '../state.js';
import type { Replay } from '../replay.js';

/** A request for a decision on a paused run. */
export interface GateRequest {
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string | null;
  readonly bodyHash: string;
  /** The body hash that earlier versions, which hashed bodies as sent, recorded for an equal request. */
  readonly sentHash?: string;
  /** Revision of the pause it answers; null: the open one. */
  readonly expectedSeq: number | null;
  /** Reads the choice; called only once the run is known to be paused. If it throws, nothing is recorded. */
  readonly choose: () => GateChoice;
}

/** The outcome of a decision, made by this request or by an equal one before it. */
export interface GateAnswer extends GateOutcome {
  readonly isRepeated: boolean;
}

/** What the registry provides. */
export interface DecidePauseDeps {
  readonly context: () => DecisionContext;
  /** The run as it is recorded; null when there is none. */
  readonly replay: () => Promise<Replay | null>;
  /** @throws {RevisionConflict} when another append came first */
  readonly record: (replayed: Replay, facts: readonly RunFact[]) => Promise<void>;
}

/**
 * Records a decision on the open pause. A repeated Idempotency-Key gets its earlier answer, whatever the run's state.
 *
 * @throws {KeyReused | RunNotPaused | PauseMoved | OverrideRefused} or what `choose` throws; nothing is recorded
 */
export async function decidePause(runId: string, request: GateRequest, deps: DecidePauseDeps): Promise<GateAnswer> {
  let answers: number | null = null;
  for (;;) {
    const replayed = await deps.replay();
    const earlier = replayed === null ? null : decidedBefore(replayed.snapshot.context.run, request);
    if (earlier !== null) return { ...earlier, isRepeated: true };
    const paused = pausedOf(replayed);
    if (paused === null) throw new RunNotPaused({ runId, status: replayed?.snapshot.context.run.status ?? 'unknown' });
    // Another decision was recorded first: the pause now open is not the one this request was about.
    if (answers !== null && paused.gate.seq !== answers) throw new RunNotPaused({ runId, status: 'decided already' });
    answers = paused.gate.seq;
    const outcome = await recordDecision(runId, { request, paused, deps });
    if (outcome !== null) return { ...outcome, isRepeated: false };
  }
}

interface Paused {
  readonly replayed: Replay;
  readonly gate: Gate;
}

function pausedOf(replayed: Replay | null): Paused | null {
  const gate = replayed === null ? null : openGate(replayed.snapshot.context.run);
  return replayed === null || gate === null ? null : { replayed, gate };
}

/** @returns null when another append came first */
async function recordDecision(
  runId: string,
  { request, paused, deps }: { readonly request: GateRequest; readonly paused: Paused; readonly deps: DecidePauseDeps },
): Promise<GateOutcome | null> {
  const { keyHash, bodyHash, expectedSeq, choose } = request;
  const { replayed, gate } = paused;
  const choice = effectiveChoice(replayed.snapshot.context.run, gate, choose());
  if (expectedSeq !== null && expectedSeq !== gate.seq) {
    throw new PauseMoved({ runId, expectedSeq, actualSeq: gate.seq });
  }
  const decision = { ...choice, keyHash, bodyHash };
  const facts = decideGate(replayed.chart, replayed.snapshot, { decision, context: deps.context() });
  const outcome = outcomeOf(choice.action);
  return await deps.record(replayed, facts).then(() => outcome, nullOnConflict);
}
