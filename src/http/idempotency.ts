/** The Idempotency-Key: repeated requests with the same key take effect once. */
import type { ReadBody } from './body.js';
import { brokenRules } from '../api/problems.js';
import { assertPriced } from './budget.js';
import type { HttpContext } from './route.js';
import { AppendOutcomeUnknown } from '../eventlog/errors.js';
import type { RunRequestedData, RunStart } from '../generated/schemas.js';
import { runStream } from '../run/events.js';
import type { RunParameters } from '../run/request.js';
import { keyedRunId } from '../run/request.js';
import type { Answer } from './answer.js';
import type { Caller } from '../keys/caller.js';
import type { ActingRequest, BuiltRequest } from './limits.js';
import { recordStart } from './limits.js';
import { runStart } from '../api/serializers/runs.js';

/** Name of the header. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** 1 to 255 visible ASCII characters, as a pattern of JSON Schema. */
export const KEY_PATTERN = '^[\\x21-\\x7e]{1,255}$';

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

/** A request that may be repeated. */
export interface KeyedRequest {
  readonly body: Pick<ReadBody<unknown>, 'normalized'>;
  readonly caller: Pick<Caller, 'actor'>;
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

// Starts of runs.

/** The id of the run, the hashes that identify a repeated request, and the name of the caller. */
export type RunIdentity = Pick<RunParameters, 'runId' | 'keyHash' | 'bodyHash' | 'actor'>;

export interface StartOptions {
  readonly body: ReadBody<unknown>;
  readonly caller: Caller;
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
  const { caller, buildRequest } = options;
  const { key, keyHash, bodyHash } = keyed(ctx, http, options);
  // 1. The id of the run: derived from the key, so that equal starts are appends to one stream.
  const scope = key === null ? null : { ...keyScope(ctx), key };
  const secret = scope === null ? null : await withinDeadline(authenticator.idSecret.read());
  const runId = scope === null ? uuid() : keyedRunId(scope, secret, sha256);
  const run = { runId, keyHash, bodyHash, actor: caller.actor };
  const recording = async (): Promise<RunRequestedData> => {
    // 2. A run that the key has started before, also under the id that earlier versions gave it.
    const ids = scope === null ? [] : [runId, keyedRunId(scope, null, sha256)];
    const found = await Promise.all(ids.map((id) => registry.findRequest(id, bodyHash)));
    const repeated = found.find((each) => each !== null) ?? null;
    if (repeated !== null) return repeated;
    // 3. Else a new run.
    const built = await buildRequest(run);
    assertPriced(built.request, http);
    const recorded = await recordStart({ ctx, http, caller }, built);
    if (recorded === built.request) http.log.info({ runId, blueprintId: recorded.blueprintId }, 'run requested');
    return recorded;
  };
  return { status: 202, body: runStart(await withinDeadline(recording(), outcomeUnknown(runStream(runId)))) };
}

/** The error of a request if the log has not acknowledged its append to a stream in time. */
export function outcomeUnknown(stream: string): () => AppendOutcomeUnknown {
  return () => new AppendOutcomeUnknown({ stream });
}
