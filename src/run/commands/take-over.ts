/** Takes a run without a live owner: one that is pending, was released, or whose owner is suspected to be dead. */
import { handleCommand } from '../../eventsourcing/handle-command.js';
import { decide } from '../decide.js';
import type { RunFact } from '../events.js';
import type { DecisionContext } from '../pending-events.js';
import type { Replay } from '../replay.js';
import type { RunState } from '../state.js';

/** What the registry provides. */
export interface TakeoverDeps {
  readonly context: () => DecisionContext;
  /** The run as it is recorded; null when there is none. */
  readonly replay: () => Promise<Replay | null>;
  /** @throws {RevisionConflict} when another append came first */
  readonly record: (replayed: Replay, facts: readonly RunFact[]) => Promise<unknown>;
  /** Whether the run is live here, or is being claimed here by another call. */
  readonly isHeld: () => boolean;
  /** Whether another instance is suspected to be dead. */
  readonly isSuspect: (instanceId: string) => boolean;
  /** Called with a run that cannot be claimed: it has ended, is paused, or has an owner. */
  readonly onRefused: (run: RunState) => void;
}

/** Claims a run for this instance, unless a live instance owns it; returns whether it is live here from now on. */
export async function takeRun(deps: TakeoverDeps): Promise<boolean> {
  return await handleCommand({
    read: deps.replay,
    decide: (replayed) => ({ replayed, facts: replayed === null ? [] : claimOf(replayed, deps) }),
    async append({ replayed, facts }) {
      if (replayed === null) return false;
      if (facts.length === 0) {
        deps.onRefused(replayed.snapshot.context.run);
        return false;
      }
      await deps.record(replayed, facts);
      return true;
    },
  });
}

function claimOf({ chart, snapshot }: Replay, { context, isHeld, isSuspect }: TakeoverDeps): readonly RunFact[] {
  const { ownership, phase } = snapshot.context.run;
  const { owner } = ownership;
  const now = context();
  const isOwn = owner === now.instanceId;
  if (isOwn ? isHeld() : owner !== null && !isSuspect(owner)) return [];
  // Reclaiming an own run that was abandoned is no takeover from a dead owner, so it does not count as one.
  const reason = phase.status === 'pending' ? 'started' : owner === null || isOwn ? 'handover' : 'recovered';
  return decide(chart, snapshot, { command: { type: 'ClaimRun', reason }, context: now }).facts;
}
