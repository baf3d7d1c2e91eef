/** A God Mode run as a human sees it: at its pauses, between them and after its end. */
import type { ApprovalDeadline } from '../../generated/schemas.js';
import type { ApprovalRule } from '../../graph/approvals.js';
import { deadlineOf, ruleAt } from './approvals.js';
import { branchInto } from '../frontier/frontier.js';
import { isOpen } from '../fork-snapshot.js';
import type { FrontierNode, RunPause, RunState, Vote } from '../state.js';
import { hasSession, isFinished, openPauseOf, pauseOf } from '../state.js';

export interface PauseView {
  readonly run: RunState;
  /** The open pause, or null. */
  readonly pause: RunPause | null;
  /** The revision of the open pause's RunPaused event, or of the head if no pause is open. */
  readonly seq: number;
  readonly branches: readonly LiveBranch[];
  /** The approvers and votes, or null if no pause is open or it has no approval rule. */
  readonly approvals: PauseApprovals | null;
}

/** The approval rule of an open pause, and its votes. */
export interface PauseApprovals extends Omit<ApprovalRule, 'deadline'> {
  readonly votes: readonly Vote[];
  /** When it ends undecided, ISO 8601, or null if it has no deadline. */
  readonly deadline: string | null;
  /** What happens at the deadline, or null if it has none. */
  readonly deadlineThen: ApprovalDeadline['then'] | null;
}

/** A live branch: its current or next node, and its draft. */
export interface LiveBranch {
  readonly node: string;
  readonly draft: string | null;
}

/** The pause view of a run, or null if it has none. */
export function pauseViewOf(run: RunState): PauseView | null {
  if (!hasSession(run)) return null;
  const pause = openPauseOf(run);
  const branches = isFinished(run) ? [] : liveBranches(run);
  const approvals = pause === null ? null : approvalsAt(run, pause);
  return { run, pause, seq: pause?.seq ?? run.head.seq, branches, approvals };
}

/** The approval rule of a pause with its votes, or null if it has no rule. */
export function approvalsAt(run: RunState, pause: RunPause): PauseApprovals | null {
  const rule = ruleAt(run, pause);
  if (rule === null) return null;
  const deadlineThen = rule.deadline?.then ?? null;
  return { ...rule, votes: pause.votes, deadline: deadlineOf(run, pause), deadlineThen };
}

/** Live branches: at nodes in flight or next, in the order of the frontier, then those that wait for another branch. */
export function liveBranches(run: RunState): readonly LiveBranch[] {
  const open = run.progress.frontier.filter((each) => isOpen(run, each)).map(liveBranchOf);
  // The members of a panel share its branch.
  const outstanding = open.filter(({ node }, index) => open.findIndex((each) => each.node === node) === index);
  const isNext = (node: string): boolean => !outstanding.some((each) => each.node === node);
  const pause = pauseOf(run);
  const next = pause === null ? [] : pause.nextNodes;
  const reached = [...run.progress.arrivals].sort((a, b) => a.order - b.order).map((each) => each.node);
  const waiting = [...new Set([...next.filter(isNext), ...reached])].map((node) => ({
    node,
    draft: branchInto(run, node, run.progress.steps + 1).draft,
  }));
  return [...outstanding, ...waiting];
}

function liveBranchOf({ node, branch }: FrontierNode): LiveBranch {
  return { node, draft: branch.draft };
}
