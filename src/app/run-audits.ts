/** Verifies the records and stored views of runs: one on request, and at the start all that have not ended. */
import type { DeliberationRecord, Genealogy, OversightRow } from '../generated/schemas.js';
import { deliberationOf } from '../audit/deliberation.js';
import { genealogyOf } from '../audit/genealogy.js';
import { decisionsOf } from '../audit/oversight.js';
import type { Marking } from '../draft/marking.js';
import { markingOf } from '../draft/marking.js';
import type { AttemptPlace, PromptFound } from '../audit/prompt.js';
import { promptOf } from '../audit/prompt.js';
import type { CitedPage } from '../audit/sources.js';
import { citedPagesOf } from '../audit/sources.js';
import { storedPages } from '../documents/stored-chunks.js';
import type { RecordCheck } from '../audit/record-check.js';
import { recordCheck } from '../audit/record-check.js';
import type { RunVerification, VerifyRunDeps } from '../audit/verify.js';
import { verifyRun } from '../audit/verify.js';
import type { EventLog } from '../eventlog/port.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { CorruptRuns } from '../projections/corrupt-runs.js';
import type { Projector } from '../projections/projector.js';
import { readUpToDate, readUpToDateUntil, readUpToDateWithRetry } from '../projections/read-up-to-date.js';
import type { History } from '../projections/run-history.js';
import { assertNotErased } from '../projections/run-queries.js';
import type { RunSummary } from '../projections/run-summary.js';
import type { RunReader } from '../run/runs/reader.js';
import type { ChartCache } from '../run/chart/machine.js';
import type { UnfinishedRun } from '../run/state.js';
import { TaskTracker } from '../system/async/tasks.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';

export interface RunAuditsDeps {
  readonly log: EventLog;
  readonly charts: ChartCache;
  readonly corruptRuns: CorruptRuns;
  readonly reader: RunReader;
  readonly history: History;
  readonly projector: Projector;
  readonly system: System;
  readonly logger: Logger;
}

export class RunAudits {
  readonly #deps: RunAuditsDeps;
  readonly #tasks = new TaskTracker();
  readonly #check: RecordCheck;

  constructor(deps: RunAuditsDeps) {
    this.#deps = deps;
    this.#check = recordCheck({
      verify: (runId) => this.#verifyInBackground(runId),
      system: deps.system,
      onFault: (err) => deps.logger.error({ err }, 'runs: the check of their records stopped early'),
    });
  }

  /** Reads and checks a run's whole record and its stored view, or returns null if there is no such run. */
  verify(runId: string): Promise<RunVerification | null> {
    const { logger, history } = this.#deps;
    return this.#verify(runId, async (seen, fold) => {
      logger.error({ runId }, 'run: its stored view differed from its events; replacing the view');
      await history.replace(seen, fold);
    });
  }

  /** Where a run's drafts come from, or null if there is no such run. @throws {RunCorrupt} */
  async genealogy(runId: string): Promise<Genealogy | null> {
    const { reader, system, history } = this.#deps;
    const { sha256 } = system;
    const found = await reader.folded(runId, (events) => genealogyOf(runId, events, { sha256, canonical }));
    if (found === null || found.parent === null) return found;
    const { run_id: parent } = found.parent;
    const isErased = (await readUpToDate(this.#deps, () => history.erasedAs('run', parent))) !== null;
    return isErased ? { ...found, parent: { ...found.parent, erased: true } } : found;
  }

  /** The decisions on a run's pauses in order; none if there is no such run. @throws {RunCorrupt} */
  decisions(runId: string): Promise<readonly OversightRow[]> {
    return this.#deps.reader.folded(runId, (events) => decisionsOf(runId, events));
  }

  /** What made a run's draft, or null if there is no such run. @throws {RunCorrupt} */
  marking(runId: string): Promise<Marking | null> {
    return markingOf(runId, (id, read, max) => this.#deps.reader.folded(id, read, max));
  }

  /** What the members of panels, ranks, judges and juries have answered, or null if there is no such run. @throws {RunCorrupt} */
  deliberation(runId: string): Promise<DeliberationRecord | null> {
    return deliberationOf(runId, (id, fold, max) => this.#deps.reader.folded(id, fold, max));
  }

  /** The pages that the draft of a run cites, with its quotations of them, or null if there is no such run. @throws {RunCorrupt} */
  citedPages(runId: string): Promise<readonly CitedPage[] | null> {
    const { reader, system } = this.#deps;
    return citedPagesOf(runId, {
      folded: (id, fold, max) => reader.folded(id, fold, max),
      pagesOf: (document, pages) => storedPages(this.#deps, document, pages),
      pause: () => new Promise((resolve) => void system.after(0, resolve)),
    });
  }

  /** The prompt that an attempt of a node sent to its model. @throws {RunCorrupt} */
  prompt(runId: string, at: AttemptPlace): Promise<PromptFound> {
    const { reader, system } = this.#deps;
    return reader.folded(runId, (events) => promptOf(runId, events, { ...at, sha256: system.sha256 }));
  }

  /**
   * Verifies the runs that have not ended, paused ones too. Resolves after at most 100 ms; the check then continues in
   * the background.
   */
  check(unfinished: readonly UnfinishedRun[]): Promise<void> {
    return this.#check.start(this.#notEnded(unfinished));
  }

  /** Ends the check. */
  async stop(): Promise<void> {
    await Promise.all([this.#check.stop(), this.#tasks.end()]);
  }

  /**
   * Replaces the view of a repaired run, which is outdated. Does not replace another view that differs from the record:
   * a verification on request does, and reports it.
   */
  #verifyInBackground(runId: string): Promise<RunVerification | null> {
    const { corruptRuns, history } = this.#deps;
    const wasCorrupt = corruptRuns.has(runId);
    return this.#verify(runId, async (seen, fold) => (wasCorrupt ? await history.replace(seen, fold) : undefined));
  }

  #verify(runId: string, replaceView: VerifyRunDeps['replaceView']): Promise<RunVerification | null> {
    const { log, charts, corruptRuns, system } = this.#deps;
    return verifyRun(runId, {
      log,
      charts,
      sha256: system.sha256,
      replaceView,
      stored: (id) => readUpToDateUntil(this.#deps, () => this.#stored(id), this.#tasks.signal),
      onCorrupt: (error) => corruptRuns.mark(error),
      onValid: (id) => corruptRuns.unmark(id),
    });
  }

  /** The stored view of a run, or null. @throws {RunErased} the events may be there a moment longer, and must give no view */
  async #stored(runId: string): Promise<RunSummary | null> {
    const { history } = this.#deps;
    const run = await history.stored(runId);
    if (run === null) await assertNotErased(history, runId);
    return run;
  }

  /** Paused runs and those without an owner come first: the others are verified when an instance takes them over. */
  async *#notEnded(unfinished: readonly UnfinishedRun[]): AsyncGenerator<string> {
    const { history } = this.#deps;
    const { signal } = this.#tasks;
    for (const { runId, owner } of unfinished) if (owner === null) yield runId;
    for (let after = 0; ;) {
      const from = after;
      const page = await readUpToDateWithRetry(this.#deps, () => history.paused(from), signal);
      for (const { id } of page) yield id;
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.key;
    }
    for (const { runId, owner } of unfinished) if (owner !== null) yield runId;
  }
}
