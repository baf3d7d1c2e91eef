/** The composition root: the engine behind HTTP and sockets; start and stop. */
import { lookup } from 'node:dns/promises';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { Config } from '../config.js';
import type { Engine } from './engine.js';
import { boundConnections } from './connection-bound.js';
import type { EngineDeps, Logger } from './context.js';
import { openEngine } from './engine.js';
import { ConfigInvalid, ServiceStopping } from '../errors.js';
import type { HttpDeps } from '../http/app.js';
import { httpApp } from '../http/app.js';
import type { UnfinishedRun } from '../run/state.js';
import { settledWithin } from '../system/async/deadline.js';
import { UnsentBytes } from '../system/async/unsent-bytes.js';
import { refuseExpectation, refuseUnreadable } from '../http/app.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { AuthenticationRules } from '../api/authentication.js';
import { limitsOf } from '../api/limits.js';
import { failedKeys } from '../keys/failed-keys.js';
import { addressList } from '../system/address-list.js';
import { isLoopbackAddress } from '../system/host-name.js';
import { ownHosts } from '../api/request-source.js';
import type { ChannelServer } from '../ws/upgrade.js';
import { serveChannels } from '../ws/upgrade.js';
import { OFFLINE_MODEL } from '../models/offline.js';

/** How long the port stays closed for runs that are read and checked, in milliseconds; longer is waited for in the open. */
const MAX_DEAF_MS = 2_000;
/** How long a start endpoint waits for the log, in milliseconds, before it answers 503. */
const APPEND_DEADLINE_MS = 10_000;

export interface Service {
  /** Where it is reached, as `http://HOST:PORT`. */
  readonly url: string;
  /** What it serves. */
  readonly engine: Engine;
  stop(): Promise<void>;
}

/** Receives warnings about the start. */
export interface StartLogger {
  warn(fields: object, message: string): void;
}

export interface ServiceDeps extends EngineDeps {
  readonly logger: Logger & StartLogger;
  /** Limit on open files, connections included; absent or null: unknown. */
  readonly maxFiles?: number | null;
}

/**
 * Opens the engine and serves it; resolves once requests are accepted. Unfinished runs are taken up before, but where
 * much has to be folded first: then the service is not ready meanwhile, and what changes a run waits.
 *
 * @throws {ConfigInvalid} when the address cannot be listened on, or is open to others while there are no keys
 * @throws {LogDamaged} when what has to be folded cannot be read
 */
export async function startService(config: Config, deps: ServiceDeps): Promise<Service> {
  const { system, logger, model, onLogBroken = () => undefined } = deps;
  const address = await addressOf(config);
  const source = { isOwnHost: ownHosts({ ...config, address }), corsOrigins: config.corsOrigins };
  const limits = limitsOf(config.limits, system);
  const unsent = new UnsentBytes();
  const engine = await openEngine(config, { ...deps, onRunEnded: (runId) => limits.ended(runId) });
  await guarded(engine, () => assertGuarded(config, { address, isOpen: engine.authenticator.isOpen }, logger));
  const access = accessRules(engine, config, system);
  const onFault = (fields: object, error: unknown): void => logger.error({ ...fields, err: error }, 'request: fault');
  const server: Server = createServer(
    // The HTTP layer checks it and answers with a `detail`; Node would answer without one.
    { requireHostHeader: false },
    httpApp({
      registry: onceTakenUp(engine.registry, () => takenUp),
      queries: engine.queries,
      feed: engine.feed,
      logFeed: engine.logFeed,
      inbox: engine.inbox,
      ...{ verify: engine.verify, genealogy: engine.genealogy, prompt: engine.prompt },
      blueprints: engine.blueprints,
      blueprintList: engine.blueprintList,
      documents: engine.documents,
      documentList: engine.documentList,
      uploadDir: deps.dataDir.tmpDir,
      ready: () => engine.isReady(),
      unreachableModels: () => engine.unreachableModels(),
      modelUses: () => engine.modelUses(),
      ...{ limits, unsent, system },
      nodeDefaults: { timeoutMs: config.modelTimeoutMs, maxAttempts: config.modelMaxAttempts },
      ...{ canonical, offlineModel: OFFLINE_MODEL, ...source, ...access },
      isLoopback: isLoopbackAddress(address),
      appendDeadlineMs: APPEND_DEADLINE_MS,
      onFault: (requestId, error) => onFault({ requestId }, error),
      log: logger,
    }),
  );
  boundConnections(server, { maxFiles: deps.maxFiles ?? null, system, logger });
  server.on('clientError', refuseUnreadable).on('checkExpectation', refuseExpectation);
  const channels = serveChannels(server, {
    views: engine.views,
    feed: engine.feed,
    queries: engine.queries,
    tokens: engine.tokens,
    slices: engine.slices,
    ...{ limits, unsent, system },
    ...source,
    ...access,
    onFault: (error) => onFault({ edge: 'ws' }, error),
  });
  const checking = checkedRuns(engine);
  const stop = (): Promise<void> => stopService({ server, channels, engine });
  await guarded({ stop }, () => settledWithin(checking, { system, maxMs: MAX_DEAF_MS }));
  const listening = guarded({ stop }, () => listen(server, config, address));
  const takenUp = Promise.all([checking, listening]).then(([unfinished]) => engine.recover(unfinished));
  takenUp.catch((error: unknown) => isOfStop(error) || onLogBroken(error));
  const url = await listening;
  logger.info({ url, dataDir: deps.dataDir.path, model: model.provider }, greeting(url));
  return { url, engine, stop };
}

function greeting(url: string): string {
  return `council-run-service at ${url}, for people at ${url}/console/`;
}

/** The runs to take up, checked. */
async function checkedRuns(engine: Engine): Promise<readonly UnfinishedRun[]> {
  const unfinished = await engine.unfinished();
  await engine.check(unfinished);
  return unfinished;
}

/** Whether a recovery error merely means that the service is stopping or failed to start. */
function isOfStop(error: unknown): boolean {
  return error instanceof ServiceStopping || error instanceof ConfigInvalid;
}

/** The commands on runs, delayed until recovery is done: no new run overtakes a recovered one. */
function onceTakenUp(registry: Engine['registry'], takenUp: () => Promise<void>): HttpDeps['registry'] {
  const then = async <T>(work: () => Promise<T>): Promise<T> => {
    await takenUp();
    return await work();
  };
  return {
    start: (requested) => then(() => registry.start(requested)),
    refuse: (requested, failure) => then(() => registry.refuse(requested, failure)),
    cancel: (runId, actor) => then(() => registry.cancel(runId, actor)),
    decidePause: (runId, request) => then(() => registry.decidePause(runId, request)),
    foresee: (requested) => registry.foresee(requested),
    repeated: (runId, bodyHashes) => registry.repeated(runId, bodyHashes),
  };
}

/** The rules of authentication, with one count of failed keys for HTTP and WebSocket. */
function accessRules(
  { authenticator }: Engine,
  { trustedProxies }: Config,
  system: EngineDeps['system'],
): Pick<Engine, 'authenticator'> & Pick<AuthenticationRules, 'failedKeys' | 'trustedProxies'> {
  return { authenticator, failedKeys: failedKeys(system), trustedProxies: addressList(trustedProxies) };
}

/** Stops again what has started when another part of the start fails. */
async function guarded<T>(started: Pick<Engine, 'stop'>, part: () => T | Promise<T>): Promise<T> {
  try {
    return await part();
  } catch (error) {
    await started.stop();
    throw error;
  }
}

/**
 * Lets a service without keys be reached from other machines only where `AUTH=off` says so.
 *
 * @param isOpen whether no key was ever added
 * @throws {ConfigInvalid} otherwise
 */
function assertGuarded(
  { host, auth }: Pick<Config, 'host' | 'auth'>,
  { address, isOpen }: { readonly address: string; readonly isOpen: boolean },
  logger: StartLogger,
): void {
  if (auth === 'off' && !isOpen)
    logger.warn({}, 'AUTH=off is passed over: a key was added once, so that one is needed');
  if (!isOpen || isLoopbackAddress(address)) return;
  if (auth === 'off') {
    logger.warn({ host }, `AUTH=off: whoever reaches ${host} may do everything, no key is asked for`);
    return;
  }
  const accepted =
    'without keys only a loopback address (add a key with "council keys add", ' +
    'or set AUTH=off to let everybody do everything)';
  throw new ConfigInvalid({ variable: 'HOST', value: host, accepted });
}

/** The address that HOST names. @throws {ConfigInvalid} when it names none */
async function addressOf(config: Config): Promise<string> {
  try {
    return (await lookup(config.host)).address;
  } catch (error) {
    throw error instanceof Error ? addressFault(error, config) : error;
  }
}

async function listen(server: Server, { host, port }: Config, address: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(addressFault(error, { host, port })));
    server.listen(port, address, () => resolve());
  });
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server listens on no port');
  const name = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `http://${name}:${bound.port}`;
}

function addressFault(error: Error, { host, port }: { readonly host: string; readonly port: number }): Error {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'EADDRINUSE' || code === 'EACCES') {
    return new ConfigInvalid({
      variable: 'PORT',
      value: String(port),
      accepted: `a port that is free to use (${code})`,
    });
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new ConfigInvalid({ variable: 'HOST', value: host, accepted: `an address of this machine (${code})` });
  }
  return error;
}

/** Takes nothing new, ends the channels, lets appends finish, releases the runs. */
async function stopService(parts: { server: Server; channels: ChannelServer; engine: Engine }): Promise<void> {
  const { server, channels, engine } = parts;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await Promise.all([channels.stop(), engine.stop()]);
  server.closeAllConnections();
  await closed;
}
