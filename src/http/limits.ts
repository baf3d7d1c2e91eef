/** Applies the limits to REST requests and to the starts of runs. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { RoutedRequest } from '../api/access/client-address.js';
import type { LimitCheck } from '../api/access/limits.js';
import { clientOf } from '../api/access/limits.js';
import type { RunFailedData, RunRequestedData } from '../generated/schemas.js';
import type { Caller } from '../keys/caller.js';
import type { HttpContext } from './route.js';

/** Adds the limits' headers to the answer. @throws {RequestRefused} 429 */
export function enforceLimits(ctx: Pick<Context, 'append'>, { fields, refusal }: LimitCheck): void {
  // Appends, because a start is checked against its limits too (RFC 9651, section 3.1, allows split lists).
  for (const [name, value] of Object.entries(fields)) ctx.append(name, value);
  if (refusal !== null) throw refusal;
}

/** The parts of a request that starts a run or decides a pause. A call of a tool has them too. */
export interface ActingRequest extends Pick<Context, 'method' | 'path' | 'append'> {
  readonly req: RoutedRequest & Pick<IncomingMessage, 'headersDistinct'>;
}

/** The request of a new run, before it is recorded. */
export interface BuiltRequest {
  readonly request: RunRequestedData;
  /** The failure of a run that cannot start, or null. */
  readonly failure: RunFailedData | null;
}

/** The request that starts a run, and its caller. */
export interface StartContext {
  readonly ctx: ActingRequest;
  readonly http: Pick<HttpContext, 'limits' | 'trustedProxies' | 'registry'>;
  readonly caller: Caller;
}

/**
 * Records a start under the limits, or a run that cannot begin; counts it only if this request started it.
 *
 * @returns the recorded request: of this start, or of an equal one that came first
 * @throws {RequestRefused} 429
 */
export async function recordStart(
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
