/** The service: a context behind HTTP and sockets; start and stop. */
import type { ProviderRecord } from '../generated/schemas.js';
import type { ProviderState } from '../models/provider-states.js';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { Config } from '../config.js';
import { aboutLog, priceList } from './about.js';
import type { Backups } from './backups.js';
import { backupsOf } from './backups.js';
import { boundConnections } from './connection-bound.js';
import type { Context } from './context.js';
import { createContext } from './context.js';
import type { ServiceDeps } from './context-deps.js';
import { docxOf } from '../docx/docx.js';
import { openRecord } from './record.js';
import { isEndedByStop } from './recovery.js';
import { httpApp, refuseExpectation, refuseUnreadable } from '../http/app.js';
import { removeBasePath } from '../http/answering.js';
import type { SendingDeps } from '../http/answer.js';
import { countedResponse } from '../http/answer.js';
import type { EventConsumer } from '../projections/projector.js';
import { RUN_ENDS, runIdOf } from '../run/events.js';
import type { UnfinishedRun } from '../run/state.js';
import { settledWithin } from '../system/async/deadline.js';
import { SharedBytes } from '../system/async/shared-bytes.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { AccessReason } from '../api/access/access-refused.js';
import { ACCESS_STATUSES, accessReport } from '../api/access/access-refused.js';
import type { AuthenticationRules } from '../api/access/authentication.js';
import type { Limits } from '../api/access/limits.js';
import { limitsOf } from '../api/access/limits.js';
import { failedKeys } from '../keys/failed-keys.js';
import type { System } from '../system/system.js';
import { addressList, isLoopbackAddress } from '../system/addresses.js';
import { ownHosts } from '../api/access/request-source.js';
import type { ChannelServer } from '../ws/upgrade.js';
import { serveChannels } from '../ws/upgrade.js';
import type { LedgerService } from './ledger.js';
import { startLedger } from './ledger.js';
import { addressOf, listen } from './listen.js';
import { checkKeys, warnOfExposure } from './start-rules.js';
import { queueEarlyRequests } from './early-requests.js';
import { OpenCount } from '../system/open-count.js';
import { Tally } from '../telemetry/counts.js';
import type { TraceExporter } from '../telemetry/trace-exporter.js';
import { PROBLEM_FORMS, doorsOf } from './doors.js';
import { metricsWith } from './metrics.js';
import { exportTraces } from './traces.js';
import type { Webhooks } from './webhooks.js';
import { startWebhooks } from './webhooks.js';
import { OFFLINE_MODEL } from '../models/offline.js';

/** How long the start holds requests back while it reads and checks unfinished runs, in milliseconds. */
const MAX_START_MS = 2_000;
/** How long a start endpoint waits for the log, in milliseconds, before it answers 503. */
const APPEND_DEADLINE_MS = 10_000;

export interface Service {
  /** Where it is reached, as `http://HOST:PORT`. */
  readonly url: string;
  readonly context: Context;
  stop(): Promise<void>;
}

/**
 * Listens, creates the context and serves it; resolves once runs can be started. While the log cannot be reached, the
 * service answers health and refuses all other requests with 503. It checks unfinished runs before it resolves, for
 * `MAX_START_MS` at most; commands on runs wait until the unfinished runs are queued.
 *
 * @throws {ConfigInvalid} when the address cannot be listened on, or is open to others while there are no keys
 * @throws {LogCorrupt} when what has to be folded cannot be read
 */
export async function startService(config: Config, deps: ServiceDeps): Promise<Service> {
  const { system, onLogBroken = () => undefined } = deps;
  const address = await addressOf(config);
  const edge = edgeOf(config, deps, address);
  const server = serverOf(config, deps, edge);
  const earlyRequests = queueEarlyRequests(server, edge);
  const url = await listen(server, config, address);
  const announce = announcementOf(url, config, deps);
  const onLogAway = (isAway: boolean): void => {
    earlyRequests.setAway(isAway);
    announce();
  };
  const opening = openChecked(config, { ...deps, onLogAway, consumers: [runEnds(edge.limits)] }, address);
  const context = await stopOnError({ stop: async () => closeServer(server) }, () => opening);
  const traces = exportTraces(context, config.traces, deps);
  const webhooks = startWebhooks(context, config, deps);
  const backups = backupsOf(context.log, deps);
  const before = { server, context, traces, webhooks, backups, channels: null };
  const forget = (runId: string): void => {
    webhooks.forget(runId);
    traces?.forget(runId);
  };
  const ledger = await stopOnError({ stop: () => stopService({ ...before, ledger: null }) }, () =>
    startLedger(context, config, { ...deps, forget }),
  );
  const parts = { server, context, traces, webhooks, backups, ledger };
  const started = { stop: () => stopService({ ...parts, channels: null }) };
  const checking = checkedRuns(context);
  await stopOnError(started, () => settledWithin(checking, { system, maxMs: MAX_START_MS }));
  const recovered = checking.then((unfinished) => context.recovery.recover(unfinished));
  recovered.catch((error: unknown) => isEndedByStop(error) || onLogBroken(error));
  context.registry.delayCommandsUntil(recovered);
  const channels = serveContext(server, { ...parts, edge, config, deps });
  earlyRequests.end();
  announce();
  warnOfExposure(config, context.authenticator, { address, deps });
  return { url, context, stop: () => stopService({ ...parts, channels }) };
}

/** Opens the log, checks the keys and creates the context. */
async function openChecked(config: Config, deps: ServiceDeps, address: string): Promise<Context> {
  const record = await openRecord(config, deps);
  await stopOnError({ stop: () => record.log.close() }, () =>
    checkKeys(config, record.authenticator.keys, { address, deps }),
  );
  return await createContext(config, deps, record);
}

/** Removes a run from the counts of the limits when it has ended, whichever instance ran it. */
function runEnds(limits: Limits): EventConsumer {
  return {
    categories: ['run'],
    types: RUN_ENDS,
    onEventRecorded({ stream }) {
      const runId = runIdOf(stream);
      if (runId !== null) limits.ended(runId);
    },
  };
}

/** What requests and sockets share, before and after the context is created. */
function edgeOf(config: Config, { system, logger }: ServiceDeps, address: string) {
  const accessRefused = new Tally();
  // Each reason has a figure from the start.
  for (const [reason, status] of Object.entries(ACCESS_STATUSES)) accessRefused.add(0, reason, String(status));
  const count = (reason: AccessReason): void => accessRefused.add(1, reason, String(ACCESS_STATUSES[reason]));
  const trustedProxies = addressList(config.trustedProxies);
  return {
    accessRefused,
    onAccessRefused: accessReport({ trustedProxies, system, logger, count }),
    system,
    isLoopback: isLoopbackAddress(address),
    isOwnHost: ownHosts({ ...config, address }),
    corsOrigins: config.corsOrigins,
    basePath: config.basePath,
    limits: limitsOf(config.limits, system),
    streams: new OpenCount(),
    unsent: new SharedBytes(),
    receiving: new SharedBytes(),
    problemForms: PROBLEM_FORMS,
    onFault: (requestId: string | null, err: unknown): void =>
      logger.error({ ...(requestId === null ? { edge: 'ws' } : { requestId }), err }, 'request: fault'),
  };
}

function serverOf(
  { basePath, trustedProxies }: Config,
  { maxFiles = null, system, logger }: ServiceDeps,
  edge: SendingDeps,
): Server {
  // The HTTP layer checks the Host and answers with a `detail`; Node would answer without one.
  const server = createServer({ requireHostHeader: false, ServerResponse: countedResponse(edge) });
  boundConnections(server, { maxFiles, trustedProxies: addressList(trustedProxies), system, logger });
  removeBasePath(server, basePath);
  return server
    .on('clientError', refuseUnreadable(PROBLEM_FORMS, basePath))
    .on('checkExpectation', refuseExpectation(PROBLEM_FORMS));
}

/** A function that reports the service's address at its first call. */
function announcementOf(
  url: string,
  { basePath }: Config,
  { dataDir, model, logger, onListening = () => undefined }: ServiceDeps,
): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    logger.info(
      { url, dataDir: dataDir.path, model: model.provider },
      `council-run-service at ${url}, for people at ${url}${basePath}/console/`,
    );
    onListening(url);
  };
}

interface Served {
  readonly context: Context;
  readonly edge: ReturnType<typeof edgeOf>;
  readonly config: Config;
  readonly deps: ServiceDeps;
  readonly traces: TraceExporter | null;
  readonly webhooks: Webhooks;
  readonly backups: Backups;
  readonly ledger: LedgerService;
}

/** Lets the context serve a server's requests and upgrades. */
function serveContext(server: Server, served: Served): ChannelServer {
  const { context, edge, config, deps, traces, webhooks, backups, ledger } = served;
  const { erasures } = ledger;
  const { queries, feed, tokens, registry, audits, model, readiness } = context;
  const { blueprints, blueprintList, documents, documentList, logFeed, inbox } = context;
  const rules = { ...edge, ...accessRules(context, config, deps.system) };
  let channels: ChannelServer | null = null;
  const metrics = metricsWith(context, {
    traceCounts: () => traces?.counts() ?? null,
    webhookFigures: () => webhooks.figures(),
    ledger,
    system: deps.system,
    accessRefused: edge.accessRefused,
    openSockets: () => channels?.open ?? 0,
    openStreams: () => edge.streams.now,
  });
  const app = httpApp({
    ...rules,
    registry,
    queries,
    feed,
    logFeed,
    inbox,
    ledger,
    eraseDocument: (documentId, cause) => erasures.eraseDocument(documentId, cause),
    eraseRun: (runId, cause) => erasures.eraseRuns([runId], cause),
    verify: (runId) => audits.verify(runId),
    genealogy: (runId) => audits.genealogy(runId),
    marking: (runId) => audits.marking(runId),
    decisions: (runId) => audits.decisions(runId),
    deliberation: (runId) => audits.deliberation(runId),
    citedPages: (runId) => audits.citedPages(runId),
    prompt: (runId, at) => audits.prompt(runId, at),
    docx: (markdown, options) => docxOf(markdown, options, deps.system),
    blueprints,
    blueprintList,
    documents,
    documentList,
    doors: doorsOf(context, config, { metrics, webhooks }),
    uploadDir: deps.dataDir.tmpDir,
    ready: () => readiness.isReady(),
    unreachableModels: () => model.unreachable(),
    modelUses: () => model.uses(),
    providers: () => model.providers().map(providerRecord),
    logInfo: () => aboutLog(context.log, config.eventStore === null ? deps.dataDir.logFile : null),
    prices: () => priceList(context.prices),
    backups,
    schemaChecker: context.schemaChecker,
    maxMaterialBytes: config.maxMaterialBytes,
    marksExports: config.marksExports,
    nodeDefaults: { timeoutMs: config.modelTimeoutMs, maxAttempts: config.modelMaxAttempts },
    fullName: model.fullName,
    canonical,
    offlineModel: OFFLINE_MODEL,
    appendDeadlineMs: APPEND_DEADLINE_MS,
    log: deps.logger,
  });
  server.on('request', app);
  channels = serveChannels(server, {
    ...rules,
    feed,
    queries,
    tokens,
    onFault: (error) => edge.onFault(null, error),
  });
  return channels;
}

function providerRecord(
  { name, api, host, defaultModel, state, detail, callsInFlight }: ProviderState,
  index: number,
): ProviderRecord {
  const shown = { default: index === 0, default_model: defaultModel, calls_in_flight: callsInFlight };
  return { name, api, host, state, detail, ...shown };
}

/** The unfinished runs, checked. */
async function checkedRuns({ recovery }: Context): Promise<readonly UnfinishedRun[]> {
  const unfinished = await recovery.unfinished();
  await recovery.check(unfinished);
  return unfinished;
}

/** The rules of authentication, with one count of failed keys for HTTP and WebSocket. */
function accessRules(
  { authenticator }: Context,
  { trustedProxies }: Config,
  system: System,
): Pick<Context, 'authenticator'> & Pick<AuthenticationRules, 'failedKeys' | 'trustedProxies'> {
  return { authenticator, failedKeys: failedKeys(system), trustedProxies: addressList(trustedProxies) };
}

/** Stops what has started if another part of the start fails. */
async function stopOnError<T>(started: Pick<Context, 'stop'>, part: () => Promise<T>): Promise<T> {
  try {
    return await part();
  } catch (error) {
    await started.stop();
    throw error;
  }
}

/** Accepts no new work, ends the channels, lets appends finish, releases the runs. */
async function stopService({ server, channels, context, traces, webhooks, backups, ledger }: StopParts): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const usingLog = Promise.all([traces?.stop(), webhooks.stop(), backups.stop(), ledger?.stop()]);
  await Promise.all([channels?.stop(), usingLog.then(() => context.stop())]);
  server.closeAllConnections();
  if (channels !== null) await closed;
}

interface StopParts {
  readonly server: Server;
  /**
   * The open sockets, or null if the service does not serve sockets yet. Sockets that wait then end with the process.
   */
  readonly channels: ChannelServer | null;
  readonly context: Context;
  readonly traces: TraceExporter | null;
  readonly webhooks: Webhooks;
  readonly backups: Backups;
  readonly ledger: LedgerService | null;
}

function closeServer(server: Server): void {
  server.close();
  server.closeAllConnections();
}
