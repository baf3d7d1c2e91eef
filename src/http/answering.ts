/** The outermost middleware: common headers, cross-origin access, the base path, and errors as answers. */
import type { IncomingMessage, Server } from 'node:http';
import type { Context, Next } from 'koa';
import { problemAt } from '../api/problem-form.js';
import type { LimitCheck } from '../api/access/limits.js';
import { AccessRefused } from '../api/access/access-refused.js';
import { RequestRefused, problemOf } from '../api/problems.js';
import { ANSWER_HEADERS, sendAnswer } from './answer.js';
import type { HttpContext } from './route.js';

export type AnsweringDeps = Pick<
  HttpContext,
  'system' | 'basePath' | 'corsOrigins' | 'onFault' | 'onAccessRefused' | 'unsent' | 'problemForms'
>;

/** Sets the headers of every answer, refuses an unreadable target or Host, and turns errors into answers. */
export async function answering(ctx: Context, next: Next, http: AnsweringDeps): Promise<void> {
  ctx.set({ 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' });
  allowOrigin(ctx, http.corsOrigins);
  try {
    if (pathIn(ctx) === null) throw new RequestRefused('The request target cannot be read', { status: 400 });
    assertOneHost(ctx);
    await next();
  } catch (error) {
    const requestId = http.system.uuid();
    const problem = problemOf(error, requestId);
    if (problem.status === 500) http.onFault(requestId, error);
    if (error instanceof AccessRefused) http.onAccessRefused(error, ctx.req);
    sendAnswer(ctx, problemAt(pathIn(ctx) ?? '', problem, http.problemForms), http);
  }
  addBasePath(ctx, http.basePath);
}

/** The path of a request, or null if its target cannot be read: Koa parses it on first use. */
function pathIn(ctx: Context): string | null {
  try {
    const path: unknown = ctx.path;
    return typeof path === 'string' ? path : null;
  } catch {
    return null;
  }
}

/** A request has exactly one Host header (RFC 9112, section 3.2), before HTTP/1.1 at most one. */
function assertOneHost({ req }: Context): void {
  const { host = [] } = req.headersDistinct;
  if (host.length === 1 || (host.length === 0 && req.httpVersion !== '1.1')) return;
  throw new RequestRefused('A request must have one Host header', { status: 400 });
}

/** Adds the limits' headers to the answer of a request. @throws {RequestRefused} 429 */
export function enforceLimits(ctx: Pick<Context, 'append'>, { fields, refusal }: LimitCheck): void {
  // Appends, because a start is checked against its limits too (RFC 9651, section 3.1, allows split lists).
  for (const [name, value] of Object.entries(fields)) ctx.append(name, value);
  if (refusal !== null) throw refusal;
}

// Cross-origin access for the listed origins.

/** How long a browser may cache a preflight, in seconds: after that a changed list takes effect. */
const PREFLIGHT_MAX_AGE_SECONDS = 600;

/** Lets a listed origin read the answer; without a list sends no CORS header. */
function allowOrigin(ctx: Context, origins: readonly string[]): void {
  if (origins.length === 0) return;
  ctx.vary('Origin');
  const origin = ctx.get('Origin');
  if (!origins.includes(origin)) return;
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Expose-Headers', ['Allow', ...Object.keys(ANSWER_HEADERS)].join(', '));
}

/** The headers of the answer to a listed origin's preflight; empty for any other OPTIONS request. */
export function preflightHeaders(ctx: Context, allow: string): Readonly<Record<string, string>> {
  const isAllowed = ctx.response.headers['access-control-allow-origin'] !== undefined;
  if (!isAllowed || ctx.get('Access-Control-Request-Method') === '') return {};
  return {
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': allowedHeaders(ctx).join(', '),
    'Access-Control-Max-Age': String(PREFLIGHT_MAX_AGE_SECONDS),
  };
}

/** Headers that the service reads. */
const READ = [
  ...['Authorization', 'Content-Type', 'Idempotency-Key', 'If-Match', 'If-None-Match', 'Last-Event-ID'],
  ...['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
];

const KNOWN: ReadonlySet<string> = new Set(READ.map((name) => name.toLowerCase()));

/** These, and all others that the page asks for: SDKs send headers of their own, which have no effect here. */
function allowedHeaders(ctx: Context): readonly string[] {
  const asked = ctx.get('Access-Control-Request-Headers').toLowerCase().split(',');
  const names = asked.map((name) => name.trim()).filter((name) => /^[a-z0-9-]+$/.test(name));
  return [...READ, ...[...new Set(names)].filter((name) => !KNOWN.has(name))];
}

// The service below a path of another server. A proxy may remove BASE_PATH from the path of a request or keep it: the service
// reads both as the same. What it sends to clients has the path in front.

/** Headers of answers that hold a path of the service, alone or in angle brackets. */
const WITH_PATH = ['Location', 'Content-Location', 'Link'];

/** Removes the base path from the targets of a server's requests. Call it before other listeners are added. */
export function removeBasePath(server: Server, basePath: string): void {
  if (basePath === '') return;
  const remove = (request: IncomingMessage): void => {
    request.url = withoutBasePath(request.url ?? '', basePath);
  };
  server.on('request', remove).on('upgrade', remove).on('checkExpectation', remove);
}

/** A request target, which may be in absolute form, without the base path. Another target stays as it is. */
export function withoutBasePath(target: string, basePath: string): string {
  const [origin = ''] = /^(?:https?|wss?):\/\/[^/?]*/i.exec(target) ?? [];
  const local = target.slice(origin.length);
  const rest = local.slice(basePath.length);
  if (!local.startsWith(basePath) || !/^([/?]|$)/.test(rest)) return target;
  return origin + (rest.startsWith('/') ? rest : `/${rest}`);
}

/** Puts the base path before the paths in the headers of an answer. */
function addBasePath({ response }: Pick<Context, 'response'>, basePath: string): void {
  for (const name of WITH_PATH) {
    const value = response.get(name);
    if (/^<?\//.test(value)) response.set(name, value.replace('/', `${basePath}/`));
  }
}
