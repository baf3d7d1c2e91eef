/** Verifies records and stored views, on request and at the start: runs first, and of these the unfinished ones. */
import type { System } from '../system/system.js';
import type { RunVerification, VerifyRunDeps } from '../audit/verify.js';
import { verifyRun } from '../audit/verify.js';
import { genealogyOf } from '../audit/genealogy.js';
import type { AttemptPlace, PromptFound } from '../audit/prompt.js';
import { promptOf } from '../audit/prompt.js';
import { recordCheck } from '../audit/record-check.js';
import type { Genealogy } from '../generated/schemas.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { Page } from '../projections/run-summary.js';
import type { RunReader } from '../projections/run-reader.js';
import type { KeyedRun } from '../projections/views/run-table.js';
import type { UnfinishedRun } from '../run/state.js';
import type { RunServicesDeps } from './runs.js';
import type { EngineDeps } from './context.js';
import type { CorruptDocuments } from '../documents/verify.js';
import type { DocumentCheck, VerifyDocumentDeps } from '../documents/verify.js';
import { verifyDocument } from '../documents/verify.js';
import { documentIdOf } from '../documents/events.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { retryWhileUnavailable } from '../eventsourcing/append-with-retry.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { currentBlueprint } from '../blueprint/stream.js';
import type { ReadUntilDeps } from '../projections/read-up-to-date.js';
import { readUpToDateWithRetry, readUpToDateUntil } from '../projections/read-up-to-date.js';
import { TaskTracker } from '../system/async/task-tracker.js';

export interface RunAudits {
  /** Reads and checks a run's whole record, and the stored view of it; null when nothing is known of the run. */
  readonly verify: (runId: string) => Promise<RunVerification | null>;
  /** Where a run's drafts come from; null when there is no such run. @throws {RunCorrupt} */
  readonly genealogy: (runId: string) => Promise<Genealogy | null>;
  /** What a node was sent. @throws {RunCorrupt} */
  readonly prompt: (runId: string, at: AttemptPlace) => Promise<PromptFound>;
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
  const tasks = new TaskTracker();
  const folding = { log, projector, system };
  const asked = <T>(ask: () => Promise<T>): Promise<T> => readUpToDateUntil(folding, ask, tasks.signal);
  const paused = (after: number): Promise<readonly KeyedRun[]> =>
    readUpToDateWithRetry(folding, () => history.paused(after), tasks.signal);
  const audit = (runId: string, replaceView: VerifyRunDeps['replaceView']): Promise<RunVerification | null> =>
    verifyRun(runId, {
      ...{ log, machines: charts, sha256, replaceView },
      stored: (id) => asked(() => history.stored(id)),
      onCorrupt: (error) => corruptRuns.mark(error),
      onValid: (id) => corruptRuns.unmark(id),
    });
  const onFault = (error: unknown): void => logger.error({ err: error }, 'runs: the check of their records has ended');
  // A view that differs is left for a verification on request, which reports it; that of a repaired run is outdated.
  const verifyQuietly = (runId: string): Promise<RunVerification | null> => {
    const wasCorrupt = corruptRuns.has(runId);
    return audit(runId, async (seen, fold) => (wasCorrupt ? await history.replace(seen, fold) : undefined));
  };
  const check = recordCheck({ verify: verifyQuietly, system, onFault });
  return {
    verify: (runId) =>
      audit(runId, async (seen, fold) => {
        logger.error({ runId }, 'run: the stored view of it was not the fold of its events, and is replaced');
        await history.replace(seen, fold);
      }),
    genealogy: (runId) => reader.folded(runId, (events) => genealogyOf(runId, events, { sha256, canonical })),
    prompt: (runId, at) => reader.folded(runId, (events) => promptOf(runId, events, { ...at, sha256 })),
    check(unfinished) {
      return check.start(notEnded(unfinished, paused));
    },
    async stop() {
      await Promise.all([check.stop(), tasks.end()]);
    },
  };
}

/** Paused runs and those without an owner come first: the others are verified when an instance takes them over. */
async function* notEnded(
  unfinished: readonly UnfinishedRun[],
  paused: (after: number) => Promise<readonly KeyedRun[]>,
): AsyncGenerator<string> {
  for (const { runId, owner } of unfinished) if (owner === null) yield runId;
  for (let page = await paused(0); page.length > 0; page = await paused(page.at(-1)?.key ?? 0)) {
    for (const { id } of page) yield id;
  }
  for (const { runId, owner } of unfinished) if (owner !== null) yield runId;
}

// Verifies the records of documents: on request, and at the start those of listed ones.

/** Ids read from a list at a time. */
const PAGE = 100;

export interface DocumentAudits {
  /** Reads and checks a document's whole record, and the stored view of it; null when nothing is known of it. */
  verify(documentId: string): Promise<DocumentCheck | null>;
  /** Verifies a corrupt one again after an event that completes or removes it, once the log can be read. */
  changed(event: RecordedEvent): void;
  /** Verifies all that are listed; the start need not wait longer than this does. */
  check(): Promise<void>;
  /** Ends that check. */
  stop(): Promise<void>;
}

export interface DocumentAuditsDeps extends Pick<EngineDeps, 'system' | 'logger'> {
  readonly log: EventLog;
  readonly history: History;
  readonly corruptDocuments: CorruptDocuments;
  /** Null before it folds. */
  readonly projector: () => ReadUntilDeps['projector'] | null;
}

export function documentAudits(deps: DocumentAuditsDeps): DocumentAudits {
  const { log, history, corruptDocuments, projector: projectorOf, system, logger } = deps;
  const tasks = new TaskTracker();
  const asked = <T>(ask: () => Promise<T>, wait: typeof readUpToDateWithRetry): Promise<T> => {
    const projector = projectorOf();
    return projector === null ? ask() : wait({ log, projector, system }, ask, tasks.signal);
  };
  const documentIds = (page: Page): Promise<readonly string[]> =>
    asked(async () => (await history.documents(page)).map(({ id }) => id), readUpToDateWithRetry);
  const audit = (documentId: string, replaceView: VerifyDocumentDeps['replaceView']): Promise<DocumentCheck | null> =>
    verifyDocument(documentId, {
      ...{ log, sha256: system.sha256, replaceView },
      stored: (id) => asked(() => history.document(id), readUpToDateUntil),
      onCorrupt: (error) => corruptDocuments.found(error),
      onValid: (id) => corruptDocuments.forget(id),
    });
  // A view that differs is left for a verification on request, which reports it.
  const verifyQuietly = (documentId: string): Promise<DocumentCheck | null> => audit(documentId, async () => undefined);
  const onFault = (err: unknown): void => logger.error({ err }, 'documents: the check of their records has ended');
  const check = recordCheck({ verify: verifyQuietly, system, onFault });
  const recheck = async (documentId: string): Promise<void> => {
    try {
      await retryWhileUnavailable(() => verifyQuietly(documentId), { system, signal: tasks.signal });
    } catch (err) {
      if (!tasks.isEnding) logger.error({ documentId, err }, 'document: its changed record could not be verified');
    }
  };
  return {
    verify: (documentId) =>
      audit(documentId, async (seen, record) => {
        logger.error({ documentId }, 'document: the stored view of it was not the fold of its events, and is replaced');
        await history.replaceDocument(seen, { id: documentId, record });
      }),
    changed({ stream }) {
      const id = documentIdOf(stream);
      if (id !== null && corruptDocuments.has(id)) void tasks.track(recheck(id));
    },
    check: () => check.start(listed(documentIds)),
    async stop() {
      await Promise.all([check.stop(), tasks.end()]);
    },
  };
}

// Compares the stored views of blueprints with the log, only at the start.

export interface BlueprintAudits {
  /** Replaces the stored views that differ, and reports them; the start need not wait longer than this does. */
  check(): Promise<void>;
  /** Ends that check. */
  stop(): Promise<void>;
}

export function blueprintAudits({
  log,
  history,
  projector,
  system,
  logger,
}: Pick<AuditsDeps, 'log' | 'history' | 'projector' | 'system' | 'logger'>): BlueprintAudits {
  const tasks = new TaskTracker();
  const asked = <T>(ask: () => Promise<T>): Promise<T> =>
    readUpToDateWithRetry({ log, projector, system }, ask, tasks.signal);
  const storedOf = async (id: string): Promise<string | null> => {
    const [stored = null] = await asked(() => history.blueprintRecords([id]));
    return stored;
  };
  const verify = async (id: string): Promise<void> => {
    const stored = await storedOf(id);
    const record = await currentBlueprint(id, { log, sha256: system.sha256 });
    if (stored === null || stored === JSON.stringify(record)) return;
    // One that has changed meanwhile has a newer view by now.
    if ((await storedOf(id)) !== stored) return;
    logger.error({ id }, 'blueprint: the stored view of it was not the fold of its events, and is replaced');
    await history.replaceBlueprint(stored, { id, record });
  };
  const verifySound = async (id: string): Promise<void> => {
    try {
      await verify(id);
    } catch (error) {
      // It is answered with an error wherever it is asked for, and its row keeps its last valid record.
      if (!(error instanceof BlueprintCorrupt)) throw error;
    }
  };
  const onFault = (err: unknown): void => logger.error({ err }, 'blueprints: the check of their views has ended');
  const check = recordCheck({ verify: verifySound, system, onFault });
  return {
    check: () => check.start(listed((page) => asked(() => history.blueprintIds(page)))),
    async stop() {
      await Promise.all([check.stop(), tasks.end()]);
    },
  };
}

/** The ids of a list, page by page. */
async function* listed(idsOf: (page: Page) => Promise<readonly string[]>): AsyncGenerator<string> {
  for (let offset = 0; ; offset += PAGE) {
    const ids = await idsOf({ limit: PAGE, offset });
    yield* ids;
    if (ids.length < PAGE) return;
  }
}
