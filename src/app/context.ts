/** The objects of a service without HTTP, built in the order of their dependencies. */
import { join } from 'node:path';
import type { Authenticator } from '../keys/authenticator.js';
import { BlueprintStore } from '../blueprint/store.js';
import { pdfReader } from '../council/tools/pdf-reader.js';
import { toolbox } from '../council/tools/tool.js';
import { webSearch } from '../council/tools/web-search.js';
import { Cluster } from '../cluster/cluster.js';
import { FailureDetector } from '../cluster/failure-detector.js';
import { CorruptDocuments } from '../documents/verify.js';
import type { ItemsOf } from '../draft/items.js';
import type { EventLog } from '../eventlog/port.js';
import type { BoundedModel } from '../models/bounded.js';
import { erasureIn } from '../ledger/events.js';
import type { BlueprintList } from '../projections/blueprints.js';
import { blueprintList } from '../projections/blueprints.js';
import type { DocumentList } from '../projections/documents.js';
import { documentList } from '../projections/documents.js';
import { feedCursors } from '../projections/feed-cursor.js';
import { Inbox } from '../projections/inbox.js';
import { LogFeed } from '../projections/log-feed.js';
import { Projector } from '../projections/projector.js';
import { readUpToDate } from '../projections/read-up-to-date.js';
import type { History } from '../projections/run-history.js';
import type { ReadModels } from '../projections/read-models.js';
import { openReadModels } from '../projections/read-models.js';
import { RunQueries } from '../projections/run-queries.js';
import { RUN_ENDS } from '../run/events.js';
import type { DraftParser } from '../run/pending-events.js';
import { Deadlines } from '../run/runs/deadlines.js';
import type { RunActor } from '../run/runs/actor.js';
import { RunFeed } from '../run/runs/feed.js';
import type { RunStates } from '../run/runs/states.js';
import { present } from '../system/element.js';
import { Runs } from '../run/runs/runs.js';
import { TokenBus } from '../run/runs/tokens.js';
import type { PriceTable } from '../models/prices.js';
import type { ChartCache } from '../run/chart/machine.js';
import { chartCache } from '../run/chart/machine.js';
import { BlueprintAudits } from './blueprint-audits.js';
import type { ContextConfig, ContextDeps, ContextOverrides } from './context-deps.js';
import type { Documents } from './documents.js';
import { createDocuments } from './documents.js';
import { createModel, createPrices, knownModels, providerNames } from './model.js';
import { Readiness } from './readiness.js';
import type { OpenedRecord } from './record.js';
import { VIEWS_FILE, openRecord, watchedLog } from './record.js';
import { Recovery } from './recovery.js';
import { faultReporter } from './fault-reporter.js';
import { RunAudits } from './run-audits.js';
import { SchemaChecker } from '../jsonschema/schema-checker.js';
import { Counts } from '../telemetry/counts.js';

/** Longest random wait before one of several instances acts on the deadline of a pause, in milliseconds. */
const DEADLINE_SPREAD_MS = 250;

export interface Context {
  readonly log: EventLog;
  readonly registry: Runs;
  readonly queries: RunQueries;
  /** Drafts while the models of this instance write them. */
  readonly tokens: TokenBus;
  /** The states of runs in memory, and the appends of this instance. */
  readonly states: RunStates;
  /** The events of runs as they are recorded. */
  readonly feed: RunFeed;
  /** The events of all runs in the log's order. */
  readonly logFeed: LogFeed;
  readonly inbox: Inbox;
  readonly audits: RunAudits;
  readonly blueprints: BlueprintStore;
  readonly blueprintList: BlueprintList;
  readonly documents: Documents;
  readonly documentList: DocumentList;
  /** Authenticates callers by keys, sessions and tickets. */
  readonly authenticator: Authenticator;
  readonly model: BoundedModel;
  readonly prices: PriceTable;
  readonly schemaChecker: SchemaChecker;
  readonly readiness: Readiness;
  readonly recovery: Recovery;
  /** Counts what this instance does. */
  readonly counts: Counts;
  readonly reader: ReadModels['reader'];
  readonly instanceId: string;
  readonly corruptRuns: ReadModels['corruptRuns'];
  /** Passes each event of the log to its consumers. */
  readonly projector: Pick<Projector, 'subscribe' | 'waitFor' | 'rebuilds'>;
  /** Which runs have a leaf in the ledger, and what is erased. */
  readonly history: Pick<
    ReadModels['history'],
    'endedWithoutLeaf' | 'leafOf' | 'erasedAs' | 'families' | 'stored' | 'flush' | 'zeroErased' | 'expired'
  >;
  /** How this instance sees the others on the log. */
  readonly members: Members;
  stop(): Promise<void>;
}

/** The instances on the log, as this one sees them. Without others, every other id is that of a process that has ended. */
export interface Members {
  isSuspect(instanceId: string): boolean;
  /** Whether this instance is the one to take a subject, by its id. */
  isInTurn(subject: string): boolean;
  /** Whether the others may take this instance for dead. */
  isFenced(): boolean;
  /** This clock minus that of the log's server, in milliseconds, or null if unknown. */
  clockSkewMs(): number | null;
  /** Keeps suspecting the instances that are needed, such as the owners of webhooks. */
  remember(isNeeded: (instanceId: string) => boolean): void;
}

/** Opens the log and creates a context on it. If it cannot reach the log, it logs this once and waits. */
export async function openContext(config: ContextConfig, deps: ContextDeps): Promise<Context> {
  return await createContext(config, deps, await openRecord(config, deps));
}

/**
 * Creates the objects and starts to fold the log. Closes the log if it fails.
 *
 * @throws {ConfigInvalid} for embeddings that cannot be used
 */
export async function createContext(config: ContextConfig, deps: ContextDeps, record: OpenedRecord): Promise<Context> {
  try {
    record.seen.start();
    const counts = new Counts(providerNames(deps.model));
    // The log asks the views which runs are erased, and the views need the log first.
    let history: History | null = null;
    const log = watchedLog(record.log, {
      system: deps.system,
      isEmbedded: config.eventStore === null,
      onAppended: (ms) => counts.onAppended(ms),
      // The views lack an erasure while they are rebuilt, or if another instance has recorded it a moment ago.
      erasedAs: async (what, id) => (await history?.erasedAs(what, id)) ?? (await erasureIn(record.log, what, id)),
    });
    const stores = { ...(await openStores(config, deps, { ...record, log })), counts };
    ({ history } = stores);
    const runs = createRuns(config, deps, stores);
    const readSide = createReadSide(deps, stores, runs);
    connect(deps, { ...stores, ...runs, ...readSide });
    return withRecovery(deps, { ...stores, ...runs, ...readSide });
  } catch (error) {
    await record.log.close();
    throw error;
  }
}

interface Stores extends OpenedRecord, Pick<ReadModels, 'history' | 'corruptRuns' | 'reader' | 'states'> {
  readonly models: ReadModels;
  readonly corruptDocuments: CorruptDocuments;
  readonly live: Map<string, RunActor>;
  readonly projector: Projector;
  readonly documents: Documents;
}

interface CountedStores extends Stores {
  readonly counts: Counts;
}

/** The read models, the projector that folds the log into them, and the documents. */
async function openStores(config: ContextConfig, deps: ContextDeps, record: OpenedRecord): Promise<Stores> {
  const { dataDir, system, logger, overrides = {} } = deps;
  const { log, identity, head } = record;
  const { sha256 } = system;
  const live = new Map<string, RunActor>();
  const corruptDocuments = new CorruptDocuments();
  const models = await openReadModels({
    system,
    live,
    from: log,
    open: overrides.openViews,
    log: { identity, head, ...(config.eventStore === null && { file: dataDir.logFile }) },
    file: join(dataDir.viewsDir, VIEWS_FILE),
    onFault: faultReporter(logger),
  });
  const { states, history, corruptRuns } = models;
  const onFault = faultReporter(logger, { corruptRuns, corruptDocuments });
  const projector = new Projector({ log, states, history, system, sha256, onFault });
  const documents = await createDocuments(config, deps, { ...record, history, projector, corruptDocuments });
  return { ...record, ...models, models, corruptDocuments, live, projector, documents };
}

interface RunSide {
  readonly model: BoundedModel;
  readonly prices: PriceTable;
  readonly tokens: TokenBus;
  readonly charts: ChartCache;
  readonly schemaChecker: SchemaChecker;
  readonly outputChecker: SchemaChecker;
  readonly registry: Runs;
  /** Null where no other instance shares the log. */
  readonly cluster: Cluster | null;
  readonly members: Members;
  readonly deadlines: Deadlines;
}

/** What the runs of an instance share. */
function readersOf({
  charts = chartCache(),
  drafts = draftParser(),
}: Partial<ContextOverrides>): Pick<ContextOverrides, 'charts' | 'drafts'> {
  return { charts, drafts };
}

/** Reads drafts for councils. The parser of Markdown, which no other run needs, is loaded with the first council. */
function draftParser(): DraftParser {
  let loaded: ItemsOf | null = null;
  return {
    async load() {
      loaded ??= (await import('../draft/items.js')).itemsOf;
    },
    itemsOf: (draft, by) => present(loaded, 'parser of drafts')(draft, by),
  };
}

/** The runs of this instance, and the objects that connect it with other instances. */
function createRuns(config: ContextConfig, deps: ContextDeps, stores: CountedStores): RunSide {
  const { dataDir, webSearch: search = null, system, logger, overrides = {} } = deps;
  const { log, instanceId, history, corruptRuns, documents, live, states } = stores;
  const model = createModel(config, deps, (call) => stores.counts.onCallEnded(call));
  const pdfs = pdfReader(overrides.chunkSearch ?? documents.chunkSearch);
  const tools = toolbox(search === null ? [pdfs] : [webSearch(search), pdfs]);
  const prices = createPrices(config.prices, system.sha256);
  const tokens = new TokenBus({ logger });
  const { charts, drafts } = readersOf(overrides);
  const settings = config.cluster;
  const failureDetector =
    settings &&
    new FailureDetector({ ...settings, instanceId, system, predecessors: dataDir.recordInstance(instanceId) });
  // Schemas that requests bring do not delay the values of runs.
  const [schemaChecker, outputChecker] = [new SchemaChecker(system), new SchemaChecker(system)];
  const registry = new Runs({
    drafts,
    outputErrors: (schema, value) => outputChecker.errorsOf(schema, value),
    log,
    model,
    prices,
    tools,
    tokens,
    states,
    system,
    instanceId,
    charts,
    live,
    corruptRuns,
    logger,
    reader: stores.reader,
    maxActiveRuns: config.maxActiveRuns,
    suspicions: failureDetector ?? ALONE,
  });
  const cluster =
    settings &&
    failureDetector &&
    new Cluster({
      ...settings,
      log,
      system,
      instanceId,
      failureDetector,
      registry,
      corruptRuns,
      logger,
      projector: stores.projector,
      onLogReplaced: (error) => deps.onLogBroken?.(error),
    });
  const spreadMs = cluster === null ? 0 : DEADLINE_SPREAD_MS;
  const deadlines = new Deadlines({ system, instanceId, spreadMs, history, registry, corruptRuns, logger });
  const members =
    failureDetector === null
      ? ALONE
      : {
          isSuspect: (id: string) => failureDetector.isSuspect(id),
          isInTurn: (subject: string) => failureDetector.isInTurn(subject),
          isFenced: () => cluster?.isFenced === true,
          clockSkewMs: () => cluster?.clockSkewMs ?? null,
          remember: (isNeeded: (instanceId: string) => boolean) => failureDetector.remember(isNeeded),
        };
  return { model, prices, tokens, charts, schemaChecker, outputChecker, registry, cluster, members, deadlines };
}

const ALONE: Members = {
  isSuspect: () => true,
  isInTurn: () => true,
  isFenced: () => false,
  clockSkewMs: () => null,
  remember: () => undefined,
};

type ReadSide = Pick<
  Context,
  'feed' | 'logFeed' | 'queries' | 'inbox' | 'blueprints' | 'blueprintList' | 'documentList'
>;

/** The objects that answer clients that read runs, blueprints and documents. */
function createReadSide({ system, logger }: ContextDeps, parts: Stores, { model, prices }: RunSide): ReadSide {
  const { log, identity, instanceId, authenticator, history, corruptRuns, corruptDocuments, reader } = parts;
  const { projector, live, states } = parts;
  const { sha256 } = system;
  const onFault = faultReporter(logger);
  const models = knownModels(model, prices);
  const cursors = feedCursors(identity, sha256);
  const isErased = async (runId: string): Promise<boolean> => {
    // Rebuilt views do not know every erasure yet; those of a running service know all that a feed's history may hold.
    const erased = () => history.erasedAs('run', runId);
    return (await (projector.isCaughtUp ? erased() : readUpToDate({ log, projector, system }, erased))) !== null;
  };
  const logFeed = new LogFeed({ log, corruptRuns, system, onFault, cursors, isErased });
  const folding = { log, reader, history, projector, system };
  const queries = new RunQueries({ ...folding, corruptRuns, live });
  return {
    logFeed,
    queries,
    feed: new RunFeed({ reader, states, sha256 }),
    inbox: new Inbox({ queries, reader, logFeed, corruptRuns }),
    blueprints: new BlueprintStore({ log, system, instanceId, hasKeys: () => !authenticator.isOpen, models }),
    blueprintList: blueprintList(folding),
    documentList: documentList({ ...folding, corruptDocuments }),
  };
}

/** Subscribes objects to those that were created before them. */
function connect({ logger, consumers = [] }: ContextDeps, parts: CountedStores & RunSide & ReadSide): void {
  const { models, registry, cluster, deadlines, feed, states, corruptRuns, corruptDocuments, documents } = parts;
  const { projector, authenticator, counts, seen } = parts;
  states.subscribe(counts);
  const clusters = cluster === null ? [] : [cluster];
  // In this order they receive each event of the log.
  const children = { categories: ['run'], types: RUN_ENDS, onRunFolded: registry.onRunFolded.bind(registry) };
  const onServer = seen.isOnServer ? [seen] : [];
  projector.subscribe(...clusters, deadlines, documents, authenticator, feed, ...onServer, children, ...consumers);
  for (const each of clusters) registry.subscribe(each);
  corruptRuns.subscribe(
    { onRunCorrupt: (err) => logger.error({ runId: err.data.runId, err }, 'run: its record is corrupt') },
    ...clusters,
    feed,
  );
  corruptDocuments.subscribe(
    { onDocumentCorrupt: (err) => logger.error({ ...err.data, err }, 'document: its record is corrupt') },
    documents,
  );
  models.subscribe({
    onViewsLost(err) {
      logger.error({ file: VIEWS_FILE, err }, 'read models: the stored views failed; rebuilding them from the log');
      projector.rebuild();
    },
  });
}

/** Completes the context with the audits, the recovery of runs and `stop`, and starts to fold the log. */
function withRecovery(deps: ContextDeps, parts: CountedStores & RunSide & ReadSide): Context {
  const { system, logger } = deps;
  const { log, registry, cluster, deadlines, history, models, documents, projector, feed, logFeed } = parts;
  const audits = new RunAudits({ ...parts, system, logger });
  const councils = new BlueprintAudits({ ...parts, system, logger });
  const recovery = new Recovery({ ...parts, audits, councils, system, logger });
  recovery.start();
  return {
    ...parts,
    audits,
    recovery,
    readiness: new Readiness({ ...parts, system }),
    async stop() {
      recovery.stop();
      feed.stop();
      logFeed.stop();
      await Promise.all([cluster?.stop(), audits.stop(), councils.stop()]);
      // In parallel, because a deadline that is being applied waits for the log until the registry stops.
      await Promise.all([deadlines.stop(), registry.stop(), parts.blueprints.stop(), parts.authenticator.stop()]);
      await Promise.all([parts.schemaChecker.stop(), parts.outputChecker.stop()]);
      await documents.stop(history.checkpoint);
      await projector.stop();
      // If this fails, the next start folds the same events again.
      await history.flush().catch(faultReporter(logger));
      await models.close();
      parts.seen.stop();
      await log.close();
    },
  };
}
