/** Acts on a pause's deadline that has passed. Of several instances that do, the first append at its revision wins. */
import { handleCommand } from '../../eventsourcing/handle-command.js';
import { deadlineOf } from '../approvals.js';
import type { RunFact } from '../events.js';
import { passDeadline } from '../human-decision.js';
import type { DecisionContext } from '../pending-events.js';
import type { Replay } from '../replay.js';
import { openPauseOf } from '../state.js';

/** What the registry provides. */
export interface PassDeadlineDeps {
  readonly context: () => DecisionContext;
  /** The run as it is recorded; null when there is none. */
  readonly replay: () => Promise<Replay | null>;
  /**
   * Appends facts that were decided at a time; false when the run would have to go on and there is no room.
   *
   * @throws {RevisionConflict} when another append came first
   */
  readonly record: (replayed: Replay, facts: readonly RunFact[], at: string) => Promise<boolean>;
}

/** Resolves with the deadline that is open afterwards, ISO 8601: its time has not come, or there was no room; null: none. */
export async function passPauseDeadline({ context, replay, record }: PassDeadlineDeps): Promise<string | null> {
  return await handleCommand({
    read: replay,
    decide(replayed) {
      const now = context();
      const facts = replayed === null ? [] : passDeadline(replayed.chart, replayed.snapshot, now);
      return { replayed, facts, at: now.at };
    },
    async append({ replayed, facts, at }) {
      if (replayed === null) return null;
      if (facts.length > 0 && (await record(replayed, facts, at))) return null;
      const { run } = replayed.snapshot.context;
      const pause = openPauseOf(run);
      return pause === null ? null : deadlineOf(run, pause);
    },
  });
}
