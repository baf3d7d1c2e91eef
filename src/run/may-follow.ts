/** The one guard of every chart. */
import type { NodeStartedData, RunCompletedData } from '../generated/schemas.js';
import type { RunEvent } from './events.js';
import { branchAtEnd } from './front.js';
import { isOutstanding } from './run-fold.js';
import type { RunState } from './state.js';
import { isFrontDone } from './state.js';

/** What the chart asks of a run beyond the state that it is in, before it takes a fact. */
export function mayFollow(run: RunState, fact: RunEvent): boolean {
  switch (fact.type) {
    case 'NodeStarted':
      return isAwaited(run, fact.data);
    case 'RunPaused':
      return isFrontDone(run);
    case 'RunCompleted':
      return isTheEnd(run, fact.data);
    default:
      return true;
  }
}

/** Whether a node starts to which a branch was sent, or is started again. */
function isAwaited(run: RunState, { node, step }: NodeStartedData): boolean {
  const begun = run.front.find((each) => each.step === step);
  if (begun !== undefined) return begun.node === node && isOutstanding(run, begun);
  return step === run.steps + 1 && run.arrivals.some((each) => each.node === node);
}

/** Whether all branches have ended, and this is what they have come to. */
function isTheEnd(run: RunState, { finalDraft, criticScore }: RunCompletedData): boolean {
  if (!isFrontDone(run) || run.arrivals.length > 0) return false;
  const { draft, score } = branchAtEnd(run);
  return finalDraft === draft && criticScore === score;
}
