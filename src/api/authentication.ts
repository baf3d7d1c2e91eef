/** Identifies the sender of a request by key, session or ticket, and checks its scope. */
import type { Authenticator, Found, KeyGrant, Refusal } from '../keys/authenticator.js';
import type { Access, Grant, Scope } from '../keys/caller.js';
import { ANYONE } from '../keys/caller.js';
import type { FailedKeys } from '../keys/failed-keys.js';
import type { AddressList } from '../system/address-list.js';
import { networkOf } from '../system/host-name.js';
import type { RoutedRequest } from './client-address.js';
import { clientAddress } from './client-address.js';
import { RequestRefused } from './problems.js';
import type { SourcedRequest } from './request-source.js';
import { hasOwnOrigin } from './request-source.js';

/** Name of the cookie that holds a session. */
export const SESSION_COOKIE = 'council_session';

export interface AuthenticationRules {
  readonly authenticator: Pick<Authenticator, 'isOpen' | 'byKey' | 'bySession' | 'byTicket'>;
  readonly failedKeys: FailedKeys;
  readonly trustedProxies: AddressList;
}

/** The parts of a request that name its sender. */
export interface SignedRequest extends RoutedRequest, SourcedRequest {
  readonly headers: RoutedRequest['headers'] &
    SourcedRequest['headers'] & {
      readonly authorization?: string | undefined;
      readonly cookie?: string | undefined;
    };
}

/** What a request needs. */
export interface Wanted {
  readonly access: Access;
  /** Whether the request is safe: read-only, its answer not shared. Then a cookie suffices without a check of Origin. */
  readonly isReading: boolean;
  /** Whether a ticket may be used, as for sockets and event streams. */
  readonly takesTicket: boolean;
}

/**
 * Identifies the sender. A key is preferred to a ticket, a ticket to a cookie, which browsers send by themselves.
 *
 * @throws {RequestRefused} 401, 403, 429
 * @throws {KeysCorrupt | LogUnavailable | TooManyLookups}
 */
export async function authenticate(
  request: SignedRequest,
  { access, isReading, takesTicket }: Wanted,
  rules: AuthenticationRules,
): Promise<Grant> {
  if (access === 'open' || rules.authenticator.isOpen) return ANYONE;
  const grant = await granted(request, { isReading, takesTicket }, rules);
  assertScope(grant, access);
  return grant;
}

async function granted(
  request: SignedRequest,
  { isReading, takesTicket }: Omit<Wanted, 'access'>,
  rules: AuthenticationRules,
): Promise<Grant> {
  const { authenticator } = rules;
  const key = bearerIn(request);
  if (key !== null) return await grantOfKey(key, request, rules);
  const ticket = takesTicket ? ticketIn(request) : null;
  if (ticket !== null) return grantIn(await authenticator.byTicket(ticket), TICKET_REFUSALS);
  const session = sessionIn(request);
  if (session === null) throw keyNeeded();
  if (!isReading && !hasOwnOrigin(request)) throw new RequestRefused(NO_ORIGIN, { status: 403 });
  return grantIn(await authenticator.bySession(session), SESSION_REFUSALS);
}

/** The grant of a key. @throws {RequestRefused} 401, or 429 after too many failed keys from this address */
export async function grantOfKey(
  key: string,
  request: RoutedRequest,
  { authenticator, failedKeys, trustedProxies }: AuthenticationRules,
): Promise<KeyGrant> {
  const found = await authenticator.byKey(key);
  if (found.grant !== null) return found.grant;
  const waitSeconds = failedKeys.failed(networkOf(clientAddress(request, trustedProxies)));
  if (waitSeconds === null) throw keyRefused(found.refusal);
  const headers = { 'Retry-After': String(waitSeconds) };
  throw new RequestRefused('Too many keys from this address have failed: a valid one is let in', {
    status: 429,
    headers,
  });
}

/** The refusal of a request without a key. */
export function keyNeeded(): RequestRefused {
  return unauthenticated('A key is needed: send it as "Authorization: Bearer …"');
}

/** The refusal of a request whose key is not valid. */
export function keyRefused(refusal: Refusal): RequestRefused {
  return unauthenticated(KEY_REFUSALS[refusal], INVALID);
}

/** The text of the session in a request's cookies; null: there is none. */
function sessionIn({ headers: { cookie = '' } }: Pick<SignedRequest, 'headers'>): string | null {
  const prefix = `${SESSION_COOKIE}=`;
  const found = cookie.split(';').find((each) => each.trim().startsWith(prefix));
  return found === undefined ? null : found.trim().slice(prefix.length);
}

function bearerIn({ headers: { authorization = '' } }: SignedRequest): string | null {
  // Another scheme may be a proxy's before this service.
  return /^bearer +(\S.*)$/i.exec(authorization)?.[1]?.trim() ?? null;
}

function ticketIn({ url = '' }: SignedRequest): string | null {
  const mark = url.indexOf('?');
  return mark < 0 ? null : new URLSearchParams(url.slice(mark + 1)).get('ticket');
}

const NO_ORIGIN = 'With a session, a request that changes something or opens a socket needs this service as its Origin';

const KEY_REFUSALS: Readonly<Record<Refusal, string>> = {
  unknown: 'The key is unknown',
  revoked: 'The key was revoked',
  expired: 'The key has expired',
};

const SESSION_REFUSALS: Readonly<Record<Refusal, string>> = {
  unknown: 'The session is over: sign in again',
  revoked: 'The key of this session was revoked',
  expired: 'The key of this session has expired',
};

const TICKET_REFUSALS: Readonly<Record<Refusal, string>> = {
  unknown: 'The ticket is unknown, used up or has expired: ask for another',
  revoked: 'The key of this ticket was revoked',
  expired: 'The key of this ticket has expired',
};

/** @throws {RequestRefused} 401 */
function grantIn(found: Found, details: Readonly<Record<Refusal, string>>): KeyGrant {
  if (found.grant !== null) return found.grant;
  throw unauthenticated(details[found.refusal], INVALID);
}

const INVALID = 'error="invalid_token"';

/** Headers as RFC 6750, section 3, has them. */
function unauthenticated(detail: string, parameter?: string): RequestRefused {
  const challenge = parameter === undefined ? CHALLENGE : `${CHALLENGE}, ${parameter}`;
  return new RequestRefused(detail, { status: 401, headers: { 'WWW-Authenticate': challenge } });
}

const CHALLENGE = 'Bearer realm="council-run-service"';

/** @throws {RequestRefused} 403 */
function assertScope({ scopes }: Grant, access: Exclude<Access, 'open'>): void {
  const wanted = scopesOf(access);
  if (wanted.length === 0 || wanted.some((scope) => scopes.has(scope))) return;
  const named = wanted.map((scope) => `"${scope}"`).join(' or ');
  const challenge = `${CHALLENGE}, error="insufficient_scope", scope="${wanted.join(' ')}"`;
  throw new RequestRefused(`The key lacks the scope ${named}`, {
    status: 403,
    headers: { 'WWW-Authenticate': challenge },
  });
}

/** The scopes of which a key needs one; none: any key will do. */
export function scopesOf(access: Exclude<Access, 'open'>): readonly Scope[] {
  if (access === 'key') return [];
  return typeof access === 'string' ? [access] : access;
}
