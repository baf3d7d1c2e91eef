/**
 * What a failed request may have cost. Providers bill the work of a model, so a request is free if it never arrived, or if
 * the server refused it before a model worked on it: by its form, key or account, by a rate limit, or because the server
 * is out (503, 529). Any other failure may have been billed: a connection or a stream that broke, a gateway that lost the
 * answer (502, 504), an error of the server (500), no answer in time, an answer that cannot be used.
 *
 * A request that may have been billed and is made again within the same attempt counts as a call of its own
 * (`ModelRequest.beforeRepeat`). One that is free shares the reservation of its repeat. An attempt that fails counts as its
 * reservation even if its request was refused, because its usage is unknown, but costs nothing if no request arrived.
 */
import type { ModelFailureKind, ModelFault } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { CancelSignal } from '../system/async/deadline.js';
import type { ModelRequest } from './port.js';
import { callAborted } from './port.js';

/** Whether a request that failed may have been billed. */
export function mayBeBilled({ kind, usage }: ModelFault): boolean {
  return usage !== undefined || !(NOT_ARRIVED.has(kind) || REFUSED.has(kind));
}

/** Whether no request has arrived at a server: none was sent, or no connection came about. */
export function isUnsent({ kind, isUnsent: known }: ModelFault): boolean {
  return known ?? NOT_ARRIVED.has(kind);
}

/** The same failure of a call of which a request has arrived, or none. */
export function withSending(failure: ModelFailed, isUnsent: boolean): ModelFailed {
  return isUnsent === NOT_ARRIVED.has(failure.data.kind)
    ? failure
    : new ModelFailed(failure.message, { ...failure.data, isUnsent });
}

/** Settles a request that has failed and is made again. Rejects if it may not be made again, or was aborted by the signal. */
export async function settleRequest(
  { beforeRepeat }: ModelRequest,
  error: unknown,
  signal: CancelSignal,
): Promise<void> {
  if (!(error instanceof ModelFailed) || !mayBeBilled(error.data)) return;
  await beforeRepeat?.(error.data.usage ?? null);
  if (signal.aborted) throw callAborted(signal);
}

const NOT_ARRIVED: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  'connection_refused',
  'host_unknown',
  'unreachable',
  'tls_failed',
  'model_unusable',
  'not_configured',
]);

const REFUSED: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  ...(['bad_request', 'input_too_large', 'http_error', 'redirected', 'not_implemented', 'model_unknown'] as const),
  ...(['unauthorized', 'forbidden', 'quota_used_up', 'rate_limited', 'unavailable', 'overloaded'] as const),
]);
