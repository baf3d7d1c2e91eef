/** Applies the limits to REST requests: the headers of answers, and the starts of runs. */
import type { Context } from 'koa';
import type { LimitCheck } from '../api/access/limits.js';
import { clientOf } from '../api/access/limits.js';
import type { RunRequestedData } from '../generated/schemas.js';
import type { Caller } from '../keys/caller.js';
import type { HttpContext } from './route.js';

/** Adds the limits' headers to the answer. @throws {RequestRefused} 429 */
export function enforceLimits(ctx: Context, { fields, refusal }: LimitCheck): void {
  // A start passes through here twice, for different limits: a list may be split over lines (RFC 9651, section 3.1).
  for (const [name, value] of Object.entries(fields)) ctx.append(name, value);
  if (refusal !== null) throw refusal;
}

/** A request for a run, and its caller. */
export interface Starter {
  readonly ctx: Context;
  readonly http: Pick<HttpContext, 'limits' | 'trustedProxies'>;
  readonly caller: Caller;
}

/** Starts a run under the limits; it is not counted when nothing was started. @throws {RequestRefused} 429 */
export async function startWithin(
  { ctx, http, caller }: Starter,
  requested: RunRequestedData,
  start: () => Promise<RunRequestedData>,
): Promise<RunRequestedData> {
  const check = http.limits.run(clientOf(ctx.req, caller, http), requested.runId);
  enforceLimits(ctx, check);
  let begun: RunRequestedData | null = null;
  try {
    return (begun = await start());
  } finally {
    // It failed, or an equal request was quicker.
    if (begun !== requested) check.uncount();
  }
}
