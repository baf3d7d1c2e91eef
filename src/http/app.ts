/** The HTTP application: common checks, routes, and answers where there is no route. */
import type { RequestListener } from 'node:http';
import { ServerResponse } from 'node:http';
import type { RouterContext } from '@koa/router';
import Router from '@koa/router';
import type { Context } from 'koa';
import Koa from 'koa';
import { LogUnavailable } from '../eventlog/errors.js';
import { rawAnswer } from '../api/raw-answer.js';
import type { SourceRules } from '../api/access/request-source.js';
import { refusedHost, refusedPage } from '../api/access/request-source.js';
import { clientOf } from '../api/access/limits.js';
import { authenticate, bearerIn } from '../api/access/authentication.js';
import type { Grant } from '../keys/caller.js';
import type { Answer } from './answer.js';
import { inTurn, sendAnswer, whenClosed } from './answer.js';
import { backupRoutes } from './routes/backup.js';
import { keyRoutes } from './routes/keys.js';
import { sessionRoutes } from './routes/sessions.js';
import { ConsoleFiles, isForConsole } from './console.js';
import { withoutBasePath, answering, preflightHeaders, enforceLimits } from './answering.js';
import { aboutRoutes } from './routes/about.js';
import { asyncApiRoute } from './asyncapi.js';
import { auditRoutes } from './routes/audit.js';
import { blueprintRunRoutes, runRoutes } from './routes/runs.js';
import { blueprintRoutes } from './routes/blueprints.js';
import { diagramRoutes } from './routes/diagrams.js';
import { draftRoutes } from './routes/draft.js';
import { documentRoutes } from './routes/documents.js';
import { approvalRoutes } from './routes/approvals.js';
import { feedRoute } from './routes/feed.js';
import { forkRoutes } from './routes/forks.js';
import { healthRoutes } from './routes/health.js';
import { ledgerRoutes } from './routes/ledger.js';
import { godModeRoutes } from './routes/god-mode.js';
import { exampleRoutes } from './routes/about.js';
import { providerRoutes } from './routes/about.js';
import { historyRoutes } from './routes/history.js';
import { oversightRoutes } from './routes/oversight.js';
import { overviewRoutes } from './routes/overview.js';
import { openApiRoute } from './openapi.js';
import type { ProblemForm } from '../api/problem-form.js';
import { partsOfTarget, problemAt } from '../api/problem-form.js';
import type { ProblemAnswer } from '../api/problems.js';
import { RequestRefused } from '../api/problems.js';
import type { HttpContext, HttpDeps, Route } from './route.js';
import { isEventStream } from './route.js';
import { openSchemas } from '../api/schemas.js';
import { streamRoute } from './routes/run-stream.js';
import { inTime } from '../system/async/deadline.js';
import type { Duplex } from 'node:stream';

export type { HttpDeps } from './route.js';

/** A listener for `http.createServer` that serves everything under /api, the doors, and the console. */
export function httpApp(deps: HttpDeps): RequestListener {
  const http = httpContext(deps);
  const audit = [...auditRoutes(http), streamRoute(http), feedRoute(http), ...forkRoutes(http)];
  const history = [...historyRoutes(http), ...draftRoutes(http), ...overviewRoutes(http), ...oversightRoutes(http)];
  const runs = [...runRoutes(http), ...godModeRoutes(http), ...approvalRoutes(http), ...history, ...audit];
  const served = [
    ...healthRoutes(http),
    ...ledgerRoutes(http),
    ...providerRoutes(http),
    ...aboutRoutes(http),
    ...runs,
    ...councilRoutes(http),
    ...diagramRoutes(http),
  ];
  const keys = [...keyRoutes(http), ...sessionRoutes(http), ...backupRoutes(http)];
  const routes = [...served, ...keys, ...http.doors.flatMap((door) => door(http)), asyncApiRoute(http)];
  const router = routerOf([...routes, openApiRoute(routes, http)], http);
  const app = new Koa();
  // Only errors of writing an answer arrive here: the client has gone.
  app.on('error', () => undefined);
  app.use((ctx, next) => answering(ctx, next, http));
  const files = new ConsoleFiles(http);
  app.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/api/') && isForConsole(ctx)) {
      assertSource(ctx, http);
      sendAnswer(ctx, await files.answer(ctx), http);
    } else await next();
  });
  app.use(async (ctx, next) => {
    if (isRefused(ctx, router)) sendAnswer(ctx, unrouted(ctx, router, http), http);
    else await next();
  });
  app.use(router.routes());
  app.use((ctx) => sendAnswer(ctx, unrouted(ctx, router, http), http));
  const listener = app.callback();
  return inTurn((request, response) => void listener(request, response));
}

function councilRoutes(http: HttpContext): readonly Route[] {
  return [...exampleRoutes(), ...blueprintRoutes(http), ...blueprintRunRoutes(http), ...documentRoutes(http)];
}

function httpContext(deps: HttpDeps): HttpContext {
  const unavailable = (): Error => new LogUnavailable();
  return {
    ...deps,
    schemas: openSchemas(),
    withinDeadline: (work, late = unavailable) =>
      inTime(() => work, { system: deps.system, maxMs: deps.appendDeadlineMs, late }),
  };
}

/** Paths are case-sensitive and match with and without their trailing slash. */
function routerOf(routes: readonly Route[], http: HttpContext): Router {
  const router = new Router({ sensitive: true });
  for (const route of routes) {
    const path = route.path
      .replace(/\/$/, '')
      .replaceAll(/\{(\w+)\}/g, ':$1')
      .replace(/\{\+(\w+)\}/, '*$1');
    const takesTicket = isEventStream(route);
    const serve = async (ctx: RouterContext): Promise<void> => {
      const isOpened = hasToken(ctx, route, http);
      if (route.isProbe !== true && !isOpened) assertSource(ctx, http);
      const access = isOpened ? 'open' : route.access;
      const isClosed = (route.token ?? null) !== null;
      const required = { access, isReading: isReading(ctx), takesTicket, isClosed };
      const caller = await authenticate(ctx.req, required, http);
      if (route.access !== 'open') endRequestWith(caller, ctx, http);
      if (route.isProbe !== true) enforceLimits(ctx, http.limits.request(clientOf(ctx.req, caller, http)));
      sendAnswer(ctx, await route.handle(ctx, caller), http);
    };
    router.register(path, [route.method], serve, route.isAlsoId === true ? { name: ALSO_ID } : {});
  }
  return router;
}

/** Whether a request has the secret that opens the route. */
function hasToken({ req }: Context, { token = null }: Route, { system }: HttpContext): boolean {
  const sent = token === null ? null : bearerIn(req);
  return sent !== null && token !== null && system.isEqual(sent, token);
}

/** Drops the connection of a caller whose key is revoked while it still sends its request. */
function endRequestWith(caller: Grant, { req, res }: Context, { authenticator }: HttpContext): void {
  if (req.complete) return;
  const cutOff = (): void => {
    // A complete request still gets its answer: a key may revoke itself.
    if (!req.complete) req.destroy();
  };
  whenClosed(res, authenticator.watch(caller, cutOff));
}

/** Checks host and origin, the first check after the route. @throws {RequestRefused} 421, 403 */
function assertSource({ req, method }: Context, rules: SourceRules): void {
  const refusal = refusedHost(req, rules) ?? (isReading({ method }) ? null : refusedPage(req, rules));
  if (refusal !== null) throw new RequestRefused(refusal.detail, { status: refusal.status });
}

function isReading({ method }: Pick<Context, 'method'>): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

/** The answer without a route: 404 for an unknown path, else 405, or for OPTIONS the allowed methods. */
function unrouted(ctx: Context, router: Router, http: HttpContext): Answer {
  const methods = layersAt(ctx, router).flatMap((layer) => layer.methods);
  if (methods.length === 0) throw new RequestRefused(`No such route: ${ctx.path}`, { status: 404 });
  const allow = [...new Set([...methods, 'OPTIONS'])].sort().join(', ');
  const headers = { Allow: allow };
  if (ctx.method === 'OPTIONS') {
    assertSource(ctx, http);
    return { status: 204, body: null, headers: { ...headers, ...preflightHeaders(ctx, allow) } };
  }
  throw new RequestRefused(`Method ${ctx.method} is not allowed here; use ${allow}`, { status: 405, headers });
}

/** Name of the router's layers whose last word may also be an id. */
const ALSO_ID = 'also an id';

/** The layers of a path. A layer without parameters hides those with parameters, unless its word may also be an id. */
function layersAt(ctx: Context, router: Router): ReturnType<Router['match']>['path'] {
  const layers = router.match(ctx.path, ctx.method).path;
  const exact = layers.filter(({ paramNames, name }) => paramNames.length === 0 && name !== ALSO_ID);
  return exact.length === 0 ? layers : exact;
}

/** Whether the path exists without the method. A path with a parameter may still match and have the method. */
function isRefused(ctx: Context, router: Router): boolean {
  const layers = layersAt(ctx, router);
  return layers.length > 0 && layers.every(({ methods }) => !methods.includes(ctx.method));
}

// Requests that Node refuses before any route sees them; clients still get an answer in the form of their path.

const UNREADABLE = { status: 400, detail: 'The request cannot be read as HTTP' };

/** By Node's error code. */
const REFUSALS: Readonly<Record<string, { readonly status: number; readonly detail: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The request target and headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request did not arrive in time' },
};

/** An error of Node's `clientError`. */
interface ClientError extends Error {
  readonly code?: string;
  /** The bytes that Node was reading. */
  readonly rawPacket?: Buffer;
}

/** A listener for the server's `clientError`. */
export function refuseUnreadable(
  forms: readonly ProblemForm[],
  basePath: string,
): (error: ClientError, socket: Duplex) => void {
  return (error, socket) => {
    const answer = answerOn(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || answer?.headersSent === true) {
      socket.destroy();
      return;
    }
    const { status, detail } = REFUSALS[error.code ?? ''] ?? UNREADABLE;
    const { path } = partsOfTarget(withoutBasePath(targetIn(error) ?? answer?.req.url ?? '', basePath));
    socket.end(rawAnswer(problemAt(path, { status, body: { detail }, headers: {} }, forms)));
  };
}

/** The target of an unreadable request, or undefined if its first line came before the bytes that Node was reading. */
function targetIn({ rawPacket }: ClientError): string | undefined {
  return /^[A-Z]+ (\S+) HTTP/.exec(rawPacket?.toString('latin1') ?? '')?.[1];
}

/** The answer that a connection is sending. Node keeps it in the private property that the documentation of `clientError` names. */
function answerOn(socket: Duplex): ServerResponse | null {
  const answer: unknown = Reflect.get(socket, '_httpMessage');
  return answer instanceof ServerResponse ? answer : null;
}

/** A listener for the server's `checkExpectation`, for any expectation but `100-continue`. */
export function refuseExpectation(forms: readonly ProblemForm[]): RequestListener {
  return ({ url = '', headers: { expect } }, response) => {
    const detail = `Expect ${JSON.stringify(expect)} is not supported; 100-continue is`;
    const problem: ProblemAnswer = { status: 417, body: { detail }, headers: {} };
    const body = JSON.stringify(problemAt(partsOfTarget(url).path, problem, forms).body);
    const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(body) };
    response.writeHead(417, { Connection: 'close', ...headers }).end(body);
  };
}
