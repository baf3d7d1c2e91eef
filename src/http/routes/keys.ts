/** The keys of a service: added, listed, revoked, and their record for auditors. */
import type { IncomingHttpHeaders } from 'node:http';
import type { KeyRequest as SentKey } from '../../generated/schemas.js';
import { KeyEnded, KeyNotFirst, KeyRefused, KeyUnknown } from '../../keys/errors.js';
import { KEYS_STREAM } from '../../keys/events.js';
import type { KeyRequest } from '../../keys/key-request.js';
import { expiryAt, expiryIn, scopesOf } from '../../keys/key-request.js';
import { outcomeUnknown } from '../idempotency.js';
import { keyRecord, newKey } from '../../api/serializers/keys.js';
import { keyMissing, keyRefused } from '../../api/access/authentication.js';
import { RequestRefused, brokenRules } from '../../api/problems.js';
import { bodyOf } from '../body.js';
import { readBody } from '../chunked-body.js';
import { holdPermit, permitsFor } from '../concurrency.js';
import { queryOf } from '../query.js';
import { NDJSON, linesOf } from './audit.js';
import type { HttpContext, Route } from '../route.js';
import { parameterIn } from '../route.js';

/** Records sent at a time; each holds a chunk in memory. */
const RECORDS_AT_A_TIME = 4;

/** Everything at /api/keys. */
export function keyRoutes(http: HttpContext): readonly Route[] {
  return [listRoute(http), addRoute(http), revokeRoute(http), eventsRoute(http)];
}

function listRoute({ authenticator }: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/keys',
    access: ['admin', 'audit'],
    name: 'listKeys',
    summary: 'Lists every key that was ever added',
    tag: 'keys',
    success: { status: 200, description: 'The keys, without their texts', schema: 'key-list.json' },
    handle: async () => ({ status: 200, body: authenticator.keys.list().map(keyRecord) }),
  };
}

function addRoute(http: HttpContext): Route {
  const body = bodyOf(http.schemas, 'key-request.json', { isRequired: true });
  const { authenticator, system, log } = http;
  return {
    method: 'POST',
    path: '/api/keys',
    access: 'admin',
    name: 'addKey',
    summary: 'Adds a key, and shows its text this once',
    description:
      'The first key of all needs the scope `admin`, and is taken only where the service is bound to a loopback address, from no page and through no proxy. From then on everything but health, the static files of the console and the sign-in needs a key.',
    tag: 'keys',
    body,
    success: { status: 201, description: 'It can be used', schema: 'new-key.json' },
    problems: [409],
    async handle(ctx, { actor }) {
      if (actor === null) assertFirstIsTaken(http, ctx.req.headers);
      const sent = await body.read(ctx);
      const added = await http.inTime(
        refused(
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
 * By adding the first key, any caller that reaches a service without keys could lock out all others.
 *
 * @throws {RequestRefused} 403
 */
function assertFirstIsTaken({ isLoopback }: HttpContext, headers: IncomingHttpHeaders): void {
  // A page sends its origin and a proxy its client's address: neither counts as a user at this machine.
  const isPassedOn = ['origin', 'forwarded', 'x-forwarded-for'].some((name) => headers[name] !== undefined);
  if (isLoopback && !isPassedOn) return;
  const detail =
    'The first key is added on the machine itself: with "council keys add", or where HOST is a loopback address, and not by a page or through a proxy';
  throw new RequestRefused(detail, { status: 403 });
}

/** @throws {KeyRefused} */
function requested({ name, scopes, expires_in: after, expires_at: at }: SentKey, now: string): KeyRequest {
  if (after !== undefined && at !== undefined) {
    throw new KeyRefused({ field: 'expires', reason: 'it expires in a time or at a time, not both' });
  }
  const expiresAt = after !== undefined ? expiryIn(after, now) : at !== undefined ? expiryAt(at) : null;
  return { name, scopes: scopesOf(scopes), expiresAt };
}

/** Names the field that is at fault, as the rules of fields do. @throws {RequestRefused} 401, 422 */
async function refused<T>(add: () => Promise<T>, { expires_at: at }: SentKey): Promise<T> {
  try {
    return await unlessEnded(add);
  } catch (error) {
    // Another key was added first, while this request was on its way.
    if (error instanceof KeyNotFirst) throw keyMissing();
    if (!(error instanceof KeyRefused)) throw error;
    const { field, reason } = error.data;
    const name = field !== 'expires' ? field : at === undefined ? 'expires_in' : 'expires_at';
    throw brokenRules([{ loc: ['body', name], msg: reason, type: 'value_error' }]);
  }
}

/** A key may have ended since it was looked at. @throws {RequestRefused} 401 */
async function unlessEnded<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    throw error instanceof KeyEnded ? keyRefused(error.data.end) : error;
  }
}

function revokeRoute(http: HttpContext): Route {
  return {
    method: 'DELETE',
    path: '/api/keys/{name}',
    access: 'admin',
    name: 'revokeKey',
    summary: 'Revokes a key, with its sessions and open streams',
    tag: 'keys',
    success: { status: 204, description: 'It is revoked, or was before', schema: null },
    async handle(ctx, { actor }) {
      const name = parameterIn(ctx, 'name');
      if (actor === null) throw new KeyUnknown({ name });
      const revoking = unlessEnded(() => http.authenticator.keys.revoke(name, actor));
      await http.inTime(revoking, outcomeUnknown(KEYS_STREAM));
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
    summary: 'Lists the events of all keys in order, as they are stored',
    description: 'They are chained by their hashes as those of a run are.',
    tag: 'keys',
    query,
    success: {
      status: 200,
      description: 'A page of the events',
      schema: 'key-events-page.json',
      alsoAs: {
        [NDJSON]: {
          description: 'All events, whatever `from` and `limit`, one a line in the form of RFC 8785',
          each: 'key-event.json',
        },
      },
    },
    async handle(ctx) {
      const { from, limit } = query.read(ctx);
      ctx.vary('Accept');
      if (ctx.accepts('application/json', NDJSON) === NDJSON) {
        await holdPermit(permits, http, ctx.res);
        const body = await readBody(linesOf(keys.events({ from: 0 })), { http, response: ctx.res });
        return { status: 200, body, type: NDJSON };
      }
      const events = await http.inTime(collected(keys.events({ from, max: limit + 1 })));
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
