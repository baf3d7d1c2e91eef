/** Starts runs. Requests with the same Idempotency-Key start one run; decisions on pauses use the key too. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { clientOf } from '../api/access/limits.js';
import type { RoutedRequest } from '../api/access/request-source.js';
import { brokenRules } from '../api/problems.js';
import { runStart } from '../api/serializers/runs.js';
import { assertBudget } from '../api/validation.js';
import type { Budget, RunBudget, RunFailedData, RunRequestedData, RunStart } from '../generated/schemas.js';
import { unpricedText } from '../graph/models-asked.js';
import type { Caller } from '../keys/caller.js';
import { unpricedModel } from '../run/budget/spending.js';
import { runStream } from '../run/events.js';
import type { RunParameters } from '../run/request.js';
import { keyedRunId, recordedBudget } from '../run/request.js';
import type { Answer } from './answer.js';
import { enforceLimits } from './answering.js';
import type { ReadBody } from './body.js';
import type { Matter } from './matter.js';
import { assertMatter } from './matter.js';
import type { HttpContext } from './route.js';
import { outcomeUnknown } from './route.js';

/** The id of the run, the hashes that identify a repeated request, and the name of the caller. */
export type RunIdentity = Pick<RunParameters, 'runId' | 'keyHash' | 'bodyHash' | 'actor'>;

/** The request of a new run, before it is recorded. */
export interface BuiltRequest {
  readonly request: RunRequestedData;
  /** The failure of a run that cannot start, or null. */
  readonly failure: RunFailedData | null;
}

export interface StartOptions {
  readonly body: ReadBody<unknown>;
  readonly caller: Caller;
  /** What the run works on, from the body, checked for the first of equal requests. Default: the caller has checked it. */
  readonly matter?: Matter;
  /** Builds the request of the run. Called only for the first of equal requests. */
  readonly buildRequest: (run: RunIdentity) => BuiltRequest | Promise<BuiltRequest>;
}

/** The answer to a start. */
export interface StartAnswer extends Answer {
  readonly body: RunStart;
}

/** Starts a run. A repeated start is answered before any other check, also of its blueprint. */
export async function startRunOnce(ctx: ActingRequest, http: HttpContext, options: StartOptions): Promise<StartAnswer> {
  const { authenticator, registry, withinDeadline } = http;
  const { uuid, sha256 } = http.system;
  const { caller, matter, buildRequest } = options;
  // 1. The id of the run: derived from the key, so that equal starts are appends to one stream.
  const { key, keyHash, bodyHash } = keyed(ctx, http, options);
  const scope = key === null ? null : { ...keyScope(ctx), key };
  const secret = scope === null ? null : await withinDeadline(authenticator.idSecret.read());
  const runId = scope === null ? uuid() : keyedRunId(scope, secret, sha256);
  const recording = async (): Promise<RunRequestedData> => {
    // 2. A run that the key has started before, also under the id that earlier versions gave it.
    const ids = scope === null ? [] : [runId, keyedRunId(scope, null, sha256)];
    const found = await Promise.all(ids.map((id) => registry.findRequest(id, bodyHash)));
    const repeated = found.find((each) => each !== null) ?? null;
    if (repeated !== null) return repeated;
    // 3. Else a new run.
    if (matter !== undefined) await assertMatter(http, matter, ['body']);
    const built = await buildRequest({ runId, keyHash, bodyHash, actor: caller.actor });
    assertPriced(built.request, http);
    const recorded = await startCounted({ ctx, http, caller }, built);
    if (recorded === built.request) http.log.info({ runId, blueprintId: recorded.blueprintId }, 'run requested');
    return recorded;
  };
  // 4. The answer, once the run is recorded.
  return { status: 202, body: runStart(await withinDeadline(recording(), outcomeUnknown(runStream(runId)))) };
}

/** The request that starts a run, and its caller. */
export interface StartContext {
  readonly ctx: ActingRequest;
  readonly http: Pick<HttpContext, 'limits' | 'trustedProxies' | 'registry'>;
  readonly caller: Caller;
}

/**
 * Starts a run under the limits, or records one that cannot begin. Counts it only if this request started it.
 *
 * @returns the recorded request: of this start, or of an equal one that came first
 * @throws {RequestRefused} 429
 */
export async function startCounted(
  { ctx, http, caller }: StartContext,
  { request, failure }: BuiltRequest,
): Promise<RunRequestedData> {
  const { limits, registry } = http;
  const check = limits.run(clientOf(ctx.req, caller, http), request.runId);
  enforceLimits(ctx, check);
  let recorded: RunRequestedData | null = null;
  try {
    return (recorded = await (failure === null ? registry.start(request) : registry.refuse(request, failure)));
  } finally {
    // The start failed, or an equal request came first.
    if (recorded !== request) check.uncount();
  }
}

/** The budget of a run: that of the request, else another. @throws {RequestRefused} 422 if it sets no limit */
export function budgetOf(sent: Budget | undefined, other?: Budget): RunBudget | undefined {
  assertBudget(sent);
  const budget = sent ?? other;
  return budget === undefined ? undefined : recordedBudget(budget);
}

/** Refuses a budget in US dollars for a run that may call a model without a price. @throws {RequestRefused} 422 */
export function assertPriced({ budget, graph }: RunRequestedData, { registry }: Pick<HttpContext, 'registry'>): void {
  const model = (budget?.usd ?? null) === null ? null : unpricedModel(graph, registry.decisionContext());
  if (model === null) return;
  throw brokenRules([{ loc: ['body', 'budget', 'usd'], msg: unpricedText(model), type: 'unpriced_model' }]);
}

// The Idempotency-Key: repeated requests with the same key take effect once.

/** Name of the header. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** 1 to 255 visible ASCII characters, as a pattern of JSON Schema. */
export const KEY_PATTERN = '^[\\x21-\\x7e]{1,255}$';

/** The parts of a request that starts a run or decides a pause. A call of a tool has them too. */
export interface ActingRequest extends Pick<Context, 'method' | 'path' | 'append'> {
  readonly req: RoutedRequest & Pick<IncomingMessage, 'headersDistinct'>;
}

/** A request that may be repeated. */
export interface KeyedRequest {
  readonly body: Pick<ReadBody<unknown>, 'normalized'>;
  readonly caller: Pick<Caller, 'actor'>;
}

/** What identifies a repeated request: its key, if it has one, and the hash of its body. */
export interface Keyed {
  /** The key, scoped by the actor, or null without a key. */
  readonly key: string | null;
  readonly keyHash: string | null;
  /** SHA-256 of the normalized body as canonical JSON: the service compares bodies as JSON values. */
  readonly bodyHash: string;
}

/**
 * The identity of a request that may be repeated. Callers do not share keys: the actor is part of the key.
 *
 * @throws {RequestRefused} 422 if the key is empty, too long, not visible ASCII, or sent more than once
 */
export function keyed(
  ctx: ActingRequest,
  { system: { sha256 }, canonical }: HttpContext,
  { body: { normalized }, caller }: KeyedRequest,
): Keyed {
  const key = idempotencyKey(ctx, caller);
  const bodyHash = sha256(canonical(normalized));
  return { key, keyHash: key === null ? null : sha256(key), bodyHash };
}

/** The line break separates key and actor unambiguously, because neither can contain one. */
function idempotencyKey(ctx: ActingRequest, { actor }: Pick<Caller, 'actor'>): string | null {
  const keys = ctx.req.headersDistinct[IDEMPOTENCY_KEY.toLowerCase()];
  if (keys === undefined) return null;
  const [key = ''] = keys;
  if (keys.length === 1 && new RegExp(KEY_PATTERN).test(key)) return actor === null ? key : `${key}\n${actor}`;
  const msg = 'Header should be given once and hold 1 to 255 visible ASCII characters';
  throw brokenRules([{ loc: ['header', IDEMPOTENCY_KEY], msg, type: 'value_error' }]);
}

/** The scope of a key: method, and path without its trailing slash, in one form of escaping. */
function keyScope(ctx: ActingRequest): { readonly method: string; readonly path: string } {
  const path = ctx.path.replace(/\/$/, '').split('/').map(normalizeEscapes).join('/');
  return { method: ctx.method, path };
}

function normalizeEscapes(part: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(part));
  } catch {
    return part;
  }
}
