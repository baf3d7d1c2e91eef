/** What a human decides on: a God Mode run as shown at its pauses, between them and after its end. */
import { branchInto } from './frontier.js';
import { isOutstanding } from './fork-snapshot.js';
import type { FrontierNode, Gate, RunState } from './state.js';
import { gateOf, isFinished, openGate } from './state.js';

export interface PauseView {
  readonly run: RunState;
  /** The pause that waits for a decision. */
  readonly gate: Gate | null;
  /** While paused the revision of its RunPaused event, else the head. */
  readonly seq: number;
  readonly branches: readonly LiveBranch[];
}

/** A live branch: the node it is at or waits for, and its draft. */
export interface LiveBranch {
  readonly node: string;
  readonly draft: string | null;
}

/** The pause view of a run; null when it was not started in God Mode. */
export function pauseViewOf(run: RunState): PauseView | null {
  if (!run.request.godMode) return null;
  const gate = openGate(run);
  return { run, gate, seq: gate?.seq ?? run.head.seq, branches: isFinished(run) ? [] : liveBranches(run) };
}

/** Nodes in flight or next, in the order of the frontier, then those that wait for another branch. */
export function liveBranches(run: RunState): readonly LiveBranch[] {
  const outstanding = run.progress.frontier.filter((each) => isOutstanding(run, each)).map(liveBranchOf);
  const gate = gateOf(run);
  const next = gate === null ? [] : gate.nextNodes;
  const reached = [...run.progress.arrivals].sort((a, b) => a.order - b.order).map((each) => each.node);
  const waiting = [...new Set([...next, ...reached])].map((node) => ({
    node,
    draft: branchInto(run, node, run.progress.steps + 1).draft,
  }));
  return [...outstanding, ...waiting];
}

function liveBranchOf({ node, branch }: FrontierNode): LiveBranch {
  return { node, draft: branch.draft };
}
