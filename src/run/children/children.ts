/** The runs that the step of a council has started, folded from its events. */
import { canonical } from '../../eventsourcing/canonical-json.js';
import type { ChildEndedData, ChildStartedData, FoldedChild, RunFailedData } from '../../generated/schemas.js';
import type { Child, FrontierNode, RunProgress, RunState } from '../state.js';
import { failureOf, finalDraftOf, finalOutputOf } from '../state.js';
import { usageOf } from '../effort.js';
import { reservationFor } from '../budget/spending.js';

/** The frontier after a council has started a run. */
export function childStarted({ frontier }: RunProgress, data: ChildStartedData): readonly FrontierNode[] {
  const { step, index, child: runId, title, items } = data;
  const about = { ...(title !== undefined && { title }), ...(items !== undefined && { items }) };
  const child: Child = { index, runId, ...about, end: null };
  return frontier.map((each) => (each.step === step ? { ...each, children: [...each.children, child] } : each));
}

/** The frontier after the end of such a run. */
export function childEnded({ frontier }: RunProgress, data: ChildEndedData): readonly FrontierNode[] {
  const { step, index, status, output, error, isOverBudget, isCancelled } = data;
  const end = {
    status,
    output,
    ...(error !== undefined && { error }),
    ...(isOverBudget && { isOverBudget }),
    ...(isCancelled && { isCancelled }),
  };
  const ended = (child: Child): Child => (child.index === index ? { ...child, end } : child);
  return frontier.map((each) => (each.step === step ? { ...each, children: each.children.map(ended) } : each));
}

/** A run that a council waits for, with the council's step. */
export interface ChildUnderWay {
  readonly at: FrontierNode;
  readonly child: Child;
}

/** The runs of councils that have not ended. */
export function childrenUnderWay({ progress }: RunState): readonly ChildUnderWay[] {
  return progress.frontier.flatMap((at) => at.children.flatMap((child) => (child.end === null ? [{ at, child }] : [])));
}

/** Whether a run waits for nothing but runs of its councils. */
export function waitsForChildren({ progress }: RunState): boolean {
  const active = progress.frontier.filter((each) => each.active);
  return active.length > 0 && active.every(({ children }) => children.some(({ end }) => end === null));
}

/** How far a council is, such as `3 of 12 runs ended`; null before its first run. */
export function councilProgressText({ children }: Pick<FrontierNode, 'children'>): string | null {
  if (children.length === 0) return null;
  const ended = children.filter(({ end }) => end !== null).length;
  // Recorded with each start; older events and the ended runs of a fork lack it.
  const items = Math.max(...children.map((each) => each.items ?? 0), children.length);
  return items === 1 ? `${ended} of 1 run ended` : `${ended} of ${items} runs ended`;
}

/** Whether a council may start this run. */
export function mayStart({ progress, plan }: RunState, { step, node, index }: ChildStartedData): boolean {
  const at = progress.frontier.find((each) => each.step === step);
  if (at === undefined || !at.active || at.node !== node || plan.node(node).role !== 'council') return false;
  return index >= 0 && at.children.every((each) => each.index !== index);
}

/** Whether a run may end: a council waits for it. */
export function mayEnd({ progress }: RunState, { step, node, index, child }: ChildEndedData): boolean {
  const at = progress.frontier.find((each) => each.step === step);
  if (at === undefined || at.node !== node) return false;
  return at.children.some((each) => each.index === index && each.runId === child && each.end === null);
}

/** The end of a run, as its parent records it, or null before its end and for a run without a parent. */
export function endOf(run: RunState): ChildEndedData | null {
  const { parentRun, runId, phase, spending, head } = run;
  if (parentRun === null || (phase.status !== 'completed' && phase.status !== 'failed')) return null;
  const usage = usageOf(run.effort);
  const failure = failureOf(run);
  const output = finalOutputOf(run);
  return {
    step: parentRun.step,
    node: parentRun.node,
    index: parentRun.index,
    child: runId,
    status: phase.status,
    usage,
    costUsd: usage.costUsd,
    ...(spending !== null && { spent: reservationFor(spending.spent) }),
    headHash: head.hash,
    output: output === undefined ? finalDraftOf(run) : canonical(output),
    ...(failure !== null && { error: failure.error }),
    ...(failure?.kind === 'budget_exceeded' && { isOverBudget: true as const }),
    ...(failure?.kind === 'cancelled' && { isCancelled: true as const }),
  };
}

/** The failure of a run whose parent ends: it records why, because its parent's record may not say it yet. */
export function failureWith(parent: RunState, failure: RunFailedData): RunFailedData {
  const { kind, error, node, actor } = failure;
  const cause = failure.cause ?? { runId: parent.runId, kind, error, node };
  const text = `Cancelled with its parent run: ${cause.error}`;
  return { kind: 'cancelled', error: text, node: null, ...(actor !== undefined && { actor }), cause };
}

/** How the parent of a run ends that was cancelled for its end, or null for any other run. */
export function failureOfParent(child: RunState): RunFailedData | null {
  const failure = failureOf(child);
  if (failure?.cause === undefined) return null;
  const { usage: _, ...same } = failure;
  const { runId, ...own } = failure.cause;
  if (runId !== child.parentRun?.runId) return same;
  return { ...own, ...(failure.actor !== undefined && { actor: failure.actor }) };
}

/** The runs that have ended: a fork keeps them, and starts the others again, also those that were cancelled. */
export function foldedChildren({ children }: FrontierNode): FoldedChild[] {
  return children.flatMap(({ runId, index, title, end }) =>
    end === null || end.isCancelled === true
      ? []
      : [{ index, child: runId, ...(title !== undefined && { title }), ...end }],
  );
}

export function restoredChildren(folded: readonly FoldedChild[]): readonly Child[] {
  return folded.map(({ index, title, child: runId, ...end }) => ({
    index,
    runId,
    ...(title !== undefined && { title }),
    end,
  }));
}
