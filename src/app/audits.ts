/** Verifies the records of runs: on request, and at the start those of runs that have not ended. */
import type { System } from '../system/system.js';
import type { RunVerification, VerifyRunDeps } from '../audit/verify.js';
import { verifyRun } from '../audit/verify.js';
import { genealogyOf } from '../audit/genealogy.js';
import { recordCheck } from '../audit/record-check.js';
import type { Genealogy } from '../generated/schemas.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { RunReader } from '../projections/run-reader.js';
import type { UnfinishedRun } from '../run/state.js';
import type { RunServicesDeps } from './runs.js';
import type { EngineDeps } from './context.js';

export interface RunAudits {
  /** Reads and checks a run's whole record, and the stored view of it; null when nothing is known of the run. */
  readonly verify: (runId: string) => Promise<RunVerification | null>;
  /** Where a run's drafts come from; null when there is no such run. @throws {RunDamaged} */
  readonly genealogy: (runId: string) => Promise<Genealogy | null>;
  /** Verifies the runs that have not ended, paused ones among them; the start need not wait longer than this does. */
  check(unfinished: readonly UnfinishedRun[]): Promise<void>;
  /** Ends that check. */
  stop(): Promise<void>;
}

export interface AuditsDeps
  extends Pick<RunServicesDeps, 'log' | 'charts' | 'corruptRuns'>, Pick<EngineDeps, 'logger'> {
  readonly system: System;
  readonly reader: RunReader;
  readonly history: History;
  readonly projector: Projector;
}

export function runAudits(deps: AuditsDeps): RunAudits {
  const { log, charts, corruptRuns, logger, system, reader, history, projector } = deps;
  const { sha256 } = system;
  const audit = (runId: string, replaceView: VerifyRunDeps['replaceView']): Promise<RunVerification | null> =>
    verifyRun(runId, {
      ...{ log, machines: charts, sha256, replaceView },
      async stored(id) {
        await projector.reached(await log.head());
        return await history.stored(id);
      },
      onCorrupt: (error) => corruptRuns.found(error),
    });
  const onFault = (error: unknown): void => logger.error({ err: error }, 'runs: the check of their records has ended');
  // A view that differs is left for a verification on request, which reports it.
  const check = recordCheck({ verify: (runId) => audit(runId, async () => undefined), system, onFault });
  return {
    verify: (runId) =>
      audit(runId, async (seen, fold) => {
        logger.error({ runId }, 'run: the stored view of it was not the fold of its events, and is replaced');
        await history.replace(seen, fold);
      }),
    genealogy: (runId) => reader.folded(runId, (events) => genealogyOf(runId, events, { sha256, canonical })),
    check: (unfinished) => check.start(notEnded(unfinished, history)),
    stop: () => check.stop(),
  };
}

/** Runs without an owner come first: a run that is taken up is replayed anyway. */
async function* notEnded(unfinished: readonly UnfinishedRun[], history: History): AsyncGenerator<string> {
  for (const { runId, owner } of unfinished) if (owner === null) yield runId;
  yield* history.paused();
  for (const { runId, owner } of unfinished) if (owner !== null) yield runId;
}
