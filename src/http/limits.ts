/** Applies the limits to REST requests and to the starts of runs. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { RoutedRequest } from '../api/access/client-address.js';
import type { LimitCheck } from '../api/access/limits.js';
import { clientOf } from '../api/access/limits.js';
import type { RunRequestedData } from '../generated/schemas.js';
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

/** The request that starts a run, and its caller. */
export interface StartContext {
  readonly ctx: ActingRequest;
  readonly http: Pick<HttpContext, 'limits' | 'trustedProxies'>;
  readonly caller: Caller;
}

/** Starts a run under the limits, and counts it only if this request started it. @throws {RequestRefused} 429 */
export async function startWithinLimits(
  { ctx, http, caller }: StartContext,
  request: RunRequestedData,
  start: () => Promise<RunRequestedData>,
): Promise<RunRequestedData> {
  const check = http.limits.run(clientOf(ctx.req, caller, http), request.runId);
  enforceLimits(ctx, check);
  let recorded: RunRequestedData | null = null;
  try {
    return (recorded = await start());
  } finally {
    // The start failed, or an equal request came first.
    if (recorded !== request) check.uncount();
  }
}
