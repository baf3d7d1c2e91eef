/** API keys: add, list and revoke them; their record for auditors. */
import type { IncomingHttpHeaders } from 'node:http';
import type { KeyRequest as SentKey } from '../../generated/schemas.js';
import { KeyEnded, KeyNotFirst, KeyRefused, KeyUnknown } from '../../keys/errors.js';
import { KEYS_STREAM } from '../../keys/events.js';
import type { KeyRequest } from '../../keys/key-request.js';
import { expiryAt, expiryIn, scopesOf } from '../../keys/key-request.js';
import { outcomeUnknown, parameterIn } from '../route.js';
import { keyRecord, newKey } from '../../api/serializers/keys.js';
import { keyMissing, keyRefused } from '../../api/access/authentication.js';
import { RequestRefused, brokenRules } from '../../api/problems.js';
import { bodyOf } from '../body.js';
import { readBody } from '../chunked-body.js';
import { holdPermit, permitsFor } from '../concurrency.js';
import { queryOf } from '../query.js';
import { NDJSON, linesOf } from './audit.js';
import type { HttpContext, Route } from '../route.js';

/** Records sent at a time; each holds one chunk in memory. */
const RECORDS_AT_A_TIME = 4;

/** The routes at /api/keys. */
export function keyRoutes(http: HttpContext): readonly Route[] {
  return [listRoute(http), addRoute(http), revokeRoute(http), eventsRoute(http)];
}

function listRoute({ authenticator }: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/keys',
    access: ['admin', 'audit'],
    name: 'listKeys',
    summary: 'Lists all keys, revoked and expired ones too',
    description: 'The day of the last use of each key needs the scope `audit`.',
    tag: 'keys',
    success: { status: 200, description: 'The keys, without their texts', schema: 'key-list.json' },
    async handle(_, { scopes }) {
      const keys = authenticator.keys.list().map(keyRecord);
      const body = scopes.has('audit') ? keys : keys.map(({ last_used: _lastUsed, ...key }) => key);
      return { status: 200, body };
    },
  };
}

function addRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'key-request.json', { isRequired: true });
  const { authenticator, system, log } = http;
  return {
    method: 'POST',
    path: '/api/keys',
    access: 'admin',
    name: 'addKey',
    summary: 'Adds a key and returns its text, which no later answer contains',
    description:
      'The first key needs the scope `admin`. The service accepts it only on a loopback address, and not from a page or ' +
      'through a proxy. From then on every request needs a key, except health, the files of the console and the sign-in.',
    tag: 'keys',
    body,
    success: { status: 201, description: 'The key works at once', schema: 'new-key.json' },
    problems: [409],
    async handle(ctx, { actor }) {
      if (actor === null) assertFirstKeyAllowed(http, ctx.req.headers);
      const sent = await body.read(ctx);
      const added = await http.withinDeadline(
        withRefusals(
          async () => authenticator.keys.add(requested(sent, system.now()), { actor, isFirst: actor === null }),
          sent,
        ),
        outcomeUnknown(KEYS_STREAM),
      );
      const { name } = added.key;
      log.info({ key: name, scopes: [...added.key.scopes], actor }, 'key added');
      return { status: 201, body: newKey(added) };
    },
  };
}

/**
 * By adding the first key, a caller of a service without keys could lock out all others.
 *
 * @throws {RequestRefused} 403
 */
function assertFirstKeyAllowed({ isLoopback }: HttpContext, headers: IncomingHttpHeaders): void {
  // Pages send an origin and proxies their client's address: neither is a user of this machine.
  const isRemote = ['origin', 'forwarded', 'x-forwarded-for'].some((name) => headers[name] !== undefined);
  if (isLoopback && !isRemote) return;
  const detail =
    'Add the first key on the machine of the service: with "council keys add", or over HTTP if HOST is a loopback address, and not from a page or through a proxy';
  throw new RequestRefused(detail, { status: 403 });
}

/** @throws {KeyRefused} */
function requested({ name, scopes, expires_in: after, expires_at: at }: SentKey, now: string): KeyRequest {
  if (after !== undefined && at !== undefined) {
    throw new KeyRefused({ field: 'expires', reason: 'send expires_in or expires_at, not both' });
  }
  const expiresAt = after !== undefined ? expiryIn(after, now) : at !== undefined ? expiryAt(at) : null;
  return { name, scopes: scopesOf(scopes), expiresAt };
}

/** Turns errors of adding a key into refusals that name the field. @throws {RequestRefused} 401, 422 */
async function withRefusals<T>(add: () => Promise<T>, { expires_at: at }: SentKey): Promise<T> {
  try {
    return await unlessEnded(add);
  } catch (error) {
    // Another request has added the first key since the check.
    if (error instanceof KeyNotFirst) throw keyMissing();
    if (!(error instanceof KeyRefused)) throw error;
    const { field, reason } = error.data;
    const name = field !== 'expires' ? field : at === undefined ? 'expires_in' : 'expires_at';
    throw brokenRules([{ loc: ['body', name], msg: reason, type: 'value_error' }]);
  }
}

/** Turns the end of the caller's key since its check into a 401. @throws {RequestRefused} 401 */
async function unlessEnded<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    throw error instanceof KeyEnded ? keyRefused(error.data.end, error.data.name) : error;
  }
}

function revokeRoute(http: HttpContext): Route {
  return {
    method: 'DELETE',
    path: '/api/keys/{name}',
    access: 'admin',
    name: 'revokeKey',
    summary: 'Revokes a key and ends its sessions and open streams',
    tag: 'keys',
    success: { status: 204, description: 'The key is revoked, or was before', schema: null },
    async handle(ctx, { actor }) {
      const name = parameterIn(ctx, 'name');
      if (actor === null) throw new KeyUnknown({ name });
      const revoking = unlessEnded(() => http.authenticator.keys.revoke(name, actor));
      await http.withinDeadline(revoking, outcomeUnknown(KEYS_STREAM));
      http.log.info({ key: name, actor }, 'key revoked');
      return { status: 204, body: null };
    },
  };
}

function eventsRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'events-query.json');
  const permits = permitsFor(RECORDS_AT_A_TIME);
  const { keys } = http.authenticator;
  return {
    method: 'GET',
    path: '/api/keys/events',
    access: 'audit',
    name: 'listKeyEvents',
    summary: 'Lists the events of all keys in order, as stored',
    description: 'Their hashes form a chain, as those of a run do.',
    tag: 'keys',
    query,
    success: {
      status: 200,
      description: 'A page of the events',
      schema: 'key-events-page.json',
      alsoAs: {
        [NDJSON]: {
          description: 'All events, regardless of `from` and `limit`, one per line in canonical JSON (RFC 8785)',
          each: 'key-event.json',
        },
      },
    },
    async handle(ctx, caller) {
      const { from, limit } = query.read(ctx);
      ctx.vary('Accept');
      if (ctx.accepts('application/json', NDJSON) === NDJSON) {
        await holdPermit(permits, { http, caller }, ctx.res);
        const body = await readBody(linesOf(keys.events({ from: 0 })), { http, response: ctx.res });
        return { status: 200, body, type: NDJSON };
      }
      const events = await http.withinDeadline(collected(keys.events({ from, max: limit + 1 })));
      const next = events.length > limit ? from + limit : null;
      return { status: 200, body: { events: events.slice(0, limit), next } };
    },
  };
}

async function collected<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
