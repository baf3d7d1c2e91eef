/** Starts runs: records equal requests once, claims the run if a slot is free and leaves it pending otherwise. */
import { LogUnavailable, RevisionConflict } from '../../eventlog/errors.js';
import { KeyReused } from '../errors.js';
import { checkAppend } from '../../eventlog/port.js';
import type { EventLog } from '../../eventlog/port.js';
import type { RunFailedData, RunRequestedData } from '../../generated/schemas.js';
import type { System } from '../../system/system.js';
import type { Admission } from '../live/admission.js';
import type { RunRepository } from '../live/run-repository.js';
import type { ChartCache } from '../chart/machine.js';
import type { RunFact } from '../events.js';
import { firstFacts, refusedRunFacts } from '../request.js';
import { factsAfter, readRun } from '../stream.js';
import { sealAppend } from '../../eventsourcing/handle-command.js';

export interface RunStartsDeps {
  readonly runs: RunRepository;
  readonly admission: Admission;
  readonly charts: ChartCache;
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
}

export class RunStarts {
  readonly #deps: RunStartsDeps;
  /** By run id. An equal request waits for the first and gets its answer. */
  readonly #startsInFlight = new Map<string, Promise<RunRequestedData>>();

  constructor(deps: RunStartsDeps) {
    this.#deps = deps;
  }

  /**
   * Records a new run and starts it, or leaves it pending when no slot is free. Resolves when its first events are
   * durable; with a slot the run's actor is then live and has started its first attempts.
   *
   * @returns the recorded request: with a repeated key that of the first
   * @throws {KeyReused} the run exists and was requested with another body
   * @throws {TooManyPending} when no further run may be pending; nothing is recorded
   */
  async start(request: RunRequestedData): Promise<RunRequestedData> {
    const { runId, bodyHash } = request;
    const earlier = this.#startsInFlight.get(runId);
    if (earlier !== undefined) {
      await earlier.catch(() => undefined);
      const repeated = await findRequest(this.#deps.log, runId, [bodyHash]);
      if (repeated !== null) return repeated;
    }
    const recording = this.#recordNew(request);
    this.#startsInFlight.set(runId, recording);
    try {
      return await recording;
    } catch (error) {
      return await this.#findFirst(request, error);
    } finally {
      this.#startsInFlight.delete(runId);
    }
  }

  /** Records a run that cannot begin: it is requested and fails in one append. Returns and throws as `start` does. */
  async refuse(request: RunRequestedData, failure: RunFailedData): Promise<RunRequestedData> {
    const { charts, runs } = this.#deps;
    try {
      const facts = refusedRunFacts(request, failure);
      await runs.append(request.runId, { chart: charts.of(request), snapshot: null }, facts);
      return request;
    } catch (error) {
      return await this.#findFirst(request, error);
    }
  }

  /**
   * The facts that a start would record now if a slot is free; records nothing.
   *
   * @throws {AppendTooLarge} as the start would
   */
  preview(request: RunRequestedData): readonly RunFact[] {
    const { runs, charts } = this.#deps;
    const { runId } = request;
    const { facts } = firstFacts(charts.of(request), request, { hasSlot: true, context: runs.decisionContext() });
    const { stream, events, expected } = sealAppend(this.#deps, factsAfter(null, runId, facts));
    checkAppend(stream, events, expected);
    return facts;
  }

  async #recordNew(request: RunRequestedData): Promise<RunRequestedData> {
    const { runs, charts, admission } = this.#deps;
    const chart = charts.of(request);
    const hasSlot = admission.tryEnter();
    if (!hasSlot) admission.reserve();
    try {
      const { facts, claimDecision } = firstFacts(chart, request, { hasSlot, context: runs.decisionContext() });
      await runs.append(request.runId, { chart, snapshot: null, claimDecision }, facts);
      if (!hasSlot) admission.enqueue(request.runId);
      return request;
    } catch (error) {
      if (hasSlot) admission.leave();
      throw error;
    } finally {
      if (!hasSlot) admission.endReservation();
    }
  }

  /**
   * The recorded request of an equal start that was appended before this one. Throws any error but that conflict again.
   */
  async #findFirst(request: RunRequestedData, error: unknown): Promise<RunRequestedData> {
    if (!(error instanceof RevisionConflict)) throw error;
    const first = await findRequest(this.#deps.log, request.runId, [request.bodyHash]);
    // After a conflict the first event must be readable. If it is not, the log is unavailable.
    if (first === null) throw new LogUnavailable({ cause: error });
    return first;
  }
}

/**
 * The recorded request of a run, or null if there is no such run.
 *
 * @param bodyHashes hashes that an equal body may have been recorded with
 * @throws {KeyReused} when its body differs
 */
export async function findRequest(
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
