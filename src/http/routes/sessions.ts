/** Sessions for browsers, and tickets for clients that cannot send a header or cookie. */
import type { Context } from 'koa';
import type { Grant } from '../../keys/caller.js';
import { SESSION_MS } from '../../keys/sessions.js';
import { SESSION_COOKIE, grantOfKey } from '../../api/access/authentication.js';
import { isBehindTls } from '../../api/access/request-source.js';
import { clientOf } from '../../api/access/limits.js';
import { session } from '../../api/serializers/keys.js';
import type { Ticket } from '../../generated/schemas.js';
import { bodyOf } from '../body.js';
import { enforceLimits } from '../answering.js';
import type { HttpContext, Route } from '../route.js';

/** Largest body of a sign-in in bytes. It is small because a sign-in needs no key. */
const MAX_SIGN_IN_BYTES = 1024;

/** The routes at /api/session, and POST /api/tickets. */
export function sessionRoutes(http: HttpContext): readonly Route[] {
  return [signInRoute(http), whoRoute(), signOutRoute(http), ticketRoute(http)];
}

function signInRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'session-request.json', { isRequired: true, maxBytes: MAX_SIGN_IN_BYTES });
  const { authenticator } = http;
  return {
    method: 'POST',
    path: '/api/session',
    access: 'open',
    name: 'signIn',
    summary: 'Opens a session of 12 hours for a key, in a cookie that scripts cannot read',
    description: 'With the cookie, requests that change data and sockets must have this service as their Origin.',
    tag: 'keys',
    body,
    success: { status: 200, description: 'Signed in; the cookie is set', schema: 'session.json' },
    problems: [401, 429, 503],
    async handle(ctx) {
      const { key } = await body.read(ctx);
      const grant = await grantOfKey(key, ctx.req, http);
      enforceLimits(ctx, http.limits.signIn(clientOf(ctx.req, grant, http)));
      const opened = await http.withinDeadline(authenticator.signIn(grant));
      return { status: 200, body: session(opened.grant), headers: cookie(opened.text, ctx, http) };
    },
  };
}

function whoRoute(): Route {
  return {
    method: 'GET',
    path: '/api/session',
    access: 'key',
    name: 'getSession',
    summary: 'Returns the name and scopes of the caller',
    tag: 'keys',
    success: { status: 200, description: 'The caller', schema: 'session.json' },
    handle: async (_ctx, caller) => ({ status: 200, body: session(caller) }),
  };
}

function signOutRoute(http: HttpContext): Route {
  return {
    method: 'DELETE',
    path: '/api/session',
    access: 'key',
    name: 'signOut',
    summary: 'Ends the session, on every instance',
    tag: 'keys',
    success: { status: 204, description: 'The session has ended; the cookie is removed', schema: null },
    async handle(ctx, { session: sessionId }: Grant) {
      if (sessionId !== null) await http.withinDeadline(http.authenticator.sessions.signOut(sessionId));
      return { status: 204, body: null, headers: cookie(null, ctx, http) };
    },
  };
}

/** @param text of a session, or null to remove the cookie */
function cookie(
  text: string | null,
  { req }: Pick<Context, 'req'>,
  { trustedProxies, basePath }: HttpContext,
): Readonly<Record<string, string>> {
  const lifetime = text === null ? 0 : SESSION_MS / 1_000;
  const attributes = [`Path=${basePath === '' ? '/' : basePath}`, `Max-Age=${lifetime}`, 'HttpOnly', 'SameSite=Strict'];
  if (isBehindTls(req, trustedProxies)) attributes.push('Secure');
  return { 'Set-Cookie': [`${SESSION_COOKIE}=${text ?? ''}`, ...attributes].join('; ') };
}

function ticketRoute(http: HttpContext): Route {
  return {
    method: 'POST',
    path: '/api/tickets',
    access: 'key',
    name: 'issueTicket',
    summary: 'Issues a ticket that opens one socket or event stream within 30 seconds',
    description: 'For clients that cannot send a header or cookie there: send it as `?ticket=`.',
    tag: 'keys',
    success: { status: 201, description: 'The ticket, which works once', schema: 'ticket.json' },
    async handle(_ctx, caller) {
      const { text, expiresAt } = await http.withinDeadline(http.authenticator.tickets.issue(caller));
      const body: Ticket = { ticket: text, expires_at: expiresAt };
      return { status: 201, body };
    },
  };
}
