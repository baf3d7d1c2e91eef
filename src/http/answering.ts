/** The outermost middleware: common headers, and errors as answers. */
import type { Context, Next } from 'koa';
import { problemAt } from '../api/problem-form.js';
import { AccessRefused } from '../api/access/access-refused.js';
import { RequestRefused, problemOf } from '../api/problems.js';
import { sendAnswer } from './answer.js';
import { addBasePath } from './base-path.js';
import { allowOrigin } from './cors.js';
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
