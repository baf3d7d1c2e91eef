/** The composition root: the engine behind HTTP and sockets; start and stop. */
import { lookup } from 'node:dns/promises';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { Config } from '../config.js';
import type { Engine } from './engine.js';
import { boundConnections } from './connection-bound.js';
import type { EngineDeps } from './context.js';
import type { Logger } from '../system/logger.js';
import { openEngine } from './engine.js';
import { ConfigInvalid, ServiceStopping } from '../errors.js';
import type { HttpDeps } from '../http/app.js';
import { httpApp } from '../http/app.js';
import type { UnfinishedRun } from '../run/state.js';
import { settledWithin } from '../system/async/deadline.js';
import { UnsentBytes } from '../system/async/unsent-bytes.js';
import { refuseExpectation, refuseUnreadable } from '../http/app.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { AuthenticationRules } from '../api/access/authentication.js';
import { limitsOf } from '../api/access/limits.js';
import { failedKeys } from '../keys/failed-keys.js';
import type { KeyStore } from '../keys/store.js';
import { addressList } from '../system/address-list.js';
import { isLoopbackAddress } from '../system/host-name.js';
import { ownHosts } from '../api/access/request-source.js';
import type { ChannelServer } from '../ws/upgrade.js';
import { serveChannels } from '../ws/upgrade.js';
import { serveStart } from './starting.js';
import { OFFLINE_MODEL } from '../models/offline.js';

/** How long the start holds requests back while it reads and checks unfinished runs, in milliseconds. */
const MAX_START_MS = 2_000;
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
  /** Called once with the service's address, when it serves requests or refuses them because the log is away. */
  readonly onListening?: (url: string) => void;
}

/**
 * Listens, opens the engine and serves it; resolves once runs can be started. While the log cannot be reached, the
 * service answers health and refuses everything else with 503. It checks unfinished runs before it resolves, for
 * `MAX_START_MS` at most; commands on runs wait until the engine has taken those runs up.
 *
 * @throws {ConfigInvalid} when the address cannot be listened on, or is open to others while there are no keys
 * @throws {LogCorrupt} when what has to be folded cannot be read
 */
export async function startService(config: Config, deps: ServiceDeps): Promise<Service> {
  const { system, logger, onLogBroken = () => undefined } = deps;
  const address = await addressOf(config);
  const edge = edgeOf(config, deps, address);
  const server = serverOf(deps);
  const starting = serveStart(server, edge);
  const url = await listen(server, config, address);
  const announce = announcementOf(url, deps);
  const opening = openEngine(config, {
    ...deps,
    onRunEnded: (runId) => edge.limits.ended(runId),
    onLogAway(isAway) {
      starting.setAway(isAway);
      announce();
    },
    async onKeys(keys) {
      assertGuarded(config, { address, isOpen: keys.isOpen });
      await checkLogInFolder(config, keys, deps);
    },
  });
  const engine = await guarded({ stop: async () => shut(server) }, () => opening);
  const started = { stop: () => stopService({ server, channels: null, engine }) };
  const checking = checkedRuns(engine);
  await guarded(started, () => settledWithin(checking, { system, maxMs: MAX_START_MS }));
  const takenUp = checking.then((unfinished) => engine.recover(unfinished));
  takenUp.catch((error: unknown) => error instanceof ServiceStopping || onLogBroken(error));
  const channels = serveEngine(server, { engine, takenUp, edge, config, deps });
  starting.end();
  announce();
  if (deps.dataDir.isExposed) warnOfExposure(deps);
  warnOfAuth(config, engine.authenticator.isOpen, { address, logger });
  return { url, engine, stop: () => stopService({ server, channels, engine }) };
}

/** What requests and sockets share, whether the engine is open or not. */
function edgeOf(config: Config, { system, logger }: ServiceDeps, address: string) {
  return {
    ...{ system, isLoopback: isLoopbackAddress(address) },
    ...{ isOwnHost: ownHosts({ ...config, address }), corsOrigins: config.corsOrigins },
    ...{ limits: limitsOf(config.limits, system), unsent: new UnsentBytes() },
    onFault: (requestId: string | null, err: unknown): void =>
      logger.error({ ...(requestId === null ? { edge: 'ws' } : { requestId }), err }, 'request: fault'),
  };
}

function serverOf({ maxFiles = null, system, logger }: ServiceDeps): Server {
  // The HTTP layer checks the Host and answers with a `detail`; Node would answer without one.
  const server = createServer({ requireHostHeader: false });
  boundConnections(server, { maxFiles, system, logger });
  return server.on('clientError', refuseUnreadable).on('checkExpectation', refuseExpectation);
}

/** A function that reports the service's address at its first call. */
function announcementOf(
  url: string,
  { dataDir, model, logger, onListening = () => undefined }: ServiceDeps,
): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    logger.info({ url, dataDir: dataDir.path, model: model.provider }, greeting(url));
    onListening(url);
  };
}

interface Served {
  readonly engine: Engine;
  /** Resolves once the unfinished runs are taken up. */
  readonly takenUp: Promise<void>;
  readonly edge: ReturnType<typeof edgeOf>;
  readonly config: Config;
  readonly deps: ServiceDeps;
}

/** Lets the engine serve a server's requests and upgrades. */
function serveEngine(server: Server, { engine, takenUp, edge, config, deps }: Served): ChannelServer {
  const { queries, feed, views, tokens } = engine;
  const { verify, genealogy, prompt, blueprints, blueprintList, documents, documentList, logFeed, inbox } = engine;
  const rules = { ...edge, ...accessRules(engine, config, deps.system) };
  const app = httpApp({
    ...rules,
    registry: onceTakenUp(engine.registry, takenUp),
    ...{ queries, feed, logFeed, inbox, verify, genealogy, prompt },
    ...{ blueprints, blueprintList, documents, documentList },
    uploadDir: deps.dataDir.tmpDir,
    ready: () => engine.isReady(),
    unreachableModels: () => engine.unreachableModels(),
    modelUses: () => engine.modelUses(),
    nodeDefaults: { timeoutMs: config.modelTimeoutMs, maxAttempts: config.modelMaxAttempts },
    ...{ canonical, offlineModel: OFFLINE_MODEL },
    appendDeadlineMs: APPEND_DEADLINE_MS,
    log: deps.logger,
  });
  server.on('request', app);
  return serveChannels(server, {
    ...{ ...rules, views, feed, queries, tokens },
    onFault: (error) => edge.onFault(null, error),
  });
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

/** The commands on runs, delayed until recovery is done: no new run overtakes a recovered one. */
function onceTakenUp(registry: Engine['registry'], takenUp: Promise<void>): HttpDeps['registry'] {
  const then = async <T>(work: () => Promise<T>): Promise<T> => {
    await takenUp;
    return await work();
  };
  return {
    start: (requested) => then(() => registry.start(requested)),
    refuse: (requested, failure) => then(() => registry.refuse(requested, failure)),
    cancel: (runId, actor) => then(() => registry.cancel(runId, actor)),
    decidePause: (runId, request) => then(() => registry.decidePause(runId, request)),
    previewStart: (requested) => registry.previewStart(requested),
    findRequest: (runId, bodyHashes) => registry.findRequest(runId, bodyHashes),
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
): void {
  if (!isOpen || auth === 'off' || isLoopbackAddress(address)) return;
  const accepted =
    'a loopback address, or add a key with "council keys add", ' + 'or set AUTH=off to allow every caller everything';
  throw new ConfigInvalid({ variable: 'HOST', value: host, accepted });
}

/** Warns of an embedded log in the folder of a service on a server. @throws {ConfigInvalid} if its keys could get lost */
async function checkLogInFolder(
  { eventStore }: Config,
  keys: KeyStore,
  { dataDir, system, logger }: ServiceDeps,
): Promise<void> {
  if (eventStore === null) return;
  // Only a service on a server loads it.
  const { noticeOfLog } = await import('./log-in-folder.js');
  const notice = await noticeOfLog(dataDir.logFile, { system, url: eventStore.url, keys: keys.list() });
  if (notice !== null) logger.warn({}, notice);
}

function warnOfExposure({ dataDir: { path }, logger }: Pick<ServiceDeps, 'dataDir' | 'logger'>): void {
  logger.warn({ dataDir: path }, 'DATA_DIR: other users of this machine have access to it; run chmod -R go-rwx on it');
}

/** Warns where `AUTH=off` opens the service to other machines, or has no effect. */
function warnOfAuth(
  { host, auth }: Pick<Config, 'host' | 'auth'>,
  isOpen: boolean,
  { address, logger }: { readonly address: string; readonly logger: StartLogger },
): void {
  if (auth === 'on') return;
  if (!isOpen) logger.warn({}, 'AUTH=off has no effect: the log holds keys, so requests need one');
  else if (!isLoopbackAddress(address))
    logger.warn({ host }, `AUTH=off: every client that reaches ${host} may do everything without a key`);
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
      accepted: `another port, or 0 for any free one (${code})`,
    });
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new ConfigInvalid({ variable: 'HOST', value: host, accepted: `an address of this machine (${code})` });
  }
  return error;
}

/** Takes nothing new, ends the channels, lets appends finish, releases the runs. */
async function stopService({ server, channels, engine }: StopParts): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await Promise.all([channels?.stop(), engine.stop()]);
  server.closeAllConnections();
  if (channels !== null) await closed;
}

interface StopParts {
  readonly server: Server;
  /** Or null if they were not served yet. Sockets that wait then end with the process. */
  readonly channels: ChannelServer | null;
  readonly engine: Engine;
}

function shut(server: Server): void {
  server.close();
  server.closeAllConnections();
}
