/** A route: one declaration, from which the router and the OpenAPI document are made. */
import { present } from '../system/element.js';
import type { RouterContext } from '@koa/router';
import type { System } from '../system/system.js';
import type { UnsentBytes } from '../system/async/unsent-bytes.js';
import type { AttemptPlace, PromptFound } from '../audit/prompt.js';
import type { RunVerification } from '../audit/verify.js';
import { isBlueprintId } from '../blueprint/record.js';
import type { BlueprintStore } from '../blueprint/store.js';
import type { NodeDefaults } from '../graph/limits.js';
import { BlueprintUnknown } from '../blueprint/errors.js';
import { RunUnknown } from '../run/errors.js';
import type { Genealogy, ModelCalls } from '../generated/schemas.js';
import type { Authenticator } from '../keys/authenticator.js';
import type { Access, Grant } from '../keys/caller.js';
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
import type { RunFeed } from '../projections/run-feed.js';
import type { RunQueries } from '../projections/run-queries.js';
import type { RunRegistry } from '../run/live/registry.js';
import type { AnswerHeader } from './cors.js';
import type { Limits } from '../api/access/limits.js';
import type { AuthenticationRules } from '../api/access/authentication.js';
import type { SourceRules } from '../api/access/request-source.js';
import type { Answer } from './answer.js';
import type { BodyReader } from './body.js';
import type { QueryReader } from './query.js';
import type { SchemaName, SchemaRegistry } from '../api/schemas.js';

/** What the HTTP layer works with. */
export interface HttpDeps extends SourceRules, AuthenticationRules {
  readonly authenticator: AuthenticationRules['authenticator'] &
    Pick<Authenticator, 'signIn' | 'watch'> & {
      readonly keys: Pick<KeyStore, 'list' | 'add' | 'revoke' | 'events'>;
      readonly sessions: Pick<SessionStore, 'signOut'>;
      readonly tickets: Pick<TicketStore, 'issue'>;
    };
  /** Whether the service is reached from its own machine alone. */
  readonly isLoopback: boolean;

  readonly registry: Pick<RunRegistry, 'start' | 'previewStart' | 'refuse' | 'findRequest' | 'cancel' | 'decidePause'>;
  readonly queries: Pick<RunQueries, 'find' | 'state' | 'list' | 'count' | 'record' | 'folded' | 'forkPoint'>;
  readonly feed: Pick<RunFeed, 'follow'>;
  /** The events of all runs. */
  readonly logFeed: Pick<LogFeed, 'start' | 'follow'>;
  readonly inbox: Pick<Inbox, 'list' | 'waiting' | 'follow'>;
  /** Reads and checks a run's whole record; null when nothing is known of it. */
  readonly verify: (runId: string) => Promise<RunVerification | null>;
  /** The genealogy of a run; null when there is no such run. */
  readonly genealogy: (runId: string) => Promise<Genealogy | null>;
  /** The prompt that a node was sent. */
  readonly prompt: (runId: string, at: AttemptPlace) => Promise<PromptFound>;
  readonly blueprints: Pick<BlueprintStore, 'find' | 'versions' | 'create' | 'update' | 'remove'>;
  readonly blueprintList: BlueprintList;
  readonly documents: {
    find(documentId: string): Promise<DocumentRecord | null>;
    /** Chunks of a document, in order; null when it is not there. */
    chunks(documentId: string, range: ChunkRange): Promise<readonly NumberedChunk[] | null>;
    /** Searches as agents do, best first. */
    search(query: DocumentQuery, options: { readonly signal: AbortSignal }): Promise<readonly CitedChunk[]>;
    /** Reads and checks a document's whole record; null when nothing is known of it. */
    verify(documentId: string): Promise<DocumentCheck | null>;
    ingest(file: UploadedFile): Promise<Ingested>;
    reached(ingested: Ingested, signal: AbortSignal): Promise<void>;
    remove(documentId: string, actor: string | null): Promise<void>;
  };
  readonly documentList: DocumentList;
  /** Folder for files while they are uploaded. */
  readonly uploadDir: string;
  /** Whether the log answers and the read models have caught up. */
  readonly ready: () => Promise<boolean>;
  /** Models whose servers are unreachable; their runs wait. */
  readonly unreachableModels: () => readonly string[];
  /** Models that are being called here. */
  readonly modelUses: () => readonly ModelCalls[];
  readonly limits: Limits;
  /** What streams have not sent yet. */
  readonly unsent: Pick<UnsentBytes, 'grew' | 'forget'>;
  readonly system: System;
  readonly nodeDefaults: NodeDefaults;
  /** Name by which nodes ask the offline model, whatever the service is set to. */
  readonly offlineModel: string;
  /** The RFC 8785 text of a JSON value. */
  readonly canonical: (value: unknown) => string;
  /** How long a request waits for the log, in milliseconds, before it is answered 503. */
  readonly appendDeadlineMs: number;
  /** Called with each failure that is answered with 500. */
  readonly onFault: (requestId: string, error: unknown) => void;
  readonly log: { info(fields: object, message: string): void };
}

/** The dependencies of routes, and what they share. */
export interface HttpContext extends HttpDeps {
  readonly schemas: SchemaRegistry;
  /** Awaits work on the log no longer than the deadline, then throws what `late` makes. */
  inTime<T>(work: Promise<T>, late?: () => Error): Promise<T>;
}

/** An answer that is no problem. */
export interface Success {
  readonly status: number;
  readonly description: string;
  /** Of the whole answer; of each event, where it is a stream of them. */
  readonly schema: SchemaName | null;
  /** Default: JSON. */
  readonly mediaType?: string;
  /** Media types it is answered in beside JSON, to clients that accept them first. */
  readonly alsoAs?: Readonly<Record<string, OtherForm>>;
  /** Headers it carries, beside the ETag of a conditional route. */
  readonly headers?: readonly AnswerHeader[];
}

/** An answer in another media type than JSON. */
export interface OtherForm {
  readonly description: string;
  /** Schema of each of its lines, where these are JSON; else it is text. */
  readonly each?: SchemaName;
}

/** What routes are about: one tag each, in the order of the OpenAPI document. */
export const TAGS = {
  runs: 'Starts runs of a council, tells where they stand, and cancels them.',
  'god mode': 'Shows what waits for a human before a node starts, and takes the decision.',
  history: 'Runs as they are kept, finished or not.',
  audit: 'The record of a run: its events, what they add up to, whether they verify, and runs that go on from one.',
  blueprints: 'Saved councils.',
  documents: 'PDF files that agents can search.',
  keys: 'Who may do what: keys, and what stands for a key in browsers and on sockets.',
  health: 'Whether the service answers, and whether to send it work.',
  documentation: 'Descriptions of the service for machines.',
} as const;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As OpenAPI writes it, parameters in braces; served with and without its trailing slash. */
  readonly path: string;
  /** Whether the last part of its path, a word, may be an id too: other methods are for that. */
  readonly isAlsoId?: boolean;
  readonly access: Access;
  /** Whether load balancers probe it: it has no request limit and accepts any Host. */
  readonly isProbe?: boolean;
  /** Unique; OpenAPI's operationId. */
  readonly name: string;
  readonly summary: string;
  /** More detail than the summary gives. */
  readonly description?: string;
  readonly tag: keyof typeof TAGS;
  readonly body?: Pick<BodyReader<unknown>, 'schema' | 'isRequired' | 'mediaType'>;
  readonly query?: QueryReader<unknown>;
  /** Whether it heeds an Idempotency-Key. */
  readonly isKeyed?: boolean;
  /** Whether an unknown id in the path is answered 404. Default: true when the path has an id. */
  readonly hasUnknown?: boolean;
  /** Header it heeds, beside the Idempotency-Key: an OpenAPI parameter object. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Whether its answers carry an ETag, and If-None-Match is heeded. */
  readonly isConditional?: boolean;
  readonly success: Success;
  /** The answer that a query parameter can select instead. */
  readonly otherSuccess?: Success;
  /** Description of its 204 answer, if it has one. */
  readonly nothing?: string;
  /** Statuses of its own problems, beside those that follow from its parameters, body, query and key. */
  readonly problems?: readonly number[];
  /** @throws whatever problems.ts can answer */
  handle(ctx: RouterContext, caller: Grant): Promise<Answer>;
}

/** Whether a route's answer is an event stream: a ticket opens it, and it ends when its caller's access does. */
export function isEventStream({ success }: Pick<Route, 'success'>): boolean {
  return success.mediaType === 'text/event-stream';
}

/**
 * The run id in the path.
 *
 * @throws {RunUnknown} for any text that is no id of this service: ids are compared as text
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

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * The blueprint id in the path.
 *
 * @throws {BlueprintUnknown} for any text that can be no blueprint's id
 */
export function blueprintIdIn(ctx: RouterContext): string {
  const blueprintId = parameterIn(ctx, 'blueprint_id');
  if (!isBlueprintId(blueprintId)) throw new BlueprintUnknown({ blueprintId });
  return blueprintId;
}
