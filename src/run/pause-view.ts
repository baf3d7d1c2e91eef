/** What a human decides on: a God Mode run as it is shown at its pauses, between them and after its end. */
import { branchInto } from './frontier.js';
import { isOutstanding } from './fork-snapshot.js';
import type { FrontierNode, Gate, RunState } from './state.js';
import { isFinished, openGate } from './state.js';

export interface PauseView {
  readonly run: RunState;
  /** The pause that waits for a decision. */
  readonly gate: Gate | null;
  /** While paused the revision of its RunPaused event, else the head. */
  readonly seq: number;
  readonly branches: readonly LiveBranch[];
}

/** Where a branch stands, and the draft it holds. */
export interface LiveBranch {
  readonly node: string;
  readonly draft: string | null;
}

/** The session of a run; null when it was not started in God Mode. */
export function pauseViewOf(run: RunState): PauseView | null {
  if (!run.godMode) return null;
  const gate = openGate(run);
  return { run, gate, seq: gate?.seq ?? run.seq, branches: isFinished(run) ? [] : liveBranches(run) };
}

/** Nodes under way or next, in the order of the front, then those that wait for a branch still to come. */
export function liveBranches(run: RunState): readonly LiveBranch[] {
  const underWay = run.frontier.filter((each) => isOutstanding(run, each)).map(standing);
  const next = run.gate?.nextNodes ?? [];
  const reached = [...run.arrivals].sort((a, b) => a.order - b.order).map((each) => each.node);
  const waiting = [...new Set([...next, ...reached])].map((node) => ({
    node,
    draft: branchInto(run, node, run.steps + 1).draft,
  }));
  return [...underWay, ...waiting];
}

function standing({ node, branch }: FrontierNode): LiveBranch {
  return { node, draft: branch.draft };
}
