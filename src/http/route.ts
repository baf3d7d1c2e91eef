/** A route: one declaration for the router and for the OpenAPI document. */
import { present } from '../system/element.js';
import type { RouterContext } from '@koa/router';
import type { System } from '../system/system.js';
import type { SharedBytes } from '../system/async/shared-bytes.js';
import type { DocxOptions } from '../docx/docx.js';
import type { Marking } from '../draft/marking.js';
import type { AttemptPlace, PromptFound } from '../audit/prompt.js';
import type { CitedPage } from '../audit/sources.js';
import type { RunVerification } from '../audit/verify.js';
import { isBlueprintId } from '../blueprint/record.js';
import type { BlueprintStore } from '../blueprint/store.js';
import type { NodeDefaults } from '../graph/limits.js';
import type { ModelNaming } from '../graph/models-asked.js';
import { BlueprintUnknown } from '../blueprint/errors.js';
import { AppendOutcomeUnknown } from '../eventlog/errors.js';
import { RunUnknown } from '../run/errors.js';
import type {
  AboutLog,
  BackupRecord,
  DeliberationRecord,
  Genealogy,
  ModelCalls,
  OversightRow,
  PriceList,
  ProviderRecord,
} from '../generated/schemas.js';
import type { Authenticator } from '../keys/authenticator.js';
import type { Access, Grant } from '../keys/caller.js';
import type { IdSecret } from '../keys/id-secret.js';
import type { KeyStore } from '../keys/store.js';
import type { SessionStore } from '../keys/sessions.js';
import type { TicketStore } from '../keys/tickets.js';
import type { DocumentCheck } from '../documents/verify.js';
import type { DocumentRecord } from '../documents/events.js';
import type { Ingested, UploadedFile } from '../documents/store.js';
import type { ChunkRange, NumberedChunk } from '../documents/stored-chunks.js';
import type { CitedChunk, DocumentQuery } from '../council/tools/pdf-reader.js';
import type { BlueprintList } from '../projections/blueprints.js';
import type { DocumentList } from '../projections/documents.js';
import type { Inbox } from '../projections/inbox.js';
import type { LogFeed } from '../projections/log-feed.js';
import type { Checkpoints } from '../ledger/checkpoints.js';
import type { RunLeaf } from '../ledger/events.js';
import type { MerkleTree } from '../ledger/tree.js';
import type { RunFeed } from '../run/runs/feed.js';
import type { RunQueries } from '../projections/run-queries.js';
import type { Runs } from '../run/runs/runs.js';
import type { AnswerHeader, Answer } from './answer.js';
import type { OpenCount } from '../system/open-count.js';
import type { SchemaChecker } from '../jsonschema/schema-checker.js';
import type { Limits } from '../api/access/limits.js';
import type { AccessRefused } from '../api/access/access-refused.js';
import type { RoutedRequest, SourceRules } from '../api/access/request-source.js';
import type { AuthenticationRules } from '../api/access/authentication.js';
import type { BodyReader } from './body.js';
import type { QueryReader } from './query.js';
import type { ProblemForm } from '../api/problem-form.js';
import type { SchemaName, SchemaRegistry } from '../api/schemas.js';

/** The ledger of this instance. */
export interface LedgerOfService {
  readonly tree: MerkleTree;
  /** The entries of a tile, by its number. @param width how many, 1 to 256 */
  entries(tile: number, width: number): Promise<readonly Buffer[]>;
  readonly checkpoints: Pick<Checkpoints, 'newest' | 'note' | 'covered' | 'witnesses' | 'fault'>;
  /** Shortest time between two checkpoints. */
  readonly intervalMs: number;
  readonly origin: string;
  /** Verifies checkpoints, or null if this instance signs none. */
  readonly vkey: string | null;
  /** The leaf of a run, or null if it has none. */
  leafOf(runId: string): Promise<LeafOfRun | null>;
}

export interface LeafOfRun {
  /** Its number. */
  readonly index: number;
  readonly leaf: RunLeaf;
  /** The bytes that the tree covers. */
  readonly entry: Buffer;
}

/** The dependencies of the HTTP layer. */
export interface HttpDeps extends SourceRules, AuthenticationRules {
  readonly authenticator: AuthenticationRules['authenticator'] &
    Pick<Authenticator, 'signIn' | 'watch'> & {
      readonly keys: Pick<KeyStore, 'list' | 'add' | 'revoke' | 'events'>;
      readonly sessions: Pick<SessionStore, 'signOut'>;
      readonly tickets: Pick<TicketStore, 'issue'>;
      readonly idSecret: Pick<IdSecret, 'read'>;
    };
  /** Path of the service on the server that clients call, such as `/council`, or '' if it has that server to itself. */
  readonly basePath: string;
  /** Whether the service listens on a loopback address. */
  readonly isLoopback: boolean;

  readonly registry: Pick<
    Runs,
    'start' | 'previewStart' | 'refuse' | 'findRequest' | 'decisionContext' | 'cancel' | 'decidePause'
  >;
  readonly queries: Pick<
    RunQueries,
    'find' | 'listed' | 'state' | 'list' | 'count' | 'counts' | 'overview' | 'record' | 'folded' | 'forkPoint'
  >;
  readonly feed: Pick<RunFeed, 'follow' | 'watchersOf'>;
  /** The events of all runs. */
  readonly logFeed: Pick<LogFeed, 'start' | 'follow'>;
  readonly inbox: Pick<Inbox, 'list' | 'waiting' | 'follow'>;
  /** Erases a run that has ended. */
  readonly eraseRun: (
    runId: string,
    cause: { readonly actor: string | null; readonly reason: string | null },
  ) => Promise<void>;
  /** Erases a document. */
  readonly eraseDocument: HttpDeps['eraseRun'];
  /** Reads and checks a run's whole record, or null if the run is unknown. */
  readonly verify: (runId: string) => Promise<RunVerification | null>;
  readonly ledger: LedgerOfService;
  /** The genealogy of a run, or null if the run is unknown. */
  readonly genealogy: (runId: string) => Promise<Genealogy | null>;
  /** What made a run's draft, or null if the run is unknown. */
  readonly marking: (runId: string) => Promise<Marking | null>;
  /** The decisions on a run's pauses in order; none if the run is unknown. @throws {RunCorrupt} */
  readonly decisions: (runId: string) => Promise<readonly OversightRow[]>;
  /** What the members of a run's panels, ranks, judges and juries have answered, or null if the run is unknown. */
  readonly deliberation: (runId: string) => Promise<DeliberationRecord | null>;
  /** The pages that the draft of a run cites, or null if the run is unknown. */
  readonly citedPages: (runId: string) => Promise<readonly CitedPage[] | null>;
  /** The bytes of a .docx file with a draft in Markdown. */
  readonly docx: (markdown: string, options: DocxOptions) => Promise<Buffer>;
  /** The prompt of a node. */
  readonly prompt: (runId: string, at: AttemptPlace) => Promise<PromptFound>;
  readonly blueprints: Pick<BlueprintStore, 'issuesOf' | 'find' | 'versions' | 'create' | 'update' | 'remove'>;
  readonly blueprintList: BlueprintList;
  readonly documents: {
    find(documentId: string): Promise<DocumentRecord | null>;
    /** Chunks of a document in order, or null if it is unknown. */
    chunks(documentId: string, range: ChunkRange): Promise<readonly NumberedChunk[] | null>;
    /** Searches as agents do; best first. */
    search(query: DocumentQuery, options: { readonly signal: AbortSignal }): Promise<readonly CitedChunk[]>;
    /** Reads and checks a document's whole record, or null if it is unknown. */
    verify(documentId: string): Promise<DocumentCheck | null>;
    ingest(file: UploadedFile): Promise<Ingested>;
    waitUntilSearchable(ingested: Ingested, signal: AbortSignal): Promise<void>;
  };
  readonly documentList: DocumentList;
  /** Folder of uploads in progress. */
  readonly uploadDir: string;
  /** Whether the log answers and the read models have caught up. */
  readonly ready: () => Promise<boolean>;
  /** Models whose servers are unreachable; their runs wait. */
  readonly unreachableModels: () => readonly string[];
  /** Models with calls in progress on this instance. */
  readonly modelUses: () => readonly ModelCalls[];
  /** The configured providers of models, the default first. */
  readonly providers: () => readonly ProviderRecord[];
  /** The log of this instance. */
  readonly logInfo: () => Promise<AboutLog>;
  /** The prices of models. */
  readonly prices: () => PriceList;
  /** Backups of the log, one at a time (app/backups.ts). */
  readonly backups: {
    /** Resolves once the folder is accepted. @throws {BackupRefused} */
    start(to: string): Promise<BackupRecord>;
    last(): BackupRecord | null;
  };
  readonly limits: Limits;
  /** Counts the open event streams. */
  readonly streams: OpenCount;
  /** Doors for other programs, each with routes of its own. */
  readonly doors: readonly Door[];
  /** The forms of errors under the paths of doors. */
  readonly problemForms: readonly ProblemForm[];
  /** The limit of the unsent bytes of all clients. */
  readonly unsent: Pick<SharedBytes, 'update' | 'forget'>;
  /** The limit of the bytes of all JSON bodies that are being received. */
  readonly receiving: Pick<SharedBytes, 'update' | 'forget'>;
  readonly system: System;
  readonly nodeDefaults: NodeDefaults;
  readonly schemaChecker: Pick<SchemaChecker, 'faultOf'>;
  /** Largest material of a run, in bytes of UTF-8. */
  readonly maxMaterialBytes: number;
  /** Whether a document for Word ends with a line that says what made it. */
  readonly marksExports: boolean;
  /** The full name of the model that a node of a blueprint names, or of the default model. */
  readonly fullName: ModelNaming;
  /** Name of the offline model, whatever the default provider is. */
  readonly offlineModel: string;
  /** The RFC 8785 text of a JSON value. */
  readonly canonical: (value: unknown) => string;
  /** How long a request waits for the log, in milliseconds, before it gets 503. */
  readonly appendDeadlineMs: number;
  /** Called with each error that a client gets as 500. */
  readonly onFault: (requestId: string, error: unknown) => void;
  /** Called with each refusal of a caller. */
  readonly onAccessRefused: (refused: AccessRefused, request: RoutedRequest) => void;
  readonly log: { info(fields: object, message: string): void };
}

/** The dependencies of routes. */
export interface HttpContext extends HttpDeps {
  readonly schemas: SchemaRegistry;
  /** Awaits work on the log until its deadline, then throws the error of `late`. */
  withinDeadline<T>(work: Promise<T>, late?: () => Error): Promise<T>;
}

/** The error of a request if the log has not acknowledged its append to a stream by that deadline. */
export function outcomeUnknown(stream: string): () => AppendOutcomeUnknown {
  return () => new AppendOutcomeUnknown({ stream });
}

/** The routes of a door for other programs. It adds no rule of a run. */
export type Door = (http: HttpContext) => readonly Route[];

/** A successful answer. */
export interface Success {
  readonly status: number;
  readonly description: string;
  /** The schema of the answer, or of each event of a stream. */
  readonly schema: SchemaName | null;
  /** Whether the answer has no body; one with status 204 never has. */
  readonly isEmpty?: boolean;
  /** Default: JSON. */
  readonly mediaType?: string;
  /** Other media types of the answer, for clients that prefer them to JSON. */
  readonly alsoAs?: Readonly<Record<string, OtherForm>>;
  /** Headers of the answer, beside the ETag of a conditional route. */
  readonly headers?: readonly AnswerHeader[];
}

/** An answer in another media type than JSON. */
export interface OtherForm {
  readonly description: string;
  /** Schema of each line if the lines are JSON; otherwise the answer is text. */
  readonly each?: SchemaName;
}

/** The tags of routes, in the order of the OpenAPI document. */
export const TAGS = {
  runs: 'Start, poll and cancel runs of a council.',
  'god mode': 'Runs that wait for a human before a node starts, and decisions on them.',
  history: 'Lists and records of runs, finished or not.',
  audit: 'The record of a run: its events, its state after each, its verification, and forks.',
  blueprints: 'Saved councils.',
  documents: 'PDF files that agents can search.',
  keys: 'API keys, sessions for browsers, and tickets for sockets and event streams.',
  webhooks: 'Addresses to which the service sends the events of runs.',
  ledger: 'The Merkle tree of ended runs, its checkpoints, and proofs.',
  backup: 'Copies of the log.',
  health: 'Liveness, readiness and metrics.',
  openai: "Councils as models of OpenAI's API.",
  mcp: 'The service as tools of assistants and editors, by the Model Context Protocol.',
  documentation: 'Machine-readable descriptions of the API.',
} as const;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As in OpenAPI, with parameters in braces; one with a plus sign, at the end, takes the rest of the path. */
  readonly path: string;
  /** Whether the last word of the path may also be the id in another route, for other methods. */
  readonly isAlsoId?: boolean;
  readonly access: Access;
  /** Whether load balancers probe it: it has no limit and accepts any Host. */
  readonly isProbe?: boolean;
  /**
   * A secret that opens it in place of a key, then under any Host; or null if there is none. With a secret it is closed even
   * while the service has no keys. Default: none.
   */
  readonly token?: string | null;
  /** Unique; OpenAPI's operationId. */
  readonly name: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: keyof typeof TAGS;
  readonly body?: Pick<BodyReader<unknown>, 'schema' | 'isRequired' | 'mediaType'>;
  readonly query?: QueryReader<unknown>;
  /** Whether it accepts an Idempotency-Key. */
  readonly isKeyed?: boolean;
  /** Whether an unknown id in the path gets 404. Default: true if the path has an id. */
  readonly hasUnknown?: boolean;
  /** Another header that it accepts, as an OpenAPI parameter object. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Whether its answers have an ETag and it accepts If-None-Match. */
  readonly isConditional?: boolean;
  readonly success: Success;
  /** The answer that a query parameter, or the body, can select instead. */
  readonly otherSuccess?: Success;
  /** Errors in the form of a protocol of its own. */
  readonly errors?: readonly Success[];
  /** Description of its 204 answer, if it has one. */
  readonly nothing?: string;
  /** Statuses of its own problems, beside those that follow from its access, parameters, body and query. */
  readonly problems?: readonly number[];
  /** @throws any error of problems.ts */
  handle(ctx: RouterContext, caller: Grant): Promise<Answer>;
}

/** Whether a route's answer is an event stream: a ticket opens it, and it ends with its caller's grant. */
export function isEventStream({ success }: Pick<Route, 'success'>): boolean {
  return success.mediaType === 'text/event-stream';
}

/**
 * The run id in the path.
 *
 * @throws {RunUnknown} for any text that cannot be a run's id
 */
export function runIdIn(ctx: RouterContext): string {
  const runId = runIdText(ctx);
  if (!isRunId(runId)) throw new RunUnknown({ runId });
  return runId;
}

/** The run id in the path, unchecked. */
export function runIdText(ctx: RouterContext): string {
  return parameterIn(ctx, 'run_id');
}

/** A parameter of the route's own path. */
export function parameterIn({ params }: RouterContext, name: string): string {
  return present(params[name], `parameter ${name} in the path`);
}

export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[45][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * The blueprint id in the path.
 *
 * @throws {BlueprintUnknown} for any text that cannot be a blueprint's id
 */
export function blueprintIdIn(ctx: RouterContext): string {
  const blueprintId = parameterIn(ctx, 'blueprint_id');
  if (!isBlueprintId(blueprintId)) throw new BlueprintUnknown({ blueprintId });
  return blueprintId;
}
