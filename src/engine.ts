/** The engine: log, registry and read models wired together, without an edge. */
import { join } from 'node:path';
import type { Ambient } from './ambient.js';
import { BlueprintShelf } from './blueprint/shelf.js';
import { Cluster } from './cluster/cluster.js';
import type { Config } from './config.js';
import type { DataDir } from './data-dir.js';
import { LogUnavailable } from './errors.js';
import { untilAnswered } from './log/append-surely.js';
import type { PassageSearch } from './library/passages.js';
import { openLog as openRecord } from './log/open.js';
import type { EventLog, Position } from './log/port.js';
import { boundedModel } from './model/bounded.js';
import type { LanguageModel } from './model/port.js';
import type { BlueprintList } from './projections/blueprints.js';
import { blueprintList } from './projections/blueprints.js';
import { History } from './projections/history.js';
import type { ProjectorOptions } from './projections/projector.js';
import { Projector } from './projections/projector.js';
import { RunFeed } from './projections/run-feed.js';
import { RunReader } from './projections/run-reader.js';
import { RunQueries } from './projections/run-queries.js';
import { RunViews } from './projections/run-views.js';
import { openViews } from './projections/views-client.js';
import { chartCache } from './run/charts.js';
import { RunRegistry } from './run/registry.js';
import type { RunState, UnfinishedRun } from './run/state.js';
import { TokenBus } from './run/tokens.js';
import { toolbox } from './tools/toolbox.js';
import type { SearchProvider } from './tools/web-search.js';

/** Structured lines, as pino writes them. */
export interface Logger {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Surroundings {
  readonly dataDir: DataDir;
  readonly model: LanguageModel;
  /** What agents search the web with; absent: nothing. */
  readonly webSearch?: SearchProvider | null;
  /** What agents search documents with; absent: there are none. */
  readonly passages?: PassageSearch | null;
  readonly ambient: Ambient;
  readonly logger: Logger;
  /** Told once when the log can take nothing more in this process: time to stop and be started again. */
  readonly onLogBroken?: (error: unknown) => void;
  /** Opens the record. Default: the one the settings name. */
  readonly openLog?: typeof openRecord;
}

type EngineConfig = Pick<Config, 'maxActiveRuns' | 'maxModelCalls' | 'cluster' | 'eventStore'>;

/** What drives runs, without an edge: the service is this behind HTTP and sockets, the benchmark drives it directly. */
export interface Engine {
  readonly log: EventLog;
  readonly registry: RunRegistry;
  readonly queries: RunQueries;
  /** Drafts as they are written here. */
  readonly tokens: TokenBus;
  readonly views: RunViews;
  /** The events of runs as they are recorded. */
  readonly feed: RunFeed;
  readonly blueprints: BlueprintShelf;
  readonly blueprintList: BlueprintList;
  /** Whether the read models have caught up and can be written. @throws {LogUnavailable | LogClosed} when the log does not answer */
  isReady(): Promise<boolean>;
  /** The runs that are neither finished nor paused, oldest first; resolves once the read models have caught up. */
  unfinished(): Promise<readonly UnfinishedRun[]>;
  /** Takes up those that nobody runs. Asked before any new run may start, so that none is overtaken. */
  recover(unfinished: readonly UnfinishedRun[]): void;
  /** In place of that, for a process that runs its own runs only: tells other instances that it lives. */
  beat(): void;
  stop(): Promise<void>;
}

/**
 * Opens the record and what stands on it. A record that cannot be reached is waited for, and the logger told so.
 *
 * @throws {DataDirHeld | ConfigInvalid} when the record cannot be opened
 */
export async function openEngine(config: EngineConfig, surroundings: Surroundings): Promise<Engine> {
  const { dataDir, ambient, logger, onLogBroken = () => undefined, openLog = openRecord } = surroundings;
  const instanceId = ambient.uuid();
  const { eventStore } = config;
  const log = await openLog({ eventStore, file: dataDir.logFile, onBroken: onLogBroken, ambient });
  const standing = await standingOf(log, { ambient, logger });
  const stored = await openViews({ file: join(dataDir.viewsDir, 'views.sqlite'), log: standing });
  const onFault = (error: unknown): void => logger.error({ err: error }, 'read models: fault');
  const history = new History(stored, ambient, onFault);
  const reader = new RunReader({ log, sha256: ambient.sha256, onDamaged: onFault });
  const views = new RunViews(reader);
  const feed = new RunFeed(reader, ambient.sha256);
  const tokens = new TokenBus((runId, error) => logger.error({ runId, err: error }, 'tokens: fault'));
  const { registry, cluster } = runsHere(config, surroundings, { log, tokens, instanceId });
  const onFolded: ProjectorOptions['onFolded'] = (event, run) => cluster?.recorded(event, run);
  const onRecorded: ProjectorOptions['onRecorded'] = (event) => feed.recorded(event);
  const projector = new Projector({ log, views, history, ambient, onRecorded, onFolded, onFault });
  const queries = new RunQueries({ log, reader, history, projector, live: (runId) => registry.live(runId) });
  const blueprints = new BlueprintShelf({ log, ambient, instanceId });
  const caughtUp = projector.start();

  return {
    log,
    registry,
    queries,
    tokens,
    views,
    feed,
    blueprints,
    blueprintList: blueprintList({ log, history, projector }),
    async isReady() {
      if (!projector.isCaughtUp || !history.isWritable || cluster?.isFenced === true) return false;
      await log.ping();
      return true;
    },
    async unfinished() {
      await caughtUp;
      cluster?.listen();
      return await history.unfinished();
    },
    recover(unfinished) {
      if (cluster !== null) return cluster.start(unfinished);
      if (unfinished.length > 0) logger.info({ runs: unfinished.length }, 'runs taken up again');
      registry.recover(unfinished.map(({ runId }) => runId));
    },
    beat: () => cluster?.beat(),
    async stop() {
      feed.stop();
      await cluster?.stop();
      await Promise.all([registry.stop(), blueprints.stop()]);
      await projector.stop();
      await history.flush().catch(onFault);
      await stored.close();
      await log.close();
    },
  };
}

interface RunsHere {
  readonly registry: RunRegistry;
  /** Null where no other instance shares the log. */
  readonly cluster: Cluster | null;
}

/** The runs of this instance, and its place among others. */
function runsHere(
  { maxActiveRuns, maxModelCalls, cluster: times }: EngineConfig,
  { dataDir, model, webSearch = null, passages = null, ambient, logger }: Surroundings,
  { log, tokens, instanceId }: { readonly log: EventLog; readonly tokens: TokenBus; readonly instanceId: string },
): RunsHere {
  const registry: RunRegistry = new RunRegistry(
    {
      log,
      model: boundedModel(model, { maxCalls: maxModelCalls, ambient }),
      tools: toolbox({ web: webSearch, passages }),
      tokens,
      ambient,
      instanceId,
      onFault: (runId, error) => logger.error({ runId, err: error }, 'run: fault'),
    },
    chartCache(),
    {
      maxActiveRuns,
      // Without other instances the owner of a run that is not run here is a process of the past.
      isSuspect: (owner) => cluster?.isSuspect(owner) ?? true,
      onLeft: (run) => logger.info(outcomeOf(run), `run ${run.status}`),
    },
  );
  const onFenced = (): void => logger.error({ instanceId }, 'the event log takes no heartbeat: letting all runs go');
  const onFault = (error: unknown): void => logger.error({ err: error }, 'heartbeat: fault');
  const cluster: Cluster | null =
    times === null
      ? null
      : new Cluster({
          ...times,
          log,
          ambient,
          instanceId,
          predecessor: dataDir.succeed(instanceId),
          registry,
          onFenced,
          onFault,
        });
  return { registry, cluster };
}

/** Name and head of a log; asked until it answers. */
function standingOf(
  log: EventLog,
  { ambient, logger }: Pick<Surroundings, 'ambient' | 'logger'>,
): Promise<{ readonly identity: string; readonly head: Position | null }> {
  const ask = async (): Promise<{ readonly identity: string; readonly head: Position | null }> => {
    try {
      return { identity: await log.identity(), head: await log.head() };
    } catch (error) {
      if (error instanceof LogUnavailable)
        logger.error({ err: error }, 'the event log cannot be reached: waiting for it');
      throw error;
    }
  };
  return untilAnswered(ask, { ambient, signal: new AbortController().signal });
}

/** What the service's own log tells of a run that rests: never a draft. */
function outcomeOf(run: RunState): object {
  const { runId, status, executionMode, failure, iterationCount, shown } = run;
  return {
    runId,
    status,
    executionMode,
    iterationCount,
    score: shown.score,
    ...(failure === null ? {} : { failure: failure.kind }),
  };
}
