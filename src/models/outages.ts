/** Outages of a model's server and rate limits, from the view of a call that waits them out. */
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';

/** An outage as it is recorded of a node that waits it out. */
export interface Outage {
  /** When the node first met it, ISO 8601. */
  readonly since: string;
  /** How long the node waits for the server from then on, in milliseconds. */
  readonly budgetMs: number;
}

/** How long a call waits an outage out. */
export interface OutageWait {
  readonly since: string;
  /** End of the outage's budget, on the monotonic clock: a wall clock that is behind does not prolong it. */
  readonly endsMs: number;
}

/** How long an outage is waited out from now on. */
export function outageWait(
  { since, budgetMs }: Outage,
  { now, monotonicMs }: Pick<System, 'now' | 'monotonicMs'>,
): OutageWait {
  const leftMs = Math.min(budgetMs, Date.parse(since) + budgetMs - Date.parse(now()));
  return { since, endsMs: monotonicMs() + leftMs };
}

/** The failure of a call that was not waiting out an outage: one begins for its node now, with this budget. */
export function outageMet(
  { message, data: { kind } }: ModelFailed,
  { outageMs, retryAfterMs }: { readonly outageMs: number; readonly retryAfterMs: number | undefined },
): ModelFailed {
  const wait = retryAfterMs !== undefined && { retryAfterMs };
  return new ModelFailed(message, { kind, retryable: true, outageMs: Math.round(outageMs), ...wait });
}

/** The failure of a call whose outage has outlasted its budget. */
export function outlasted(
  { message, data: { kind } }: ModelFailed,
  { model, since, now }: { readonly model: string; readonly since: string; readonly now: string },
): ModelFailed {
  const seconds = Math.max(0, Date.parse(now) - Date.parse(since)) / 1000;
  const state = kind === 'rate_limited' ? 'refused calls because of its rate limit' : 'was unreachable';
  const text = `Model "${model}" ${state} for ${seconds.toFixed(1)} s: ${message}`;
  return new ModelFailed(text, { kind, retryable: false });
}
