/** The engine: log, registry and read models wired together, without an edge. */
import { join } from 'node:path';
import type { Ambient } from './ambient.js';
import { BlueprintShelf } from './blueprint/shelf.js';
import type { Config } from './config.js';
import type { DataDir } from './data-dir.js';
import { openEmbeddedLog } from './log/embedded/log.js';
import type { EventLog } from './log/port.js';
import { boundedModel } from './model/bounded.js';
import type { LanguageModel } from './model/port.js';
import { BlueprintQueries } from './projections/blueprints.js';
import { History } from './projections/history.js';
import { Projector } from './projections/projector.js';
import { RunQueries } from './projections/run-queries.js';
import { RunViews } from './projections/run-views.js';
import { openViews } from './projections/views-client.js';
import { chartCache } from './run/charts.js';
import { RunRegistry } from './run/registry.js';
import type { RunState } from './run/state.js';

/** Structured lines, as pino writes them. */
export interface Logger {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Surroundings {
  readonly dataDir: DataDir;
  readonly model: LanguageModel;
  readonly ambient: Ambient;
  readonly logger: Logger;
  /** Told once when the log can take nothing more in this process: time to stop and be started again. */
  readonly onLogBroken?: (error: unknown) => void;
  /** Opens the record in a file. Default: the embedded log. */
  readonly openLog?: typeof openEmbeddedLog;
}

/** What drives runs, without an edge: the service is this behind HTTP and sockets, the benchmark drives it directly. */
export interface Engine {
  readonly log: EventLog;
  readonly registry: RunRegistry;
  readonly queries: RunQueries;
  readonly views: RunViews;
  readonly blueprints: BlueprintShelf;
  readonly blueprintQueries: BlueprintQueries;
  /** Whether the read models have caught up and can be written. @throws {LogUnavailable | LogClosed} when the log does not answer */
  isReady(): Promise<boolean>;
  /** The runs that earlier processes left unfinished, oldest first; resolves once the read models have caught up. */
  unfinished(): Promise<readonly string[]>;
  /** Takes them up. Asked before any new run may start, so that none is overtaken. */
  recover(runIds: readonly string[]): void;
  stop(): Promise<void>;
}

export async function openEngine(
  config: Pick<Config, 'maxActiveRuns' | 'maxModelCalls'>,
  { dataDir, model, ambient, logger, onLogBroken = () => undefined, openLog = openEmbeddedLog }: Surroundings,
): Promise<Engine> {
  const instanceId = ambient.uuid();
  const log = await openLog({ file: dataDir.logFile, onBroken: onLogBroken });
  const stored = await openViews({
    file: join(dataDir.viewsDir, 'views.sqlite'),
    log: { identity: await log.identity(), head: await log.head() },
  });
  const onFault = (error: unknown): void => logger.error({ err: error }, 'read models: fault');
  const history = new History(stored, ambient, onFault);
  const views = new RunViews(log);
  const projector = new Projector({ log, views, history, ambient, onFault });
  const bounded = boundedModel(model, { maxCalls: config.maxModelCalls, ambient });
  const registry = new RunRegistry(
    {
      log,
      model: bounded,
      ambient,
      instanceId,
      onFault: (runId, error) => logger.error({ runId, err: error }, 'run: fault'),
    },
    chartCache(),
    { maxActiveRuns: config.maxActiveRuns, onLeft: (run) => logger.info(outcomeOf(run), `run ${run.status}`) },
  );
  const queries = new RunQueries({ log, history, projector, live: (runId) => registry.live(runId) });
  const blueprints = new BlueprintShelf({ log, ambient, instanceId });
  const blueprintQueries = new BlueprintQueries({ log, history, projector });
  const caughtUp = projector.start();

  return {
    log,
    registry,
    queries,
    views,
    blueprints,
    blueprintQueries,
    async isReady() {
      if (!projector.isCaughtUp || !history.isWritable) return false;
      await log.ping();
      return true;
    },
    async unfinished() {
      await caughtUp;
      return await history.unfinished();
    },
    recover(runIds) {
      if (runIds.length > 0) logger.info({ runs: runIds.length }, 'runs taken up again');
      registry.recover(runIds);
    },
    async stop() {
      await Promise.all([registry.stop(), blueprints.stop()]);
      await projector.stop();
      await history.flush().catch(onFault);
      await stored.close();
      await log.close();
    },
  };
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
