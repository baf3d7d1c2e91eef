/** The Idempotency-Key: requests with the same key count once, however often they are sent. */
import type { Context } from 'koa';
import type { ReadBody } from './body.js';
import { brokenRules } from '../api/problems.js';
import type { HttpContext } from './route.js';
import type { RouterContext } from '@koa/router';
import { AppendOutcomeUnknown } from '../eventlog/errors.js';
import type { RunFailedData, RunRequestedData } from '../generated/schemas.js';
import { runStream } from '../run/events.js';
import type { RunRequest } from '../run/request.js';
import { keyedRunId } from '../run/request.js';
import type { Answer } from './answer.js';
import type { Caller } from '../keys/caller.js';
import type { Starter } from './limits.js';
import { startWithin } from './limits.js';
import { runStart } from '../api/serializers/runs.js';

/** Name of the header. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** 1 to 255 visible ASCII characters, as a pattern of JSON Schema. */
export const KEY_PATTERN = '^[\\x21-\\x7e]{1,255}$';

/** How a repeated request is recognised: by its key, when it has one, and by the hash of its body. */
export interface Keyed {
  /** With the name of the actor, where there is one. */
  readonly key: string | null;
  /** SHA-256 of the key, scoped by the actor. */
  readonly keyHash: string | null;
  /** SHA-256 of the normalized body as canonical JSON: bodies are compared as JSON values. */
  readonly bodyHash: string;
  /** SHA-256 of the body as it was sent, which is what earlier versions recorded. */
  readonly sentHash: string;
}

/**
 * What makes a request repeatable. Callers do not share their keys: with an actor the key is scoped by it.
 *
 * @throws {RequestRefused} 422 when the key is empty, too long, not visible ASCII, or sent more than once
 */
export function keyed(
  ctx: Context,
  { system: { sha256 }, canonical }: HttpContext,
  { body: { normalized, sent }, caller }: KeyedRequest,
): Keyed {
  const key = idempotencyKey(ctx, caller);
  const bodyHash = sha256(canonical(normalized));
  // Without a key nothing is compared.
  if (key === null) return { key, keyHash: null, bodyHash, sentHash: bodyHash };
  return { key, keyHash: sha256(key), bodyHash, sentHash: sha256(canonical(sent)) };
}

/** A request that may be repeated. */
export interface KeyedRequest {
  readonly body: Pick<ReadBody<unknown>, 'normalized' | 'sent'>;
  readonly caller: Pick<Caller, 'actor'>;
}

/** The separator is unambiguous: neither part can hold a line break. */
function idempotencyKey(ctx: Context, { actor }: Pick<Caller, 'actor'>): string | null {
  const keys = ctx.req.headersDistinct[IDEMPOTENCY_KEY.toLowerCase()];
  if (keys === undefined) return null;
  const [key = ''] = keys;
  if (keys.length === 1 && new RegExp(KEY_PATTERN).test(key)) return actor === null ? key : `${key}\n${actor}`;
  const msg = 'Header should be given once and hold 1 to 255 visible ASCII characters';
  throw brokenRules([{ loc: ['header', IDEMPOTENCY_KEY], msg, type: 'value_error' }]);
}

/** What a key is scoped by: method, and path without trailing slash, however its characters are escaped. */
function keyScope(ctx: Context): { readonly method: string; readonly path: string } {
  const path = ctx.path.replace(/\/$/, '').split('/').map(escapedOnce).join('/');
  return { method: ctx.method, path };
}

function escapedOnce(part: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(part));
  } catch {
    return part;
  }
}

// Starts of runs.

/** The id and the hashes by which the run of a repeated request is found, and the caller's key name. */
export type RunKey = Pick<RunRequest, 'runId' | 'keyHash' | 'bodyHash' | 'actor'>;

/** The first facts of a run. */
export interface Beginning {
  readonly requested: RunRequestedData;
  /** The failure the run begins with; null: none. */
  readonly failure: RunFailedData | null;
}

export interface Start {
  /** The request's body. */
  readonly request: ReadBody<unknown>;
  readonly caller: Caller;
  /** Called for the first of equal requests only. */
  readonly begin: (run: RunKey) => Beginning | Promise<Beginning>;
}

/** The answer to a start. A repeated one is answered before anything else is looked at, the blueprint too. */
export async function startOnce(
  ctx: RouterContext,
  http: HttpContext,
  { request, caller, begin }: Start,
): Promise<Answer> {
  const { key, keyHash, bodyHash, sentHash } = keyed(ctx, http, { body: request, caller });
  const { uuid, sha256 } = http.system;
  const runId = key === null ? uuid() : keyedRunId({ ...keyScope(ctx), key }, sha256);
  const run = { runId, keyHash, bodyHash, actor: caller.actor };
  const begun = await http.inTime(
    started({ ctx, http, caller }, { run, sentHash, begin }),
    outcomeUnknown(runStream(runId)),
  );
  return { status: 202, body: runStart(begun) };
}

async function started(
  starter: Starter & { readonly http: HttpContext },
  { run, sentHash, begin }: Pick<Start, 'begin'> & { readonly run: RunKey; readonly sentHash: string },
): Promise<RunRequestedData> {
  const { registry, log } = starter.http;
  const { runId, keyHash, bodyHash } = run;
  const repeated = keyHash === null ? null : await registry.findRequest(runId, [bodyHash, sentHash]);
  if (repeated !== null) return repeated;
  const { requested, failure } = await begin(run);
  const begun = await startWithin(starter, requested, () =>
    failure === null ? registry.start(requested) : registry.refuse(requested, failure),
  );
  if (begun === requested) log.info({ runId, blueprintId: requested.blueprintId }, 'run requested');
  return begun;
}

/** The error for a request whose append to a stream the log has not acknowledged in time. */
export function outcomeUnknown(stream: string): () => AppendOutcomeUnknown {
  return () => new AppendOutcomeUnknown({ stream });
}
