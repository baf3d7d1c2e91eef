/** Starts runs: records equal requests once, claims the run if a slot is free and leaves it pending otherwise. */
import { LogUnavailable, RevisionConflict } from '../../eventlog/errors.js';
import { KeyReused } from '../errors.js';
import { checkAppend } from '../../eventlog/port.js';
import type { EventLog } from '../../eventlog/port.js';
import type { RunFailedData, RunRequestedData } from '../../generated/schemas.js';
import type { RunActorDeps } from '../live/actor.js';
import type { Admission } from '../live/admission.js';
import type { MachineCache } from '../machine.js';
import type { RunFact } from '../events.js';
import type { Chart } from '../machine.js';
import { decisionContext } from '../pending-events.js';
import type { NewRun } from '../request.js';
import { newRun, refuseRun, requestRun } from '../request.js';
import { factsAfter, readRun } from '../stream.js';
import { sealAppend } from '../../eventsourcing/handle-command.js';

export interface RunStartsDeps {
  readonly actorDeps: RunActorDeps;
  readonly machines: MachineCache;
  readonly admission: Admission;
  /** Appends a new run's facts; if they claim the run, its actor starts. */
  readonly record: (runId: string, chart: Chart, run: NewRun) => Promise<unknown>;
}

export class RunStarts {
  readonly #deps: RunStartsDeps;
  /** Starts in flight: an equal request waits for the first and gets its answer. */
  readonly #starting = new Map<string, Promise<RunRequestedData>>();

  constructor(deps: RunStartsDeps) {
    this.#deps = deps;
  }

  /**
   * Records a new run and starts it, or leaves it pending when no slot is free. Resolves once its first event is
   * durable.
   *
   * @returns the recorded request: with a repeated key that of the first
   * @throws {KeyReused} the run exists and was requested with another body
   * @throws {TooManyPending} when no further run may be pending; nothing is recorded
   */
  async start(requested: RunRequestedData): Promise<RunRequestedData> {
    const { runId, bodyHash } = requested;
    const earlier = this.#starting.get(runId);
    if (earlier !== undefined) {
      await earlier.catch(() => undefined);
      const repeated = await requestedBefore(this.#deps.actorDeps.log, runId, [bodyHash]);
      if (repeated !== null) return repeated;
    }
    const starting = this.#begin(requested);
    this.#starting.set(runId, starting);
    try {
      return await starting;
    } catch (error) {
      return await this.#firstOf(requested, error);
    } finally {
      this.#starting.delete(runId);
    }
  }

  /** Records a run that cannot begin: it is requested and fails in one append. Returns and throws as `start` does. */
  async refuse(requested: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    const { machines, record } = this.#deps;
    try {
      const facts = refuseRun(requested, failure);
      await record(requested.runId, machines.of(requested), { facts, claim: null });
      return requested;
    } catch (error) {
      return await this.#firstOf(requested, error);
    }
  }

  /**
   * The facts that a start would record now if a slot is free; records nothing.
   *
   * @throws {AppendTooLarge} as the start would
   */
  foresee(requested: RunRequestedData): readonly RunFact[] {
    const { actorDeps, machines } = this.#deps;
    const { runId } = requested;
    const facts = requestRun(machines.of(requested), requested, { claim: true, context: decisionContext(actorDeps) });
    const { stream, events, expected } = sealAppend(actorDeps, factsAfter(null, runId, facts));
    checkAppend(stream, events, expected);
    return facts;
  }

  async #begin(requested: RunRequestedData): Promise<RunRequestedData> {
    const { actorDeps, machines, admission, record } = this.#deps;
    const chart = machines.of(requested);
    const claim = admission.tryEnter();
    if (!claim) admission.announce();
    try {
      await record(requested.runId, chart, newRun(chart, requested, { claim, context: decisionContext(actorDeps) }));
      if (!claim) admission.wait(requested.runId);
      return requested;
    } catch (error) {
      if (claim) admission.leave();
      throw error;
    } finally {
      if (!claim) admission.arrived();
    }
  }

  /** The recorded request of the first of equal requests, when this one lost to it on the log. */
  async #firstOf(requested: RunRequestedData, error: unknown): Promise<RunRequestedData> {
    if (!(error instanceof RevisionConflict)) throw error;
    const first = await requestedBefore(this.#deps.actorDeps.log, requested.runId, [requested.bodyHash]);
    // After a conflict the first event must be readable; if it is not, the log is unavailable at the moment.
    if (first === null) throw new LogUnavailable({ cause: error });
    return first;
  }
}

/**
 * The recorded request of a run; null when there is no such run.
 *
 * @param bodyHashes hashes that an equal body may have been recorded with
 * @throws {KeyReused} when its body was another
 */
export async function requestedBefore(
  log: EventLog,
  runId: string,
  bodyHashes: readonly string[],
): Promise<RunRequestedData | null> {
  for await (const { type, data } of readRun(log, runId, { max: 1 })) {
    if (type !== 'RunRequested') break;
    if (!bodyHashes.includes(data.bodyHash)) throw new KeyReused({ runId });
    return data;
  }
  return null;
}
