/** The client of a council run service, for Node and browsers. */
import type {
  About,
  BackupRecord,
  Health,
  Overview,
  PriceList,
  ProviderList,
  Readiness,
  LedgerState,
} from '../generated/schemas.js';
import { Keys, Session } from './access.js';
import { Approvals } from './approvals.js';
import { Blueprints } from './blueprints.js';
import type { CursorStream } from './cursor-stream.js';
import { Documents } from './documents.js';
import type { FeedEvent, FeedOptions } from './feed.js';
import { feedStream } from './feed.js';
import type { Api, CallOptions, Fetch } from './http.js';
import { openApi, pathOf } from './http.js';
import { listProviders } from './providers.js';
import type { RetryOptions } from './retry.js';
import { Run } from './run.js';
import { Runs } from './runs.js';
import type { ClientSystem } from './system.js';
import { hostSystem } from './system.js';
import { Webhooks } from './webhooks.js';
import type { WebSocketClass } from './web-socket.js';
import { hostWebSocket } from './web-socket.js';

export interface CouncilClientOptions {
  /** Address of the service, such as `http://127.0.0.1:8000`. Default: the origin of the page. */
  readonly url?: string | undefined;
  /** The API key. Default: none; the service's own pages have a session instead. */
  readonly key?: string | undefined;
  /** Default: `fetch` of the host. */
  readonly fetch?: Fetch | undefined;
  /** For `run.tokens()`. Default: `WebSocket` of the host, which Node 20 does not have: pass that of the package `ws`. */
  readonly webSocket?: WebSocketClass | undefined;
  readonly retry?: RetryOptions | undefined;
  /** Clock, randomness and timers. Default: those of the host. */
  readonly system?: ClientSystem | undefined;
}

export interface OverviewOptions extends CallOptions {
  /** The first day, in UTC; as text such as `2026-11-27`. Default: 29 days before the last. */
  readonly from?: Date | string | undefined;
  /** The last day, which is included; at most 366 days in all. Default: today. */
  readonly to?: Date | string | undefined;
}

export class CouncilClient {
  readonly runs: Runs;
  readonly approvals: Approvals;
  readonly blueprints: Blueprints;
  readonly documents: Documents;
  readonly keys: Keys;
  readonly session: Session;
  readonly webhooks: Webhooks;
  readonly #api: Api;

  /** Sends nothing. @throws {TypeError} the address or the key is malformed */
  constructor({
    url = pageOrigin(),
    key,
    fetch,
    webSocket,
    retry = {},
    system = hostSystem(),
  }: CouncilClientOptions = {}) {
    const api = openApi({
      url: serviceUrl(url),
      key,
      fetch,
      retry,
      system,
      webSocket: webSocket ?? hostWebSocket(),
    });
    this.#api = api;
    this.runs = new Runs(api);
    this.approvals = new Approvals(api);
    this.blueprints = new Blueprints(api);
    this.documents = new Documents(api);
    this.keys = new Keys(api);
    this.session = new Session(api);
    this.webhooks = new Webhooks(api);
  }

  /** A run by its id. Sends nothing. */
  run(id: string): Run {
    return new Run(this.#api, id);
  }

  /** The events of all runs in the order of the log, as they are recorded. Ends only with its signal. */
  feed(options: FeedOptions = {}): CursorStream<FeedEvent> {
    return feedStream(this.#api, options);
  }

  /** The configured providers of models as this instance sees them, the default first. */
  providers(options: CallOptions = {}): Promise<ProviderList> {
    return listProviders(this.#api, options);
  }

  /** Figures of the runs that started on some days, and of the runs that wait for a human. */
  overview({ from, to, signal }: OverviewOptions = {}): Promise<Overview> {
    return this.#api.json({ path: pathOf('overview'), query: { from, to }, signal });
  }

  /** The ledger of ended runs: its size, its root, its newest checkpoint and its witnesses. */
  ledger({ signal }: CallOptions = {}): Promise<LedgerState> {
    return this.#api.json({ path: pathOf('ledger'), signal });
  }

  /** The version, the log and the default model of this instance. */
  about({ signal }: CallOptions = {}): Promise<About> {
    return this.#api.json({ path: pathOf('about'), signal });
  }

  /**
   * Starts a backup of the log into a new folder on the machine of the service; poll `backup` for its end. Needs a key with
   * the scope `admin`. The request is sent once: if it throws an UnreachableError, the backup may run.
   *
   * @throws {ConflictError} the folder cannot be used, or another backup runs
   */
  startBackup({ to, signal }: CallOptions & { readonly to: string }): Promise<BackupRecord> {
    return this.#api.json({ method: 'POST', path: pathOf('backup'), body: { to }, signal });
  }

  /** The backup that runs, or the last one since the start of the instance. @throws {NotFoundError} there was none */
  backup({ signal }: CallOptions = {}): Promise<BackupRecord> {
    return this.#api.json({ path: pathOf('backup'), signal });
  }

  /** The prices that the service charges for calls to models. */
  prices({ signal }: CallOptions = {}): Promise<PriceList> {
    return this.#api.json({ path: pathOf('prices'), signal });
  }

  /** Whether the process answers. Not retried. */
  health({ signal }: CallOptions = {}): Promise<Health> {
    return this.#api.json({ path: pathOf('health'), signal, isRepeatable: false });
  }

  /** Whether the service accepts work. Not retried. @throws {UnavailableError} it does not */
  ready({ signal }: CallOptions = {}): Promise<Readiness> {
    return this.#api.json({ path: pathOf('health', 'ready'), signal, isRepeatable: false });
  }
}

/** @throws {TypeError} outside of a page */
function pageOrigin(): string {
  const { location } = globalThis as { readonly location?: { readonly origin: string } };
  if (location === undefined) throw new TypeError('The option `url` is missing, and there is no page with an origin');
  return location.origin;
}

/** Without trailing slash. */
function serviceUrl(text: string): string {
  const { protocol, username, password, origin, pathname } = new URL(text);
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '') {
    throw new TypeError(`Cannot use "${text}": use an http or https address without credentials`);
  }
  return origin + pathname.replace(/\/+$/, '');
}

export { Pause, SeenPause } from './pause.js';
export type { ApproveOptions, DecisionOptions } from './pause.js';
export { Run } from './run.js';
export type {
  CouncilResult,
  DraftOptions,
  ForkOptions,
  ForkPoint,
  JsonOutput,
  PromptOptions,
  StateOptions,
} from './run.js';
export { isTerminal } from './run-events.js';
export type { EventsOptions, RunEvent, RunEventStream } from './run-events.js';
export type { LiveMessage } from './tokens.js';
export type { ClientSocket, WebSocketClass } from './web-socket.js';
export type { EstimateOptions, ExportOptions, OversightOptions, RunFilters, StartOptions, TryOptions } from './runs.js';
export type { Pages } from './pages.js';
export type { ApprovalChange, ApprovalFilters, ApprovalListOptions, WatchOptions } from './approvals.js';
export type { ChangeOptions, TaggedBlueprint, VersionsOptions } from './blueprints.js';
export type { CursorStream } from './cursor-stream.js';
export type { FeedEvent, FeedOptions } from './feed.js';
export type { AddKeyOptions, KeyEventsOptions } from './access.js';
export type { RegisterOptions } from './webhooks.js';
export type { ChunkOptions, SearchOptions, UploadOptions } from './documents.js';
export type { CallOptions } from './http.js';
export type { RetryOptions, RetryWait } from './retry.js';
export type { ClientSystem } from './system.js';
export * from './errors.js';
export type {
  About,
  Approval,
  ApprovalGone,
  Blueprint,
  BlueprintCreate,
  BlueprintUpdate,
  BlueprintValidation,
  BlueprintVersion,
  Budget,
  BudgetChange,
  ReviewSent,
  BudgetStatus,
  ChartConfig,
  ChartState,
  Document,
  Estimate,
  FieldError,
  FoldedRun,
  ForkPlan,
  ForkRequest,
  FoundPassage,
  DeliberationRecord,
  Genealogy,
  GodModeState,
  Health,
  HistoryRecord,
  Key,
  KeyEventsPage,
  ModelUsage,
  NewKey,
  LedgerState,
  NextCalls,
  NodeStartMessage,
  NumberedChunk,
  Overview,
  PriceList,
  Readiness,
  RunCounts,
  RunResult,
  RunStart,
  RunUsage,
  Scope,
  Session as SignedIn,
  SourceList,
  StateOverride,
  StepPrompt,
  Ticket,
  TokenMessage,
  UploadResult,
  Verification,
  Webhook,
  WebhookDelivery,
  WebhookMessage,
} from '../generated/schemas.js';
