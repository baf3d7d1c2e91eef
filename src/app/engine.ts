/** The engine: log, registry and read models wired together, without HTTP. */
import { join } from 'node:path';
import type { RunAudits } from './audits.js';
import { blueprintAudits, runAudits } from './audits.js';
import { Authenticator } from '../keys/authenticator.js';
import { BlueprintStore } from '../blueprint/store.js';
import type { Cluster } from '../cluster/cluster.js';
import { logContact, readingFault } from './log-contact.js';
import { pauseDeadlines } from './deadlines.js';
import type { DataDirectory } from './data-directory.js';
import { RunCorrupt } from '../run/errors.js';
import type { Documents, DocumentServices } from './documents.js';
import { documentServices } from './documents.js';
import { DocumentCorrupt } from '../documents/errors.js';
import type { OpenedRecord } from './record.js';
import { openRecord, VIEWS_FILE } from './record.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import type { CorruptRuns } from '../projections/corrupt-runs.js';
import type { BlueprintList, BlueprintListDeps } from '../projections/blueprints.js';
import { blueprintList } from '../projections/blueprints.js';
import type { DocumentList, DocumentListDeps } from '../projections/documents.js';
import { documentList } from '../projections/documents.js';
import type { History } from '../projections/run-history.js';
import type { ProjectorOptions } from '../projections/projector.js';
import { Projector } from '../projections/projector.js';
import { feedCursors } from '../projections/feed-cursor.js';
import { Inbox } from '../projections/inbox.js';
import type { LogFeedDeps } from '../projections/log-feed.js';
import { LogFeed } from '../projections/log-feed.js';
import type { RunFeedDeps } from '../projections/run-feed.js';
import { RunFeed } from '../projections/run-feed.js';
import type { ReadModels, ReadModelsOptions } from '../projections/read-models.js';
import { openReadModels } from '../projections/read-models.js';
import { RunQueries } from '../projections/run-queries.js';
import type { ReadDeps } from '../projections/read-up-to-date.js';
import { readUpToDateWithRetry } from '../projections/read-up-to-date.js';
import type { RunsInMemory } from '../projections/runs-in-memory.js';
import type { RunFact } from '../run/events.js';
import { runIdOf } from '../run/events.js';
import { machineCache } from '../run/machine.js';
import type { Deadlines } from '../run/live/deadlines.js';
import { LiveRuns } from '../run/live/live-runs.js';
import type { RunRegistry } from '../run/live/registry.js';
import type { UnfinishedRun } from '../run/state.js';
import { readiness } from './readiness.js';
import type { RunServices } from './runs.js';
import { runServices } from './runs.js';
import type { EngineConfig, EngineDeps } from './context.js';
import { OwnAppends } from '../run/live/own-appends.js';
import { TokenBus } from '../run/live/tokens.js';

/** What drives runs, without HTTP: the service puts HTTP and sockets before it, the benchmark drives it directly. */
export interface Engine {
  readonly log: EventLog;
  readonly registry: RunRegistry;
  readonly queries: RunQueries;
  /** Drafts as they are written here. */
  readonly tokens: TokenBus;
  readonly views: RunsInMemory;
  /** The events of runs as they are recorded. */
  readonly feed: RunFeed;
  /** The events of all runs in the log's order. */
  readonly logFeed: LogFeed;
  readonly inbox: Inbox;
  readonly verify: RunAudits['verify'];
  readonly genealogy: RunAudits['genealogy'];
  readonly prompt: RunAudits['prompt'];
  readonly blueprints: BlueprintStore;
  readonly blueprintList: BlueprintList;
  readonly documents: Documents;
  readonly documentList: DocumentList;
  /** Authenticates callers by keys, sessions and tickets. */
  readonly authenticator: Authenticator;
  /**
   * Whether the read models keep up with the log and can be written.
   *
   * @throws {LogUnavailable | LogClosed | LogFull | LogCorrupt} when the log does not answer, takes nothing or is damaged
   */
  isReady(): Promise<boolean>;
  readonly unreachableModels: RunServices['unreachableModels'];
  readonly modelUses: RunServices['modelUses'];
  /** The runs that are neither finished nor paused, oldest first; resolves once the read models have caught up. */
  unfinished(): Promise<readonly UnfinishedRun[]>;
  /** Looks for corrupt records of unfinished and paused runs: for a while before it resolves, then in the background. */
  check(unfinished: readonly UnfinishedRun[]): Promise<void>;
  /** Takes up those without an owner. Called before any new run may start, so that none is overtaken. */
  recover(unfinished: readonly UnfinishedRun[]): void;
  /** In place of that, for a process that runs its own runs only: sends heartbeats to other instances. */
  beat(): void;
  stop(): Promise<void>;
}

/**
 * Opens the log and the read models. A log that cannot be reached is waited for, which is logged.
 *
 * @throws {DataDirHeld | LogUnreadable | ConfigInvalid} when the record cannot be opened
 */
export async function openEngine(config: EngineConfig, deps: EngineDeps): Promise<Engine> {
  const { dataDir, system, logger, overrides = {} } = deps;
  const { openViews: open, charts = machineCache() } = overrides;
  const instanceId = system.uuid();
  const { log, authenticator, ...logInfo } = await reachedRecord(config, deps, instanceId);
  const onFault = readingFault(logger);
  const onLost = (cause: unknown): void => foldAgain(cause, { logger, projector });
  const onCorrupt = (error: RunCorrupt): void => giveUp(error, { logger, cluster, shown: [feed, models.views] });
  const folded = { ...logInfo, ...(config.eventStore === null && { file: dataDir.logFile }) };
  const liveRuns = new LiveRuns();
  const isLive = (runId: string): boolean => liveRuns.has(runId);
  const reading = { log: folded, system, onCorrupt, onLost, onFault, isLive, open };
  const models = await modelsOf(log, dataDir, reading);
  const { history, corruptRuns, reader, views } = models;
  const tokens = tokenBus(logger);
  const library = await documentServices(config, deps, { log, logInfo, history, instanceId });
  const chunkSearch = overrides.chunkSearch ?? library.chunkSearch;
  const ownAppends = new OwnAppends();
  const wiring = { log, tokens, charts, chunkSearch, corruptRuns, ownAppends, instanceId, liveRuns, reader };
  const { registry, cluster, unreachableModels, modelUses } = runServices(config, deps, wiring);
  const deadlines = pauseDeadlines({ registry, history, cluster, corruptRuns, system, logger });
  const { feed, logFeed } = feedsOf({ log, ...logInfo, reader, corruptRuns, system, onFault });
  const projector = new Projector({
    ...{ log, views, history, ownAppends, system, sha256: system.sha256 },
    ...eventsTo({ cluster, deadlines, corruptRuns, instanceId }),
    onRecorded: recordedTo({ feed, authenticator }, deps),
    onDocument: (event) => library.recorded(event),
    onFault: corruptionNoted({ corruptRuns, corruptDocuments: library.corruptDocuments }, onFault),
  });
  const folding = { log, reader, history, projector, system };
  const queries = new RunQueries({ ...folding, corruptRuns, live: (id) => registry.live(id) });
  const inbox = new Inbox({ queries, reader, logFeed, corruptRuns });
  const blueprints = new BlueprintStore({ log, system, instanceId, hasKeys: () => !authenticator.isOpen });
  const audits = runAudits({ ...folding, charts, corruptRuns, logger });
  const savedCouncils = blueprintAudits({ ...folding, logger });
  const caughtUp = startReading(library, projector);
  const stopping = new AbortController();

  return {
    ...{ verify: audits.verify, genealogy: audits.genealogy, prompt: audits.prompt, documents: library },
    async check(unfinished) {
      await Promise.all([audits.check(unfinished), library.check(), savedCouncils.check()]);
    },
    ...{ log, registry, queries, tokens, views, feed, logFeed, inbox, blueprints, authenticator },
    ...{ unreachableModels, modelUses, ...listsOf({ ...folding, corruptDocuments: library.corruptDocuments }) },
    isReady: readiness({ log, projector, library, history, cluster, system }),
    ...recoveryOf({ ...folding, caughtUp, stopping, cluster, deadlines, registry, corruptRuns, logger }),
    async stop() {
      stopping.abort();
      feed.stop();
      logFeed.stop();
      await Promise.all([cluster?.stop(), audits.stop(), savedCouncils.stop()]);
      // Together: what acts on a deadline waits for the log until the registry stops.
      await Promise.all([deadlines.stop(), registry.stop(), blueprints.stop(), authenticator.stop()]);
      await library.stop(history.checkpoint);
      await stopReading({ projector, history, models, onFault });
      await log.close();
    },
  };
}

function tokenBus(logger: EngineDeps['logger']): TokenBus {
  return new TokenBus({ onFault: (runId, error) => logger.error({ runId, err: error }, 'tokens: fault') });
}

function feedsOf({ identity, reader, ...deps }: FeedsDeps): Pick<Engine, 'feed' | 'logFeed'> {
  const { sha256 } = deps.system;
  return {
    feed: new RunFeed({ reader, sha256 }),
    logFeed: new LogFeed({ ...deps, cursors: feedCursors(identity, sha256) }),
  };
}

interface FeedsDeps extends Omit<RunFeedDeps, 'sha256'>, Omit<LogFeedDeps, 'cursors' | 'system'> {
  readonly identity: string;
  readonly system: EngineDeps['system'];
}

/** Stops a run that was found corrupt: it is no longer run, and nothing more of it is shown. */
function giveUp(
  error: RunCorrupt,
  {
    logger,
    cluster,
    shown,
  }: Pick<EngineDeps, 'logger'> & {
    readonly cluster: Cluster | null;
    readonly shown: readonly { notifyCorrupt(error: RunCorrupt): void }[];
  },
): void {
  const { runId } = error.data;
  logger.error({ runId, err: error }, 'run: its record is damaged');
  cluster?.giveUp(runId);
  for (const each of shown) each.notifyCorrupt(error);
}

/** Folds the stored views again after they failed. */
function foldAgain(
  err: unknown,
  { logger, projector }: Pick<EngineDeps, 'logger'> & { readonly projector: Projector },
): void {
  logger.error({ file: VIEWS_FILE, err }, 'read models: the stored views failed; rebuilding them from the log');
  projector.rebuild();
}

/** Types of the events that end a run. */
const ENDS: ReadonlySet<string> = new Set<RunFact['type']>(['RunCompleted', 'RunFailed']);

function recordedTo(
  { feed, authenticator }: Pick<Engine, 'feed' | 'authenticator'>,
  { onRunEnded }: Pick<EngineDeps, 'onRunEnded'>,
): (event: RecordedEvent) => void {
  return (event) => {
    authenticator.onEventRecorded(event);
    feed.deliver(event);
    const runId = ENDS.has(event.type) ? runIdOf(event.stream) : null;
    if (runId !== null) onRunEnded?.(runId);
  };
}

/** A handler that notes corrupt records and passes on all other errors. */
function corruptionNoted(
  { corruptRuns, corruptDocuments }: Pick<ReadModels, 'corruptRuns'> & Pick<DocumentServices, 'corruptDocuments'>,
  onFault: (error: unknown) => void,
): (error: unknown) => void {
  return (error) => {
    if (error instanceof RunCorrupt) corruptRuns.mark(error);
    else if (error instanceof DocumentCorrupt) corruptDocuments.found(error);
    else onFault(error);
  };
}

/** Opens the log and reads the keys, once the log answers. Closes the log if it throws. @throws {KeysCorrupt | ConfigInvalid} */
async function reachedRecord(
  config: EngineConfig,
  deps: EngineDeps,
  instanceId: string,
): Promise<OpenedRecord & Pick<Engine, 'authenticator'>> {
  const { system, logger, onKeys } = deps;
  const contact = logContact(deps);
  const record = await openRecord(config, deps, contact);
  const { log } = record;
  const onFault = (err: unknown): void => logger.error({ err }, 'keys: fault');
  const authenticator = new Authenticator({ log, system, instanceId, onFault });
  try {
    await contact.ask(() => authenticator.keys.load());
    await onKeys?.(authenticator.keys);
    return { ...record, authenticator };
  } catch (error) {
    await log.close();
    throw error;
  }
}

/** Without them the log is closed again. */
async function modelsOf(
  log: EventLog,
  { viewsDir }: DataDirectory,
  options: Omit<ReadModelsOptions, 'file' | 'from'>,
): Promise<ReadModels> {
  try {
    return await openReadModels({ ...options, file: join(viewsDir, VIEWS_FILE), from: log });
  } catch (error) {
    await log.close();
    throw error;
  }
}

function listsOf(parts: BlueprintListDeps & DocumentListDeps): Pick<Engine, 'blueprintList' | 'documentList'> {
  return { blueprintList: blueprintList(parts), documentList: documentList(parts) };
}

/** Recovers unfinished runs: of all instances, or of this process alone. */
function recoveryOf(parts: RecoveryDeps): Pick<Engine, 'unfinished' | 'recover' | 'beat'> {
  const { caughtUp, stopping, cluster, deadlines, registry, history, corruptRuns, logger } = parts;
  return {
    async unfinished() {
      await caughtUp;
      cluster?.listen();
      const unfinished = await readUpToDateWithRetry(parts, () => history.unfinished(), stopping.signal);
      return unfinished.filter(({ runId }) => !corruptRuns.has(runId));
    },
    recover(unfinished) {
      const runs = unfinished.filter(({ runId }) => !corruptRuns.has(runId));
      deadlines.start();
      if (cluster !== null) return cluster.start(runs);
      if (runs.length > 0) logger.info({ runs: runs.length }, 'runs taken up again');
      registry.recover(runs);
    },
    beat: () => cluster?.beat(),
  };
}

interface RecoveryDeps extends Pick<Engine, 'registry'>, Pick<EngineDeps, 'logger'>, ReadDeps {
  /** Aborted when the engine stops. */
  readonly stopping: AbortController;
  /** Once the read models have. */
  readonly caughtUp: Promise<void>;
  readonly cluster: Cluster | null;
  readonly deadlines: Deadlines;
  readonly history: History;
  readonly corruptRuns: CorruptRuns;
}

/** Starts folding; resolves once history is caught up. */
async function startReading(library: DocumentServices, projector: Projector): Promise<void> {
  await library.start(projector);
  await projector.start();
  library.historyRead();
}

/** What is not folded or not written yet is folded at the next start. */
async function stopReading({ projector, history, models, onFault }: ReadingDeps): Promise<void> {
  await projector.stop();
  await history.flush().catch(onFault);
  await models.close();
}

interface ReadingDeps {
  readonly projector: Projector;
  readonly history: History;
  readonly models: ReadModels;
  readonly onFault: (error: unknown) => void;
}

/** Each event goes to the cluster as it arrives; the fold of its run follows, unless it is corrupt: it must not continue. */
function eventsTo({
  cluster,
  deadlines,
  corruptRuns,
  instanceId,
}: Pick<RecoveryDeps, 'cluster' | 'deadlines' | 'corruptRuns'> & {
  readonly instanceId: string;
}): Required<Pick<ProjectorOptions, 'onArrived' | 'onFolded'>> {
  return {
    onArrived: (event) => cluster?.arrived(event),
    onFolded(event, run) {
      if (corruptRuns.has(run.runId)) return;
      cluster?.recorded(run);
      deadlines.recorded(run, event.metadata['instanceId'] === instanceId);
    },
  };
}
