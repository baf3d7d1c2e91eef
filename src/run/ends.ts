/** The events that stop a run: a pause, a release by its owner, its result or its failure. */
import { unknownMarks } from '../council/citations.js';
import type { RunFailedData, RunPausedData } from '../generated/schemas.js';
import { MAX_DRAFT_BYTES } from '../graph/limits.js';
import { mayEnd } from './children/children.js';
import type { Branch } from './frontier/branch.js';
import { isTooLarge } from './frontier/branch.js';
import { usageOf } from './effort.js';
import { branchShown } from './frontier/frontier.js';
import type { PendingEvents } from './pending-events.js';
import type { JsonOutput } from './state.js';
import { iterationShown } from './state.js';

/** @param budget its status, if the run pauses for it; absent at a pause of God Mode */
export function pause(
  pending: PendingEvents,
  nextNodes: readonly string[],
  budget?: NonNullable<RunPausedData['budget']>,
): void {
  const { run } = pending;
  pending.write({
    type: 'RunPaused',
    data: {
      gate: run.progress.pauses + 1,
      nextNodes: [...nextNodes],
      criticScore: branchShown(run, nextNodes).score,
      iteration: run.progress.iterationCount,
      ...(budget !== undefined && { reason: 'budget', budget }),
    },
  });
  release(pending, 'paused');
}

export function release(pending: PendingEvents, reason: 'paused' | 'shutdown'): void {
  const { epoch, owner } = pending.run.ownership;
  if (owner === null) return;
  pending.write({ type: 'RunReleased', data: { epoch, instanceId: owner, reason } });
}

/** Completes the run with the draft of a branch. */
export function complete(pending: PendingEvents, last: Branch, endedBy?: 'budget'): void {
  const { run } = pending;
  if (isTooLarge(last)) return failTooLarge(pending, { place: 'at the end', node: run.progress.activeNode });
  pending.write({
    type: 'RunCompleted',
    data: {
      finalDraft: last.draft,
      ...(last.output !== undefined && { finalOutput: JSON.parse(last.output) as JsonOutput }),
      criticScore: last.score,
      iterationCount: iterationShown(run),
      ...(endedBy !== undefined && { endedBy }),
      usage: usageOf(run.effort),
      ...unknownMarks(last.draft, run.progress.sources),
    },
  });
}

/** Records the ends of the runs that its councils still wait for. */
export function endChildren(pending: PendingEvents): void {
  for (const data of pending.ends) if (mayEnd(pending.run, data)) pending.write({ type: 'ChildEnded', data });
}

export function fail(pending: PendingEvents, failure: RunFailedData): void {
  endChildren(pending);
  pending.write({ type: 'RunFailed', data: { usage: usageOf(pending.run.effort), ...failure } });
}

export function failTooLarge(
  pending: PendingEvents,
  { place, node }: { readonly place: string; readonly node: string | null },
): void {
  const error = `The drafts joined ${place} are larger than ${MAX_DRAFT_BYTES} bytes`;
  fail(pending, { kind: 'draft_too_large', error, node });
}
