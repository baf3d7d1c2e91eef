/** Takes runs without a live owner: pending or released ones, and those whose owner is suspected to be dead. */
import { handleCommand } from '../../eventsourcing/handle-command.js';
import type { EventLog } from '../../eventlog/port.js';
import { semaphore } from '../../system/async/semaphore.js';
import type { TaskTracker } from '../../system/async/task-tracker.js';
import { decide } from '../decide.js';
import type { RunFact } from '../events.js';
import type { AdmittedRuns, Admission } from '../live/admission.js';
import type { RunRepository } from '../live/run-repository.js';
import type { Replay } from '../replay.js';
import { assertReaches } from '../replay.js';
import type { UnfinishedRun } from '../state.js';

/** Which other instances are suspected to be dead. */
export interface FailureSuspicions {
  isSuspect(instanceId: string): boolean;
}

/**
 * Most runs that are read and claimed at a time: enough to fill a group commit. With many more, the first would start
 * late.
 */
const MAX_TAKING = 64;

export interface TakeoverDeps {
  readonly runs: RunRepository;
  readonly admission: Admission;
  readonly tasks: TaskTracker;
  readonly suspicions: FailureSuspicions;
  readonly log: Pick<EventLog, 'hasGaps'>;
}

export class Takeovers implements AdmittedRuns {
  readonly #deps: TakeoverDeps;
  /** Last known revision of each queued run: see `UnfinishedRun.seq`. */
  readonly #knownSeqs = new Map<string, number>();
  readonly #taking = semaphore(MAX_TAKING);

  constructor(deps: TakeoverDeps) {
    this.#deps = deps;
  }

  /** Queues runs, in the order given, until they get a slot. */
  enqueue(orphans: Iterable<Omit<UnfinishedRun, 'owner'>>): void {
    for (const { runId, seq } of orphans) {
      if (seq !== undefined) this.#knownSeqs.set(runId, seq);
      this.#deps.admission.enqueue(runId);
    }
  }

  dequeue(runId: string): void {
    this.#deps.admission.dequeue(runId);
    this.#knownSeqs.delete(runId);
  }

  onAdmitted(runId: string): void {
    void this.#deps.tasks.track(this.#takeAdmitted(runId));
  }

  /** Takes a run that has a slot; frees the slot if the run cannot be taken. */
  async #takeAdmitted(runId: string): Promise<void> {
    const { runs, admission } = this.#deps;
    try {
      const take = (): Promise<boolean> => this.#taking.run(() => this.#take(runId));
      const isHeld = runs.holds(runId) || admission.isQueued(runId);
      if (!isHeld && (await runs.duringClaim(runId, take))) return;
    } catch (error) {
      runs.reportFault(runId, error);
    } finally {
      this.#knownSeqs.delete(runId);
    }
    admission.leave();
  }

  /** Claims a run for this instance unless a live instance owns it. @returns whether it is live here afterwards */
  async #take(runId: string): Promise<boolean> {
    const { runs, tasks } = this.#deps;
    if (tasks.isEnding) return false;
    return await handleCommand({
      read: () => this.#load(runId),
      decide: (replayed) => ({ replayed, facts: replayed === null ? [] : this.#claimOf(runId, replayed) }),
      async append({ replayed, facts }) {
        if (replayed === null) return false;
        if (facts.length === 0) {
          runs.notify(replayed.snapshot.context.run);
          return false;
        }
        await runs.append(runId, { ...replayed, waitsForRoom: true }, facts);
        return true;
      },
    });
  }

  /** @throws {RunCorrupt} also when the record ends before the last known revision */
  async #load(runId: string): Promise<Replay | null> {
    const seen = this.#knownSeqs.get(runId);
    const replayed = await this.#deps.runs.loadOnceAvailable(runId);
    if (seen !== undefined) await assertReaches(runId, replayed, { seen, log: this.#deps.log });
    return replayed;
  }

  #claimOf(runId: string, { chart, snapshot }: Replay): readonly RunFact[] {
    const { runs, suspicions } = this.#deps;
    const { ownership, phase } = snapshot.context.run;
    const { owner } = ownership;
    const context = runs.decisionContext();
    const isOwn = owner === context.instanceId;
    if (isOwn ? runs.isHeldElsewhere(runId) : owner !== null && !suspicions.isSuspect(owner)) return [];
    // Reclaiming an own run that was abandoned is no takeover from a dead owner, so it does not count as one.
    const reason = phase.status === 'pending' ? 'started' : owner === null || isOwn ? 'handover' : 'recovered';
    return decide(chart, snapshot, { command: { type: 'ClaimRun', reason }, context }).facts;
  }
}
