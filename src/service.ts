/** The composition root: builds every adapter, wires the flow, starts and stops it. */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { join } from 'node:path';
import type { Ambient } from './ambient.js';
import type { Config } from './config.js';
import type { DataDir } from './data-dir.js';
import { httpApp } from './http/app.js';
import { canonical } from './log/canonical.js';
import type { EventLog } from './log/port.js';
import { openEmbeddedLog } from './log/embedded.js';
import { boundedModel } from './model/bounded.js';
import type { LanguageModel } from './model/port.js';
import { History } from './projections/history.js';
import { Projector } from './projections/projector.js';
import { RunQueries } from './projections/run-queries.js';
import { RunViews } from './projections/run-views.js';
import { openViews } from './projections/views-client.js';
import { chartCache } from './run/charts.js';
import { RunRegistry } from './run/registry.js';
import type { ChannelServer } from './ws/upgrade.js';
import { serveChannels } from './ws/upgrade.js';

/** How long a start endpoint waits for the log, in milliseconds, before it answers 503. */
const APPEND_DEADLINE_MS = 10_000;

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
}

/** What drives runs, without an edge: the service is this behind HTTP and sockets, the benchmark drives it directly. */
export interface Engine {
  readonly log: EventLog;
  readonly registry: RunRegistry;
  readonly queries: RunQueries;
  readonly views: RunViews;
  /** Whether the log answers and the read models have caught up. */
  isReady(): Promise<boolean>;
  /** Takes up what earlier processes left unfinished; resolves once the read models have caught up. */
  recover(): Promise<void>;
  stop(): Promise<void>;
}

export async function openEngine(
  config: Pick<Config, 'maxActiveRuns' | 'maxModelCalls'>,
  { dataDir, model, ambient, logger }: Surroundings,
): Promise<Engine> {
  const instanceId = ambient.uuid();
  const log = await openEmbeddedLog({ file: dataDir.logFile });
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
    config,
  );
  const queries = new RunQueries({ log, history, projector, live: (runId) => registry.live(runId) });
  const caughtUp = projector.start();

  return {
    log,
    registry,
    queries,
    views,
    async isReady() {
      if (!projector.isCaughtUp) return false;
      return await log.ping().then(
        () => true,
        () => false,
      );
    },
    async recover() {
      await caughtUp;
      const unfinished = await history.unfinished();
      if (unfinished.length > 0) logger.info({ runs: unfinished.length }, 'runs taken up again');
      registry.recover(unfinished);
    },
    async stop() {
      await registry.stop();
      await projector.stop();
      await history.flush().catch(onFault);
      await stored.close();
      await log.close();
    },
  };
}

export interface Service {
  /** Where it is reached, as `http://HOST:PORT`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Opens the engine and serves it; resolves once requests are accepted. */
export async function startService(config: Config, surroundings: Surroundings): Promise<Service> {
  const { ambient, logger, model } = surroundings;
  const engine = await openEngine(config, surroundings);
  const onFault = (fields: object, error: unknown): void => logger.error({ ...fields, err: error }, 'request: fault');
  const server = createServer(
    httpApp({
      registry: engine.registry,
      queries: engine.queries,
      ready: () => engine.isReady(),
      ambient,
      nodeDefaults: { timeoutMs: config.modelTimeoutMs, maxAttempts: config.modelMaxAttempts },
      canonical,
      corsOrigins: config.corsOrigins,
      appendDeadlineMs: APPEND_DEADLINE_MS,
      onFault: (requestId, error) => onFault({ requestId }, error),
      log: logger,
    }),
  );
  const channels = serveChannels(server, {
    views: engine.views,
    ambient,
    corsOrigins: config.corsOrigins,
    onFault: (error) => onFault({ edge: 'ws' }, error),
  });
  const url = await listen(server, config);
  logger.info({ url, dataDir: surroundings.dataDir.path, model: model.provider }, `council-run-service at ${url}`);
  await engine.recover();
  return { url, stop: () => stopService({ server, channels, engine }) };
}

async function listen(server: Server, { host, port }: Config): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server listens on no port');
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${name}:${address.port}`;
}

/** Takes nothing new, ends the channels, lets appends finish, releases the runs. */
async function stopService(parts: { server: Server; channels: ChannelServer; engine: Engine }): Promise<void> {
  const { server, channels, engine } = parts;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await Promise.all([channels.stop(), engine.stop()]);
  server.closeAllConnections();
  await closed;
}
