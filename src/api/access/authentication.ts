/** Identifies the sender of a request by key, session or ticket, and checks its scope. */
import type { Authenticator, Found, KeyGrant, Refusal } from '../../keys/authenticator.js';
import type { RunRequestedData } from '../../generated/schemas.js';
import type { Access, Caller, Grant, Scope } from '../../keys/caller.js';
import { ANYONE } from '../../keys/caller.js';
import type { FailedKeys } from '../../keys/failed-keys.js';
import type { AddressList } from '../../system/addresses.js';
import { networkOf } from '../../system/addresses.js';
import type { RoutedRequest, SourcedRequest } from './request-source.js';
import { clientAddress, hasOwnOrigin } from './request-source.js';
import type { AccessReason } from './access-refused.js';
import { AccessRefused } from './access-refused.js';

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

/** What a request needs from its caller. */
export interface AccessRequirement {
  readonly access: Access;
  /** Whether the request only reads: then a session suffices without a check of its Origin. */
  readonly isReading: boolean;
  /** Whether a ticket is accepted, as for sockets and event streams. */
  readonly takesTicket: boolean;
  /** Whether it needs a caller even while the service has no keys. Default: false. */
  readonly isClosed?: boolean;
}

/**
 * Identifies the sender. A key wins over a ticket, and a ticket over a cookie, which browsers send by themselves.
 *
 * @throws {AccessRefused} 401, 403, 429
 * @throws {KeysCorrupt | LogUnavailable | TooManyLookups}
 */
export async function authenticate(
  request: SignedRequest,
  { access, isReading, takesTicket, isClosed = false }: AccessRequirement,
  rules: AuthenticationRules,
): Promise<Grant> {
  if (access === 'open' || (rules.authenticator.isOpen && !isClosed)) return ANYONE;
  const grant = await grantOf(request, { isReading, takesTicket }, rules);
  assertScope(grant, access);
  return grant;
}

async function grantOf(
  request: SignedRequest,
  { isReading, takesTicket }: Pick<AccessRequirement, 'isReading' | 'takesTicket'>,
  rules: AuthenticationRules,
): Promise<Grant> {
  const { authenticator } = rules;
  const key = bearerIn(request);
  if (key !== null) return await grantOfKey(key, request, rules);
  const ticket = takesTicket ? ticketIn(request) : null;
  if (ticket !== null) return grantIn(await authenticator.byTicket(ticket), 'ticket');
  const session = sessionIn(request);
  if (session === null) throw keyMissing();
  if (!isReading && !hasOwnOrigin(request)) throw new AccessRefused(NO_ORIGIN, { reason: 'origin' });
  return grantIn(await authenticator.bySession(session), 'session');
}

/** The grant of a key. @throws {AccessRefused} 401, or 429 after too many failed keys from this address */
export async function grantOfKey(
  key: string,
  request: RoutedRequest,
  { authenticator, failedKeys, trustedProxies }: AuthenticationRules,
): Promise<KeyGrant> {
  const found = await authenticator.byKey(key);
  if (found.grant !== null) return found.grant;
  const waitSeconds = failedKeys.failed(networkOf(clientAddress(request, trustedProxies)));
  if (waitSeconds === null) throw keyRefused(found.refusal, found.actor);
  const headers = { 'Retry-After': String(waitSeconds) };
  const about = { reason: 'failures', actor: found.actor, headers } as const;
  throw new AccessRefused('Too many invalid keys from this address; a valid key still works', about);
}

/** The refusal of a request without a key. */
export function keyMissing(): AccessRefused {
  return unauthenticated('A key is required: send it as "Authorization: Bearer …"', { reason: 'key_missing' });
}

/** The refusal of a request whose key is not valid. @param actor name of the key, or null if it is unknown */
export function keyRefused(refusal: Refusal, actor: string | null): AccessRefused {
  return unauthenticated(REFUSALS.key[refusal], { reason: `key_${refusal}`, actor });
}

/** The text of the session in a request's cookies, or null without one. */
function sessionIn({ headers: { cookie = '' } }: Pick<SignedRequest, 'headers'>): string | null {
  const prefix = `${SESSION_COOKIE}=`;
  const found = cookie.split(';').find((each) => each.trim().startsWith(prefix));
  return found === undefined ? null : found.trim().slice(prefix.length);
}

/** What follows `Authorization: Bearer`, or null without it. */
export function bearerIn({
  headers: { authorization = '' },
}: {
  readonly headers: Pick<SignedRequest['headers'], 'authorization'>;
}): string | null {
  // Another scheme may be meant for a proxy in front of the service.
  return /^bearer +(\S.*)$/i.exec(authorization)?.[1]?.trim() ?? null;
}

function ticketIn({ url = '' }: SignedRequest): string | null {
  const mark = url.indexOf('?');
  return mark < 0 ? null : new URLSearchParams(url.slice(mark + 1)).get('ticket');
}

const NO_ORIGIN = 'With a session, a request that changes data or opens a socket must have this service as its Origin';

const REFUSALS: Readonly<Record<'key' | 'session' | 'ticket', Readonly<Record<Refusal, string>>>> = {
  key: {
    unknown: 'The key is unknown',
    revoked: 'The key was revoked',
    expired: 'The key has expired',
  },
  session: {
    unknown: 'The session has ended: sign in again',
    revoked: 'The key of this session was revoked',
    expired: 'The key of this session has expired',
  },
  ticket: {
    unknown: 'The ticket is unknown, used or expired: request another',
    revoked: 'The key of this ticket was revoked',
    expired: 'The key of this ticket has expired',
  },
};

/** @throws {AccessRefused} 401 */
function grantIn(found: Found, by: 'session' | 'ticket'): KeyGrant {
  if (found.grant !== null) return found.grant;
  throw unauthenticated(REFUSALS[by][found.refusal], { reason: `${by}_${found.refusal}`, actor: found.actor });
}

/** A 401 with the header of RFC 6750, section 3. */
function unauthenticated(
  detail: string,
  about: { readonly reason: AccessReason; readonly actor?: string | null },
): AccessRefused {
  const challenge = about.reason === 'key_missing' ? CHALLENGE : `${CHALLENGE}, error="invalid_token"`;
  return new AccessRefused(detail, { ...about, headers: { 'WWW-Authenticate': challenge } });
}

const CHALLENGE = 'Bearer realm="council-run-service"';

/** @throws {AccessRefused} 403 */
export function assertScope(
  { actor, scopes }: Pick<Caller, 'actor' | 'scopes'>,
  access: Exclude<Access, 'open'>,
): void {
  const accepted = scopesOf(access);
  if (accepted.length === 0 || accepted.some((scope) => scopes.has(scope))) return;
  const named = accepted.map((scope) => `"${scope}"`).join(' or ');
  const challenge = `${CHALLENGE}, error="insufficient_scope", scope="${accepted.join(' ')}"`;
  const headers = { 'WWW-Authenticate': challenge };
  throw new AccessRefused(`The key lacks the scope ${named}`, { reason: 'scope', actor, headers });
}

/**
 * Whether a caller may read a run: with the scope `read` every run, with `run` alone those that its key has started. Ask it in
 * each route of the scope `run` whose answer shows something of a run (contract, section 5).
 */
export function mayRead({ actor, scopes }: Caller, run: Pick<RunRequestedData, 'actor'>): boolean {
  return scopes.has('read') || (actor !== null && actor === run.actor);
}

/** @throws {AccessRefused} 403 if the caller may not read the run */
export function assertMayRead(caller: Caller, run: Pick<RunRequestedData, 'actor'>): void {
  if (!mayRead(caller, run)) assertScope(caller, 'read');
}

/** The scopes of which a key needs one; an empty list if any key suffices. */
export function scopesOf(access: Exclude<Access, 'open'>): readonly Scope[] {
  if (access === 'key') return [];
  return typeof access === 'string' ? [access] : access;
}
