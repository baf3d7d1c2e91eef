/** Refusals of callers: why, and how an operator learns of them. */
import type { Refusal } from '../../keys/authenticator.js';
import { networkOf } from '../../system/addresses.js';
import type { AddressList } from '../../system/addresses.js';
import type { Logger } from '../../system/logger.js';
import type { System } from '../../system/system.js';
import { RequestRefused } from '../problems.js';
import type { RoutedRequest } from './request-source.js';
import { clientAddress } from './request-source.js';

/** Why a caller is refused; a label of a metric. `failures`: too many failed keys from its address. */
export type AccessReason =
  | `${'key' | 'session' | 'ticket'}_${Refusal}`
  | 'key_missing'
  | 'failures'
  | 'origin'
  | 'scope';

/** Every reason, with the status of its answer. */
export const ACCESS_STATUSES: Readonly<Record<AccessReason, 401 | 403 | 429>> = {
  key_missing: 401,
  key_unknown: 401,
  key_revoked: 401,
  key_expired: 401,
  failures: 429,
  session_unknown: 401,
  session_revoked: 401,
  session_expired: 401,
  ticket_unknown: 401,
  ticket_revoked: 401,
  ticket_expired: 401,
  origin: 403,
  scope: 403,
};

/** A request whose sender is not authenticated, or lacks a scope. */
export class AccessRefused extends RequestRefused {
  readonly reason: AccessReason;
  /** Name of the key, or null if it is unknown. */
  readonly actor: string | null;

  constructor(
    detail: string,
    {
      reason,
      actor = null,
      headers = {},
    }: {
      readonly reason: AccessReason;
      readonly actor?: string | null;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ) {
    super(detail, { status: ACCESS_STATUSES[reason], headers });
    this.reason = reason;
    this.actor = actor;
  }
}

/** Time in which the refusals of one address make one log line, in milliseconds. */
const LINE_MS = 60_000;
/** Log lines in that time: the refusals of further addresses are counted alone. */
const MAX_LINES = 1_000;

export interface AccessReportDeps {
  readonly trustedProxies: AddressList;
  readonly system: Pick<System, 'monotonicMs'>;
  readonly logger: Pick<Logger, 'info'>;
  readonly count: (reason: AccessReason) => void;
}

/**
 * Returns a function that counts each refusal, and logs one line for each address (of IPv6: network) and minute. A line
 * names the key if it is known, and never holds what the client sent.
 */
export function accessReport({
  trustedProxies,
  system,
  logger,
  count,
}: AccessReportDeps): (refused: AccessRefused, request: RoutedRequest) => void {
  const logged = new Set<string>();
  let endsMs = Number.NEGATIVE_INFINITY;
  return ({ reason, actor, data: { status } }, request) => {
    count(reason);
    const nowMs = system.monotonicMs();
    if (nowMs >= endsMs) {
      logged.clear();
      endsMs = nowMs + LINE_MS;
    }
    const address = networkOf(clientAddress(request, trustedProxies));
    if (logged.has(address) || logged.size >= MAX_LINES) return;
    logged.add(address);
    const key = actor === null ? {} : { key: actor };
    logger.info({ address, reason, status, ...key }, 'access: refused a request; more from this address: see /metrics');
  };
}
