/** A state copied for the next event. */
import type { RunState } from './state.js';

/** A state that is being made. */
export type NextState = { -readonly [Field in keyof RunState]: RunState[Field] };

/** A copy of a state, field by field: Node 20 takes several times as long to spread an object of this size. */
export function copyOf(state: RunState): NextState {
  return {
    runId: state.runId,
    status: state.status,
    createdAt: state.createdAt,
    completedAt: state.completedAt,
    seq: state.seq,
    hash: state.hash,
    lastEventId: state.lastEventId,
    requestedTopic: state.requestedTopic,
    inputTopic: state.inputTopic,
    godMode: state.godMode,
    executionMode: state.executionMode,
    blueprintId: state.blueprintId,
    blueprintName: state.blueprintName,
    plan: state.plan,
    graphHash: state.graphHash,
    limits: state.limits,
    bodyHash: state.bodyHash,
    parent: state.parent,
    epoch: state.epoch,
    owner: state.owner,
    takeovers: state.takeovers,
    steps: state.steps,
    iterationCount: state.iterationCount,
    scores: state.scores,
    sources: state.sources,
    front: state.front,
    arrivals: state.arrivals,
    ended: state.ended,
    shown: state.shown,
    activeNode: state.activeNode,
    gate: state.gate,
    gates: state.gates,
    resumedBy: state.resumedBy,
    isApproved: state.isApproved,
    decisions: state.decisions,
    finalDraft: state.finalDraft,
    failure: state.failure,
  };
}
