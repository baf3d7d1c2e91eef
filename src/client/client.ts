/** The client of a council run service, for Node and browsers: what `council-run-service/client` gives. */
import type { Health, Readiness } from '../generated/schemas.js';
import { Keys, Session } from './access.js';
import { Approvals } from './approvals.js';
import { Blueprints } from './blueprints.js';
import type { CursorStream } from './cursor-stream.js';
import { Documents } from './documents.js';
import type { FeedEvent, FeedOptions } from './feed.js';
import { feedStream } from './feed.js';
import type { Api, CallOptions, Fetch } from './http.js';
import { openApi, pathOf } from './http.js';
import type { RetryOptions } from './retry.js';
import { Run } from './run.js';
import { Runs } from './runs.js';
import type { ClientSystem } from './system.js';
import { hostSystem } from './system.js';
import type { WebSocketClass } from './web-socket.js';
import { hostWebSocket } from './web-socket.js';

export interface CouncilClientOptions {
  /** Where the service is, such as `http://127.0.0.1:8000`. Default: where the page came from. */
  readonly url?: string | undefined;
  /** The API key. Default: none; on the service's own pages a session stands for it. */
  readonly key?: string | undefined;
  /** Default: the host's. */
  readonly fetch?: Fetch | undefined;
  /** For `run.tokens()`; of Node, `WebSocket` of the package `ws`. Default: the host's. */
  readonly webSocket?: WebSocketClass | undefined;
  readonly retry?: RetryOptions | undefined;
  /** Clock, randomness and timers. Default: the host's. */
  readonly system?: ClientSystem | undefined;
}

export class CouncilClient {
  readonly runs: Runs;
  readonly approvals: Approvals;
  readonly blueprints: Blueprints;
  readonly documents: Documents;
  readonly keys: Keys;
  readonly session: Session;
  readonly #api: Api;

  /** Nothing is sent before the first call. @throws {TypeError} for an address or a key that cannot be one */
  constructor({
    url = pageOrigin(),
    key,
    fetch,
    webSocket,
    retry = {},
    system = hostSystem(),
  }: CouncilClientOptions = {}) {
    const api = openApi({
      ...{ url: serviceUrl(url), key, fetch, retry, system, webSocket: webSocket ?? hostWebSocket() },
    });
    this.#api = api;
    this.runs = new Runs(api);
    this.approvals = new Approvals(api);
    this.blueprints = new Blueprints(api);
    this.documents = new Documents(api);
    this.keys = new Keys(api);
    this.session = new Session(api);
  }

  /** A run by its id; sends nothing. */
  run(id: string): Run {
    return new Run(this.#api, id);
  }

  /** The events of all runs, in the order of the log, as they are recorded. It never ends of itself. */
  feed(options: FeedOptions = {}): CursorStream<FeedEvent> {
    return feedStream(this.#api, options);
  }

  /** Whether the process answers; not retried. */
  health({ signal }: CallOptions = {}): Promise<Health> {
    return this.#api.json({ path: pathOf('health'), signal, isRepeatable: false });
  }

  /** Whether the service can take work; not retried. @throws {UnavailableError} it cannot */
  ready({ signal }: CallOptions = {}): Promise<Readiness> {
    return this.#api.json({ path: pathOf('health', 'ready'), signal, isRepeatable: false });
  }
}

/** @throws {TypeError} outside of a page */
function pageOrigin(): string {
  const { location } = globalThis as { readonly location?: { readonly origin: string } };
  if (location === undefined) throw new TypeError('No `url` is given, and there is no page whose origin it would be');
  return location.origin;
}

/** Without trailing slash. */
function serviceUrl(text: string): string {
  const { protocol, username, password, origin, pathname } = new URL(text);
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '') {
    throw new TypeError(`Cannot use "${text}": an http or https address without credentials is wanted`);
  }
  return origin + pathname.replace(/\/+$/, '');
}

export { Pause, SeenPause } from './pause.js';
export type { DecisionOptions } from './pause.js';
export { Run } from './run.js';
export type { ForkOptions, ForkPoint, PromptOptions, StateOptions } from './run.js';
export { isTerminal } from './run-events.js';
export type { EventsOptions, RunEvent, RunEventStream } from './run-events.js';
export type { LiveMessage } from './tokens.js';
export type { ClientSocket, WebSocketClass } from './web-socket.js';
export type { RunFilters, StartOptions, TryOptions } from './runs.js';
export type { Pages } from './pages.js';
export type { ApprovalChange, ApprovalFilters, ApprovalListOptions, WatchOptions } from './approvals.js';
export type { ChangeOptions, TaggedBlueprint, VersionsOptions } from './blueprints.js';
export type { CursorStream } from './cursor-stream.js';
export type { FeedEvent, FeedOptions } from './feed.js';
export type { AddKeyOptions, KeyEventsOptions } from './access.js';
export type { ChunkOptions, SearchOptions, UploadOptions } from './documents.js';
export type { CallOptions } from './http.js';
export type { RetryOptions, RetryWait } from './retry.js';
export type { ClientSystem } from './system.js';
export * from './errors.js';
export type {
  Approval,
  ApprovalGone,
  Blueprint,
  BlueprintCreate,
  BlueprintUpdate,
  BlueprintValidation,
  BlueprintVersion,
  ChartConfig,
  ChartState,
  Document,
  FieldError,
  FoldedRun,
  ForkPlan,
  ForkRequest,
  FoundPassage,
  Genealogy,
  GodModeState,
  Health,
  HistoryRecord,
  Key,
  KeyEventsPage,
  NewKey,
  NodeStartMessage,
  NumberedChunk,
  Readiness,
  RunResult,
  RunStart,
  Scope,
  Session as SignedIn,
  StateOverride,
  StepPrompt,
  Ticket,
  TokenMessage,
  UploadResult,
  Verification,
} from '../generated/schemas.js';
